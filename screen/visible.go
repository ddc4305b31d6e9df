package screen

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-4e9f7b04/hearsay/envelope"
)

// The rules of hidden_text for what can be seen and is made not to be read, or not to be recognised. It is reported and stays: honest
// text has all of it too.
const (
	ruleFrame     = "frame-token"      // the token of a frame, or what looks like it
	ruleEscaped   = "escaped-terminal" // a terminal escape in writing, which some program may turn into one
	ruleHomoglyph = "homoglyphs"       // letters of another alphabet in a word of Latin ones
	ruleDisguised = "disguised-letters"
	ruleComment   = "html-comment"
	ruleRemark    = "markdown-comment" // a link definition that defines nothing, and is not shown
	ruleUnseen    = "html-hidden"      // an element that is not shown
	ruleImage     = "image-address"    // an image whose address carries data
	ruleEncoded   = "encoded-text"     // base64 or hexadecimal of words
	ruleSpelled   = "spelled-out"      // plain letters in writing that is for others: &#105; %69 \u0069
	rulePadding   = "padding"          // blanks or empty lines that push text out of sight
)

// findHidden is the screen hidden_text.
func findHidden(ctx context.Context, in *subject) ([]Finding, error) {
	v := in.see()
	found := slices.Clone(v.hidden)
	for _, look := range []func(string) []Finding{frames, escaped, letters, comments, remarks, unseen, images, runs, spelled} {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, f := range look(v.text) {
			f.Start, f.End = v.back(f.Start, f.End)
			found = append(found, f)
		}
	}
	return found, nil
}

func frames(text string) (found []Finding) {
	for start, end := range envelope.Tokens(text) {
		found = append(found, Finding{Rule: ruleFrame, Start: start, End: end})
	}
	return found
}

// escapeNames are the ways to write ESC; introducers follow it in the sequences that matter. C1 characters are whole by themselves.
var (
	escapeNames = []string{`x1b`, `x1B`, `033`, `33`, `27`, `e`, `E`, `u001b`, `u001B`, `u{1b}`, `u{1B}`, `U0000001b`, `U0000001B`, `c[`}
	wholeNames  = []string{`x9b`, `x9B`, `x9d`, `x9D`, `x90`, `233`, `235`, `u009b`, `u009B`, `u009d`, `u009D`, `u{9b}`, `u{9d}`}
)

func escaped(text string) (found []Finding) {
	for at := 0; ; {
		next := strings.IndexByte(text[at:], '\\')
		if next < 0 {
			return found
		}
		at += next
		rest := text[at+1:]
		for _, name := range escapeNames {
			if after, ok := strings.CutPrefix(rest, name); ok && after != "" && strings.IndexByte(`[]PX^_(`, after[0]) >= 0 {
				found = grow(found, ruleEscaped, at, at+1+len(name)+1)
				break
			}
		}
		for _, name := range wholeNames {
			if strings.HasPrefix(rest, name) {
				found = grow(found, ruleEscaped, at, at+1+len(name))
				break
			}
		}
		at++
	}
}

// grow adds a place to the last finding if that is near, or as one of its own.
func grow(found []Finding, rule string, start, end int) []Finding {
	if n := len(found); n > 0 && found[n-1].Rule == rule && start-found[n-1].End <= 4*near {
		found[n-1].End = end
		found[n-1].Count++
		return found
	}
	return append(found, Finding{Rule: rule, Start: start, End: end, Count: 1})
}

// minComment is how many words a comment of HTML has that says something: <!-- end of menu --> is for the page's author.
const minComment = 3

func comments(text string) (found []Finding) {
	for at := 0; ; {
		start := strings.Index(text[at:], "<!--")
		if start < 0 {
			return found
		}
		start += at
		end := len(text)
		if i := strings.Index(text[start:], "-->"); i >= 0 {
			end = start + i + len("-->")
		}
		inner := strings.TrimSuffix(text[start+len("<!--"):end], "-->")
		if len(strings.FieldsFunc(inner, func(r rune) bool { return !unicode.IsLetter(r) })) >= minComment {
			found = append(found, Finding{Rule: ruleComment, Start: start, End: end})
		}
		at = end
	}
}

// remarkForms are how a comment is written in Markdown, which has none: [//]: # (words).
var remarkForms = []string{"]: # (", "]: #(", "]: <> (", `]: # "`, "]: # '"}

func remarks(text string) (found []Finding) {
	for _, form := range remarkForms {
		for at := 0; ; {
			i := strings.Index(text[at:], form)
			if i < 0 {
				break
			}
			at += i
			line := at + len(form)
			if end := strings.IndexByte(text[line:], '\n'); end >= 0 {
				line += end
			} else {
				line = len(text)
			}
			if len(strings.Fields(text[at+len(form):line])) >= minComment {
				found = append(found, Finding{Rule: ruleRemark, Start: at, End: line})
			}
			at = line
		}
	}
	return found
}

// minSpelled is how many letters in a row are spelled out in a way that nobody needs for them.
const minSpelled = 8

// spelled finds letters of ASCII that are written as references of HTML, percent escapes or escapes of programming languages.
func spelled(text string) (found []Finding) {
	for at := 0; at < len(text); {
		next := strings.IndexAny(text[at:], `&%\`)
		if next < 0 {
			break
		}
		at += next
		start, letters := at, 0
		var words []byte
		for at < len(text) {
			c, size := escapeAt(text[at:])
			if size == 0 {
				break
			}
			if isLetter(c) {
				letters++
			}
			words = append(words, c)
			at += size
		}
		if letters >= minSpelled {
			found = append(found, Finding{Rule: ruleSpelled, Start: start, End: at, Hidden: envelope.NewUntrusted(string(words))})
		}
		if at == start {
			at++
		}
	}
	return found
}

// escapeAt reads one escape of a printable ASCII character at the start of s; size is 0 where there is none.
func escapeAt(s string) (c byte, size int) {
	for _, form := range [...]struct {
		begin  string
		digits int // exactly; 0 is up to six and a semicolon
		base   int
	}{{"&#x", 0, 16}, {"&#X", 0, 16}, {"&#", 0, 10}, {"%", 2, 16}, {`\u00`, 2, 16}, {`\x`, 2, 16}} {
		rest, ok := strings.CutPrefix(s, form.begin)
		if !ok {
			continue
		}
		end := form.digits
		if end == 0 {
			if end = strings.IndexByte(rest[:min(len(rest), 7)], ';'); end < 0 {
				return 0, 0
			}
		}
		if len(rest) < end {
			return 0, 0
		}
		n, err := strconv.ParseUint(rest[:end], form.base, 16)
		if err != nil || n < ' ' || n > '~' {
			return 0, 0
		}
		size = len(form.begin) + end
		if form.digits == 0 {
			size++
		}
		return byte(n), size
	}
	return 0, 0
}

// maxTag bounds an element's opening tag, in bytes.
const maxTag = 4 << 10

// unseenStyles are the ways of CSS not to show an element, without white space and in lower case. A style that begins with one of them is meant.
var unseenStyles = []string{"display:none", "visibility:hidden", "visibility:collapse", "opacity:0", "font-size:0", "color:transparent",
	"clip:rect(0", "clip-path:inset(100", "font-size:1px", "line-height:0", "text-indent:-9", "left:-9", "top:-9", "max-height:0", "max-width:0", "transform:scale(0"}

func unseen(text string) (found []Finding) {
	for at := 0; ; {
		start := strings.IndexByte(text[at:], '<')
		if start < 0 {
			return found
		}
		start += at
		at = start + 1
		if at == len(text) || !isLetter(text[at]) {
			continue
		}
		tag := text[start:min(len(text), start+maxTag)]
		end := strings.IndexAny(tag[1:], "<>")
		if end < 0 || tag[end+1] == '<' {
			continue
		}
		tag = tag[:end+2]
		if hides(tag) {
			found = append(found, Finding{Rule: ruleUnseen, Start: start, End: start + len(tag)})
		}
		at = start + len(tag)
	}
}

// hides reports whether an element with that opening tag is not shown.
func hides(tag string) bool {
	if !strings.ContainsAny(tag, " \t\r\n/") {
		return false
	}
	tag = strings.ToLower(tag)
	for _, field := range strings.FieldsFunc(tag[:len(tag)-1], func(r rune) bool { return unicode.IsSpace(r) || r == '/' })[1:] {
		if name, _, _ := strings.Cut(field, "="); name == "hidden" {
			return true
		}
	}
	_, style, ok := strings.Cut(tag, "style")
	if !ok {
		return false
	}
	style = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, style)
	if sameColours(style) {
		return true
	}
	for _, unseen := range unseenStyles {
		for i, rest := 0, style; ; {
			if i = strings.Index(rest, unseen); i < 0 {
				break
			}
			before, after := byte('"'), byte(';')
			if i > 0 {
				before = rest[i-1]
			}
			if rest = rest[i+len(unseen):]; rest != "" {
				after = rest[0]
			}
			fraction := unseen[len(unseen)-1] == '0' && (after == '.' || after >= '0' && after <= '9') && strings.Trim(number(rest), "0.") != ""
			if !isLetter(before) && before != '-' && !fraction {
				return true
			}
		}
	}
	return false
}

// sameColours reports whether a style, without white space and in lower case, has letters of the colour that is behind them.
func sameColours(style string) bool {
	var front, behind string
	for _, property := range strings.FieldsFunc(style, func(r rune) bool { return r == ';' || r == '"' || r == '\'' }) {
		name, value, _ := strings.Cut(property, ":")
		switch strings.TrimLeft(name, "=") {
		case "color":
			front = value
		case "background", "background-color":
			behind = value
		}
	}
	return front != "" && front == behind
}

// number is the number that s goes on with.
func number(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789."))]
}

// maxAddress bounds an address, in bytes.
const maxAddress = 8 << 10

// longPath is how long a part of an address may be that carries no data of its own; digests in hexadecimal have 64 letters.
const longPath = 80

// images finds images of Markdown and HTML whose address has room for data: they are fetched as soon as they are shown.
func images(text string) (found []Finding) {
	for at := 0; ; {
		start := strings.Index(text[at:], "![")
		if start < 0 {
			break
		}
		start += at
		at = start + 2
		rest := text[at:min(len(text), at+maxTag)]
		label := strings.Index(rest, "](")
		if label < 0 {
			continue
		}
		begin := at + label + 2
		address := text[begin:min(len(text), begin+maxAddress)]
		if end := strings.IndexAny(strings.TrimLeft(address, " <"), " \t\r\n)>["); end >= 0 {
			address = address[:end+len(address)-len(strings.TrimLeft(address, " <"))]
		}
		if carries(strings.TrimLeft(address, " <")) {
			found = append(found, Finding{Rule: ruleImage, Start: start, End: begin + len(address)})
			at = begin + len(address)
		}
	}
	for at := 0; ; {
		start := strings.IndexByte(text[at:], '<')
		if start < 0 {
			return found
		}
		start += at
		at = start + 1
		if len(text)-at < len("img ") || !strings.EqualFold(text[at:at+3], "img") || isLetter(text[at+3]) {
			continue
		}
		tag := text[start:min(len(text), start+maxTag)]
		if end := strings.IndexAny(tag[1:], "<>"); end >= 0 {
			tag = tag[:end+2]
		}
		if _, source, ok := strings.Cut(strings.ToLower(tag), "src"); ok {
			source = strings.TrimLeft(source, "= \t\r\n\"'")
			if end := strings.IndexAny(source, "\"' \t\r\n>"); end >= 0 {
				source = source[:end]
			}
			if carries(source) {
				found = append(found, Finding{Rule: ruleImage, Start: start, End: start + len(tag)})
			}
		}
	}
}

// carries reports whether an address leads to another host and carries data there.
func carries(address string) bool {
	if len(address) > 6 && strings.EqualFold(address[:5], "http:") || len(address) > 6 && strings.EqualFold(address[:6], "https:") {
		_, address, _ = strings.Cut(address, ":")
	}
	address, ok := strings.CutPrefix(address, "//")
	if !ok {
		return false
	}
	address, query, _ := strings.Cut(address, "?")
	if strings.Contains(query, "=") || len(query) > 8 {
		return true
	}
	for _, part := range strings.FieldsFunc(address, func(r rune) bool { return r == '/' || r == '.' || r == '#' }) {
		if len(part) > longPath {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

const (
	maxEncoded  = 64 << 10
	minEncoded  = 24  // letters of base64 or hexadecimal that could be words: 18 or 12 bytes
	minBlanks   = 100 // blanks in a row in front of more text. Tables have more, and then a bar
	minNewlines = 20  // empty lines in a row
)

// runs finds long runs: of letters that are words in another writing, and of blanks.
func runs(text string) (found []Finding) {
	for at := 0; at < len(text); {
		c := text[at]
		start := at
		switch {
		case isEncoding(c):
			for at < len(text) && isEncoding(text[at]) {
				at++
			}
			if at-start >= minEncoded {
				if words, ok := decodeWords(text[start:min(at, start+maxEncoded)]); ok {
					found = append(found, Finding{Rule: ruleEncoded, Start: start, End: at, Hidden: envelope.NewUntrusted(words)})
				}
			}
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c >= utf8.RuneSelf:
			blanks, lines, end := blankRun(text[at:])
			at += end
			more := at < len(text) && text[at] != '|'
			if more && (lines > minNewlines || blanks >= minBlanks) {
				found = append(found, Finding{Rule: rulePadding, Start: start, End: at, Count: max(blanks, lines)})
			}
			if end == 0 {
				_, size := utf8.DecodeRuneInString(text[at:])
				at += size
			}
		default:
			at++
		}
	}
	return found
}

// blankRun counts the blanks and line ends that text begins with, and their bytes.
func blankRun(text string) (blanks, lines, end int) {
	for end < len(text) {
		c := text[end]
		switch {
		case c == '\n':
			lines, blanks, end = lines+1, 0, end+1
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			blanks, end = blanks+1, end+1
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(text[end:])
			if !unicode.IsSpace(r) && r != 0x2800 && r != 0x3164 {
				return blanks, lines, end
			}
			if r == 0x2028 || r == 0x2029 {
				lines++
			}
			blanks, end = blanks+1, end+size
		default:
			return blanks, lines, end
		}
	}
	return blanks, lines, end
}

func isEncoding(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_' || c == '='
}

// decodeWords decodes base64, in either alphabet and with or without padding, or hexadecimal, if words come out.
func decodeWords(s string) (string, bool) {
	if strings.Trim(s, "0123456789abcdefABCDEF") == "" {
		if raw, err := hex.DecodeString(s); err == nil && isWords(raw) {
			return string(raw), true
		}
	}
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	if len(s)%4 == 1 { // a letter before or behind belongs to something else
		s = s[:len(s)-1]
	}
	raw, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil || !isWords(raw) {
		return "", false
	}
	return string(raw), true
}

// isWords reports whether text is words: printable, with letters for the most part, and at least two spaces between them.
func isWords(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	all, letters, spaces := 0, 0, 0
	for _, r := range string(text) {
		all++
		switch {
		case unicode.IsLetter(r):
			letters++
		case r == ' ' || r == '\n' || r == '\r' || r == '\t':
			spaces++
		case !unicode.IsPrint(r):
			return false
		}
	}
	return spaces >= 2 && spaces*20 >= all && 10*(letters+spaces) >= 7*all
}
