package gate

import (
	"path"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// foldText removes letter case, compatibility forms and what does not show, so that what some file system or server takes for
// the same name is the same text. Deny and ask rules compare this way: they err wide.
func foldText(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < '\t' || 'A' <= c && c <= 'Z' {
			return strings.Map(foldRune, norm.NFKC.String(s))
		}
	}
	return s
}

// foldRune is the least of the runes that differ from r in case only, in lower case where that is ASCII; -1 where r does not
// show.
func foldRune(r rune) rune {
	if r < '\t' || r == 0x7f || r >= 0xad && unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
		return -1
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return unicode.ToLower(least)
}

// plainPath reports whether s, read as a path, names what it seems to name: no step up, no empty or dot component, no
// encoded, control or backslash character, and short enough. A wildcard of an allow rule matches nothing else.
func plainPath(s string) bool {
	if len(s) > maxWildText || !plainText(s) {
		return false
	}
	for first := true; ; first = false {
		part, rest, more := strings.Cut(s, "/")
		if part == "." || part == ".." || part == "~" || part == "" && !first && more {
			return false
		}
		if !more {
			return true
		}
		s = rest
	}
}

// plainText refuses control characters, backslashes and percent-encodings of what separates or steps.
func plainText(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < 0x20 || c == 0x7f || c == '\\':
			return false
		case c == '%' && i+2 < len(s) && splits(s[i+1], s[i+2]):
			return false
		}
	}
	return true
}

// splits reports whether an encoding with these digits stands for a byte that could change how a path or URL is split.
func splits(hi, lo byte) bool {
	h, l := unhex(hi), unhex(lo)
	b := h<<4 | l
	return h < 16 && l < 16 && (b < 0x20 || b == 0x7f || strings.IndexByte(`./\%@:?#`, b) >= 0)
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// spellings calls yield with the texts a deny or ask rule is compared with: s without letter case, and where s could be a
// path or link, what it names after decoding and cleaning, as an absolute path too, so that **/x matches x.
func spellings(s string, yield func(string) bool) bool {
	s = foldText(s)
	if yield(s) {
		return true
	}
	clean := s
	for range 3 { // encoded more often than that, nothing decodes it by accident
		next := percentDecode(clean)
		if next == clean {
			break
		}
		clean = foldText(next)
	}
	clean = localFile(strings.Trim(strings.ReplaceAll(clean, `\`, "/"), " \t\r\n\v\f\"'"))
	if i := strings.Index(clean, "://"); i > 0 {
		clean = clean[:i+3] + path.Clean(clean[i+3:])
		return clean != s && yield(clean)
	}
	clean = path.Clean(clean)
	if clean != s && yield(clean) {
		return true
	}
	if strings.HasPrefix(clean, "/") {
		return false
	}
	for strings.HasPrefix(clean, "../") { // from a folder nobody here knows up to the root, at most
		clean = clean[len("../"):]
	}
	return yield("/" + clean)
}

// localFile gives the path of a file link, whose host is this machine's whatever it says. Other texts stay.
func localFile(s string) string {
	rest, ok := strings.CutPrefix(s, "file:")
	if !ok {
		return s
	}
	if authority, isHost := strings.CutPrefix(rest, "//"); isHost {
		if i := strings.IndexByte(authority, '/'); i >= 0 {
			return authority[i:]
		}
		return authority
	}
	return rest
}

// toolName is how deny and ask rules compare the name of a tool: a server may take off what stands around it.
func toolName(s string) string { return strings.TrimSpace(foldText(s)) }

func percentDecode(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && unhex(s[i+1]) < 16 && unhex(s[i+2]) < 16 {
			b.WriteByte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
