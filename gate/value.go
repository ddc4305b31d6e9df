package gate

import (
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Kind is how a value is read before it is compared.
type Kind uint8

const (
	Any     Kind = iota // found out from the value's form
	Mail                // a mail address
	Link                // a URL with host and path
	Host                // a host name or address
	Account             // an IBAN or another account number
	Phone               // a telephone number
	Time                // a date, a time, or both
	Path                // a path or a file's name
	ID                  // an identifier issued by a server
	Name                // what people call someone or something
	Amount              // a number with a meaning, such as a sum
	Secret              // a password, key or token
	Text                // free text
)

var kindNames = []string{"any", "mail", "link", "host", "account", "phone", "time", "path", "id", "name", "amount", "secret", "text"}

func (k Kind) String() string { return name(kindNames, uint8(k)) }

func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (k *Kind) UnmarshalText(text []byte) error {
	i, err := parseName("kind", kindNames, string(text))
	*k = Kind(i)
	return err
}

// value is what a spelling means: two spellings are the same value when kind and canonical form are equal.
type value struct {
	kind  Kind
	canon string
}

// written is the value as a person would write it: it reads back as the same value.
func (v value) written() string {
	return strings.TrimPrefix(strings.TrimPrefix(v.canon, "://"), "iban:")
}

// maxValue bounds a binding value in bytes: longer than any address, far shorter than a document.
const maxValue = 4096

// parseValue reads s, the whole of it, as one value. The form decides; hint settles what the form leaves open (a row of
// digits may be an id, a phone or an account). ok is false for a value in disguise (see plain), which nothing may ground.
func parseValue(s string, hint Kind) (value, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > maxValue || !plain(s) {
		return value{}, false
	}
	if hint == Secret {
		return value{Secret, s}, true // compared by every byte
	}
	if v, ok := parseFormed(s); ok {
		return v, true
	}
	switch hint {
	case Path:
		if p, ok := parsePath(s); ok {
			return value{Path, p}, true
		}
		return value{}, false
	case Account, Phone:
		if d := digits(s); len(d) >= 4 && !hasLetter(s) {
			return value{hint, d}, true
		}
	case Amount:
		if n, ok := parseAmount(s); ok {
			return value{Amount, n}, true
		}
	}
	if !hasLetter(s) {
		if !isToken(s) || likeShortNumber(s) && !shortNumber(s) {
			return value{}, false // "<13>" and "13." are 13 to whoever cares to read them so
		}
		return value{ID, s}, true
	}
	if hint == ID && isToken(s) || isToken(s) && hint != Name && strings.IndexFunc(s, unicode.IsDigit) >= 0 {
		return value{ID, s}, true
	}
	return value{Name, foldName(s)}, true
}

// parseFormed reads values whose form says what they are, in free text as in a whole argument.
func parseFormed(s string) (value, bool) {
	var at, dot, slash, digit bool
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '@':
			at = true
		case c == '.' || c == ':':
			dot = true
		case c == '/' || c == '\\':
			slash = true
		case isDigit(c):
			digit = true
		}
	}
	if at {
		if m, ok := parseMail(s); ok {
			return value{Mail, m}, true
		}
	}
	if slash {
		if l, ok := parseLink(s); ok {
			return value{Link, l}, true
		}
	}
	if dot {
		if h, ok := parseHost(s); ok {
			return value{Host, h}, true
		}
	}
	if digit {
		if a, ok := parseAccount(s); ok {
			return value{Account, a}, true
		}
		if p, ok := parsePhone(s); ok {
			return value{Phone, p}, true
		}
		if t, ok := parseTime(s); ok {
			return value{Time, t}, true
		}
	}
	if (slash || dot) && looksLikePath(s) {
		if p, ok := parsePath(s); ok {
			return value{Path, p}, true
		}
	}
	return value{}, false
}

// plain reports whether s is written in the ordinary way. A value with invisible or control characters, in a compatibility
// form (full width, ligatures, mathematical letters), or mixing alphabets inside a word looks like another value, so it is
// refused before it is compared with one.
func plain(s string) bool {
	ascii := true
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			ascii = false
		} else if s[i] < ' ' && s[i] != '\t' && s[i] != '\n' && s[i] != '\r' || s[i] == 0x7f {
			return false
		}
	}
	if ascii {
		return true
	}
	if !utf8.ValidString(s) || !norm.NFKC.IsNormalString(s) {
		return false
	}
	script := 0 // of the word so far
	for _, r := range s {
		if unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co) && r != '\t' && r != '\n' && r != '\r' || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r) {
			return false
		}
		switch now := scriptOf(r); {
		case now == 0:
			if !unicode.IsDigit(r) && !unicode.IsMark(r) {
				script = 0
			}
		case script == 0:
			script = now
		case script != now:
			return false
		}
	}
	return true
}

// scriptOf groups letters by alphabets that are confused with each other; 0 is no letter. Kana and Han are written together.
func scriptOf(r rune) int {
	switch {
	case !unicode.IsLetter(r):
		return 0
	case unicode.Is(unicode.Latin, r):
		return 1
	case unicode.Is(unicode.Cyrillic, r):
		return 2
	case unicode.Is(unicode.Greek, r):
		return 3
	case unicode.Is(unicode.Armenian, r):
		return 4
	case unicode.Is(unicode.Cherokee, r):
		return 5
	case unicode.Is(unicode.Coptic, r):
		return 6
	}
	return 7
}

func parseMail(s string) (string, bool) {
	if rest, ok := cutFold(s, "mailto:"); ok {
		s = rest
	}
	at := strings.LastIndexByte(s, '@')
	if at <= 0 {
		return "", false
	}
	local, host := s[:at], s[at+1:]
	for _, r := range local {
		if !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("!#$%&'*+-/=?^_`{|}~.", r)) {
			return "", false
		}
	}
	h, ok := hostName(host)
	if !ok || !strings.Contains(h, ".") {
		return "", false
	}
	return strings.ToLower(local) + "@" + h, true
}

// parseLink reads a URL, or a host followed by a path. Its canonical form has the scheme, where one is written, the host
// and everything behind it. A URL with a user name before the host, or a backslash, looks like another and is none.
func parseLink(s string) (string, bool) {
	if strings.ContainsAny(s, " \t\r\n\\<>\"") {
		return "", false
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		host, _, found := strings.Cut(s, "/")
		if !found || host == "" || !hostLike(host) {
			return "", false
		}
		scheme, rest = "", s
	}
	for _, r := range scheme {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '-' || r == '.') {
			return "", false
		}
	}
	u, err := url.Parse("//" + rest)
	if err != nil || u.User != nil || u.Host == "" {
		return "", false
	}
	host, ok := hostName(u.Host)
	if !ok {
		return "", false
	}
	tail := rest[len(u.Host):]
	if tail == "/" {
		tail = ""
	}
	return strings.ToLower(scheme) + "://" + host + tail, true
}

// bareLink is the canonical form of a link without its scheme, under which "www.a.example/x" finds "https://www.a.example/x".
func bareLink(canon string) string {
	_, rest, _ := strings.Cut(canon, "://")
	return "://" + rest
}

func parseHost(s string) (string, bool) {
	if !hostLike(s) {
		return "", false
	}
	return hostName(s)
}

// maxHost is the most bytes of a host's name (RFC 1035).
const maxHost = 253

// hostName is the canonical form of a host with an optional port: lower case, no final dot.
func hostName(s string) (string, bool) {
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.Contains(s, "]") || strings.Contains(s, "]:") {
		host, port = s[:i], s[i:]
		if _, err := strconv.ParseUint(port[1:], 10, 16); err != nil {
			return "", false
		}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return host + port, len(host) > 2
	}
	if host == "" || len(host) > maxHost {
		return "", false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", false
		}
		for _, r := range label {
			if !(unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '-' || r == '_') {
				return "", false
			}
		}
	}
	return host + port, true
}

// hostLike reports whether a word of free text names a host: reading "report.docx" or "e.g." as one would ask too often,
// missing "evil.example" would let a link through. Endings that are both (a ".sh" file, the .sh domain) count as hosts.
func hostLike(s string) bool {
	h, ok := hostName(s)
	if !ok {
		return false
	}
	if strings.HasPrefix(h, "[") {
		return true
	}
	if i := strings.LastIndexByte(h, ':'); i >= 0 {
		h = h[:i]
		if h == "localhost" {
			return true
		}
	}
	labels := strings.Split(h, ".")
	if len(labels) < 2 {
		return false
	}
	last := labels[len(labels)-1]
	if labels[0] == "www" || strings.HasPrefix(last, "xn--") {
		return true
	}
	if len(labels) == 4 && allDigits(strings.Join(labels, "")) {
		return true
	}
	long := false
	for _, l := range labels {
		long = long || utf8.RuneCountInString(l) > 1
	}
	if !long || strings.IndexFunc(last, func(r rune) bool { return !unicode.IsLetter(r) }) >= 0 {
		return false
	}
	return topLevel[last] || (utf8.RuneCountInString(last) == 2 || last[0] >= utf8.RuneSelf) && !fileEnding[last]
}

// parseAccount reads an IBAN or what is written like one (two letters, two digits, more). Whether the check digits are
// right is part of the value, so that a number one digit off is never taken for a checked one.
func parseAccount(s string) (string, bool) {
	c := strings.ToUpper(strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return -1
		}
		return r
	}, s))
	if len(c) < 12 || len(c) > 34 || !isUpper(c[0]) || !isUpper(c[1]) || !isDigit(c[2]) || !isDigit(c[3]) {
		return "", false
	}
	nd := 0
	for i := 4; i < len(c); i++ {
		if isDigit(c[i]) {
			nd++
		} else if !isUpper(c[i]) {
			return "", false
		}
	}
	if nd < 4 {
		return "", false
	}
	if ibanChecks(c) {
		return "iban:" + c, true
	}
	if strings.ContainsAny(s, " -") && nd < 8 {
		return "", false
	}
	return c, true
}

// ibanChecks is ISO 7064 mod 97-10 over the number with its first four characters moved to the end.
func ibanChecks(c string) bool {
	rem := 0
	for _, r := range c[4:] + c[:4] {
		if r >= 'A' {
			rem = (rem*100 + int(r-'A'+10)) % 97
		} else {
			rem = (rem*10 + int(r-'0')) % 97
		}
	}
	return rem == 1
}

// maxPhone is the most digits of a telephone number (E.164 section 6).
const maxPhone = 15

// parsePhone reads a number in international form, or at least seven digits written in groups.
func parsePhone(s string) (string, bool) {
	groups, d := 0, 0
	inGroup := false
	for i, r := range s {
		switch {
		case r >= '0' && r <= '9':
			if !inGroup {
				groups++
			}
			inGroup = true
			d++
		case r == '+' && i == 0, strings.ContainsRune(" -./()", r):
			inGroup = false
		default:
			return "", false
		}
	}
	plus := strings.HasPrefix(s, "+")
	if d < 7 || d > maxPhone || !plus && (groups < 2 || !strings.ContainsAny(s, " -()")) {
		return "", false
	}
	if _, ok := parseTime(s); ok {
		return "", false
	}
	if plus {
		return "+" + digits(s), true
	}
	return digits(s), true
}

// parsePath cleans a path. One that climbs, or holds percent escapes, is refused rather than guessed.
func parsePath(s string) (string, bool) {
	if strings.ContainsAny(s, "\n\r\t\x00") || strings.Contains(s, "%2") || strings.Contains(s, "%5") {
		return "", false
	}
	p := path.Clean(strings.ReplaceAll(s, "\\", "/"))
	if p == "." || p == ".." || strings.HasPrefix(p, "../") {
		return "", false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == ".." {
			return "", false
		}
	}
	return p, true
}

// looksLikePath reports whether a word is a path or a file's name with an ending.
func looksLikePath(s string) bool {
	if strings.ContainsAny(s, " \t\n\"'<>|") || len(s) < 3 || strings.Contains(s, "://") {
		return false
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~/") || strings.HasPrefix(s, "./") {
		return hasLetter(s)
	}
	if strings.ContainsAny(s, `/\`) && hasLetter(s) {
		return true
	}
	ext := path.Ext(s)
	if len(ext) < 2 || len(ext) > 9 || len(ext) == len(s) || !hasLetter(ext) {
		return false
	}
	return isToken(ext[1:]) && len(s) > 3
}

func parseAmount(s string) (string, bool) {
	s = strings.TrimSpace(strings.Trim(s, "$€£¥"))
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	if err != nil || f != f || f > 1e15 || f < -1e15 {
		return "", false
	}
	return strconv.FormatFloat(f, 'f', -1, 64), true
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func allDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

func hasLetter(s string) bool { return strings.IndexFunc(s, unicode.IsLetter) >= 0 }

// isToken reports whether s is one word of identifier characters.
func isToken(s string) bool {
	for _, r := range s {
		if !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.:#/@+=", r)) {
			return false
		}
	}
	return s != ""
}

// shortNumber reports whether an identifier is a short bare number: "13" is a file, an hour and a day of June.
func shortNumber(s string) bool { return allDigits(strings.TrimPrefix(s, "#")) && len(s) < 6 }

// likeShortNumber reports whether a value comes down to one short bare number: "<13>" and "13." do, "1.2.3" does not.
func likeShortNumber(s string) bool {
	d := digits(s)
	return d != "" && len(d) < 6 && !hasLetter(s) && strings.Contains(s, d)
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}
