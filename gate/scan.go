package gate

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// scan finds the values in running text whose form says what they are: mail addresses, links, hosts, account numbers,
// telephone numbers, dates, paths and files' names. Each is a whole word, or a whole group of digits.
func scan(text string) []value {
	var out []value
	for token := range strings.FieldsFuncSeq(text, unicode.IsSpace) {
		if !strings.ContainsAny(token, "./@:\\") && strings.IndexFunc(token, unicode.IsDigit) < 0 {
			continue
		}
		out = scanToken(out, token)
	}
	return scanNumbers(out, text)
}

// scanToken reads one word between spaces. Inside it a link runs from its scheme to the end or to what no link holds, as mail programs
// and chats draw it; anything else is cut at quotes, brackets and commas.
func scanToken(out []value, token string) []value {
	for {
		i := strings.Index(token, "://")
		if i < 0 {
			return scanPieces(out, token)
		}
		start, end := i, len(token)
		for start > 0 && isSchemeByte(token[start-1]) {
			start--
		}
		if j := strings.IndexAny(token[start:], "<>\"`|"); j >= 0 {
			end = start + j
		}
		written := trimLink(token[start:end])
		if v, ok := parseValueForm(written); ok {
			out = append(out, v)
		} else {
			out = append(out, value{Link, written}) // a link nobody can read grounds nothing and is grounded by nothing
		}
		out = scanPieces(out, token[:start])
		token = token[end:]
	}
}

func scanPieces(out []value, token string) []value {
	for piece := range strings.FieldsFuncSeq(token, func(r rune) bool { return strings.ContainsRune("()[]{}<>\"'`“”‘’«»„|,;", r) }) {
		piece = trimPunct(piece)
		v, ok := parseValueForm(piece)
		if ok {
			out = append(out, v)
			if v.kind != Path {
				continue
			}
		}
		if v, at := looseLink(piece); at >= 0 {
			out, piece = append(out, v), piece[:at]
		}
		out = scanJoined(out, piece)
	}
	return out
}

// looseLink finds a link that lacks its scheme, or some of the slashes behind it, and that browsers follow all the same: "//a.example/x",
// "https:/a.example", `\\a.example\x`, and where it begins; -1 for none. In what reads as the middle of a path there is none.
func looseLink(piece string) (v value, at int) {
	if !strings.ContainsAny(piece, `/\:`) {
		return value{}, -1
	}
	piece = strings.ReplaceAll(piece, `\`, "/")
	for i := range len(piece) {
		if i > 0 && (isWordByte(piece[i-1]) || piece[i-1] == '/') {
			continue
		}
		rest, ok := afterSlashes(piece[i:])
		if !ok || !anyHost(rest) {
			continue
		}
		if canon, ok := parseLink("://" + rest); ok {
			return value{Link, canon}, i
		}
		return value{Link, piece[i:]}, i
	}
	return value{}, -1
}

// afterSlashes gives what stands behind the beginning of a link in which slashes count as they do to a browser.
func afterSlashes(s string) (string, bool) {
	for _, scheme := range []string{"http:", "https:", "ftp:", "ws:", "wss:"} {
		if rest, ok := cutFold(s, scheme); ok {
			return strings.TrimLeft(rest, "/"), true
		}
	}
	return strings.TrimLeft(s, "/"), strings.HasPrefix(s, "//")
}

// anyHost reports whether a link goes on with a host. In that place any last label counts that is no ending of a file.
func anyHost(rest string) bool {
	authority := rest[:min(len(rest), 2*maxHost)]
	if i := strings.IndexAny(authority, "/?#"); i >= 0 {
		authority = authority[:i]
	}
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	h, ok := hostName(host)
	last := h[strings.LastIndexByte(h, '.')+1:]
	return ok && (hostLike(host) || len(last) > 1 && len(last) < len(h) && !fileEnding[last] && strings.IndexFunc(last, func(r rune) bool { return !unicode.IsLetter(r) }) < 0)
}

// scanJoined finds addresses and hosts that something else is written against: "to:a@b.example", "x=www.a.example".
func scanJoined(out []value, piece string) []value {
	inPath := strings.ContainsAny(piece, `/\`)
	for part := range strings.FieldsFuncSeq(piece, func(r rune) bool {
		return !(unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("-_.@+", r))
	}) {
		part = strings.Trim(part, "-_.@+")
		if part == piece {
			continue
		}
		v, ok := parseValueForm(part)
		if !ok || v.kind == Host && inPath && !strongHost(v.canon) {
			continue // "docs/readme.md" is a file
		}
		out = append(out, v)
	}
	return out
}

// strongHost reports whether a host's name cannot as well be a file's.
func strongHost(h string) bool {
	return strings.HasPrefix(h, "www.") || isDigit(h[len(h)-1]) || len(h)-strings.LastIndexByte(h, '.') > 3
}

func parseValueForm(s string) (value, bool) {
	if s == "" || len(s) > maxValue || !plain(s) {
		return value{}, false
	}
	return parseFormed(s)
}

func isSchemeByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '+' || c == '-' || c == '.'
}

// trimLink cuts the punctuation of the sentence off a link, and a closing bracket that was opened before it.
func trimLink(s string) string {
	for {
		t := strings.TrimRight(s, ".,;:!?'*_’”»")
		for _, pair := range []string{"()", "[]", "{}"} {
			if strings.HasSuffix(t, pair[1:]) && strings.Count(t, pair[1:]) > strings.Count(t, pair[:1]) {
				t = t[:len(t)-1]
			}
		}
		if t == s {
			return s
		}
		s = t
	}
}

func trimPunct(s string) string {
	return strings.TrimRight(strings.TrimLeft(s, "\"'`“”‘’«»„([{<*_#!?,;:"), "\"'`“”‘’«»„)]}>*_!?.,;:")
}

// minAccount is how many digits in a row, or in groups, count as an account or telephone number: shorter rows are years,
// sums, dates and house numbers.
const minAccount = 8

// scanNumbers finds groups of digits (with an optional leading country code of letters) that are written with spaces, as
// account and telephone numbers are.
func scanNumbers(out []value, text string) []value {
	isNum := func(r rune) bool { return r >= '0' && r <= '9' || r == ' ' || r == '-' }
	for i := 0; i < len(text); {
		if !isDigit(text[i]) {
			i++
			continue
		}
		j := i
		for j < len(text) && isNum(rune(text[j])) {
			j++
		}
		run := strings.TrimRight(text[i:j], " -")
		start := i
		if start > 0 && text[start-1] == '+' {
			start--
		}
		if start >= 2 && isUpper(text[start-1]) && isUpper(text[start-2]) { // "DE89 3704 ...", letters may follow too
			end := i
			for end < len(text) && (isDigit(text[end]) || isUpper(text[end]) || text[end] == ' ') {
				end++
			}
			if a, ok := parseAccount(strings.TrimSpace(text[start-2 : end])); ok {
				out = append(out, value{Account, a})
				i = max(j, end)
				continue
			}
		}
		whole := (start == 0 || !isWordByte(text[start-1])) && (j == len(text) || !isWordByte(text[j]))
		if d := digits(run); len(d) >= minAccount && whole && !isDates(run) {
			if text[start] == '+' && len(d) <= maxPhone {
				out = append(out, value{Phone, "+" + d})
			} else {
				out = append(out, value{Account, d}, value{Phone, d})
			}
		}
		i = j
	}
	return out
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_' || c >= 0x80
}

// isDates reports whether a group of digits is nothing but dates and small numbers ("2024-05-19 16", "20240519").
func isDates(run string) bool {
	if len(run) == 8 && allDigits(run) {
		_, _, ok := validDate(atoi(run[:4]), atoi(run[4:6]), atoi(run[6:]), "")
		return ok && (run[:2] == "19" || run[:2] == "20")
	}
	for f := range strings.FieldsSeq(run) {
		if _, _, ok := isoDate(f); !ok && len(f) > 4 {
			return false
		}
	}
	return strings.Contains(run, "-") && len(run) >= 10
}

// unmask undoes what makes a link or an address look like something else to a program and like itself to a reader:
// invisible characters, compatibility letters, other full stops, bracketed dots, HTML entities.
func unmask(s string) string {
	if !strings.ContainsAny(s, "&[({\\") && !strings.Contains(s, "xxp") && isASCII(s) {
		return s
	}
	if strings.Contains(s, "&") {
		s = html.UnescapeString(s)
	}
	if isASCII(s) {
		return dots.Replace(s)
	}
	s = norm.NFKC.String(s)
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.In(r, unicode.Cf) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r):
			return -1
		case r == '。' || r == '․' || r == '‧':
			return '.'
		case r == '⁄' || r == '∕' || r == '╱' || r == '⧸':
			return '/'
		}
		return r
	}, s)
	return dots.Replace(unmix(s))
}

// unmix writes words that mix alphabets in Latin letters, so that a link or an address among them is seen to be one. Which
// letter stands for which does not matter: the word is in disguise, and only its form is asked for.
func unmix(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		end := strings.IndexFunc(s, unicode.IsSpace)
		if end == 0 {
			_, end = utf8.DecodeRuneInString(s)
		} else if end < 0 {
			end = len(s)
		}
		word := s[:end]
		if !isASCII(word) && !plain(word) {
			word = strings.Map(func(r rune) rune {
				if r >= utf8.RuneSelf && unicode.IsLetter(r) {
					return 'x'
				}
				return r
			}, word)
		}
		b.WriteString(word)
		s = s[end:]
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

var dots = strings.NewReplacer("[.]", ".", "(.)", ".", "{.}", ".", "[dot]", ".", "(dot)", ".", "[at]", "@", "(at)", "@", "[@]", "@", "[:]", ":",
	"hxxp", "http", "hXXp", "http", `\/`, "/")

// quoted lists what stands between quotation marks in a text, at most a line each.
func quoted(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		rest := line
		for len(out) < maxWords {
			i := strings.IndexAny(rest, "'\"`“‘«")
			if i < 0 {
				break
			}
			open := []rune(rest[i:])[0]
			rest = rest[i+len(string(open)):]
			closing := map[rune]string{'“': "”", '‘': "’", '«': "»"}[open]
			if closing == "" {
				closing = string(open)
			}
			if i > 0 && open == '\'' && isWordByte(line[len(line)-len(rest)-2]) { // an apostrophe
				continue
			}
			j := strings.Index(rest, closing)
			if j < 0 {
				continue
			}
			out = append(out, rest[:j])
			rest = rest[j+len(closing):]
		}
	}
	return out
}
