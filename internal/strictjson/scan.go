package strictjson

import (
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// plain returns the index of the first byte at or after i that is a quote, a backslash or a control character, or len(s).
// It looks at eight bytes at a time: long texts are what a message mostly is.
func plain(s string, i int) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		w := load(s[i : i+8])
		quote, slash := w^('"'*low), w^('\\'*low)
		if ((w-0x20*low)&^w|(quote-low)&^quote|(slash-low)&^slash)&high != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\\' || c < 0x20 {
			return i
		}
	}
	return i
}

func load(b string) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// escapeLen returns the length of the escape that s starts with, 0 if it is none, and whether it is a lone surrogate.
func escapeLen(s string) (n int, lone bool) {
	if len(s) < 2 {
		return 0, false
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, false
	case 'u':
		r, ok := hex4(s)
		if !ok {
			return 0, false
		}
		if !utf16.IsSurrogate(r) {
			return 6, false
		}
		if second, ok := hex4(s[6:]); ok && utf16.DecodeRune(r, second) != utf8.RuneError {
			return 12, false
		}
		return 6, true
	}
	return 0, false
}

// hex4 reads \uXXXX.
func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape decodes the text of a string that was read; a lone surrogate becomes U+FFFD.
func unescape(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i:]
		n := 2
		switch s[1] {
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r, _ := hex4(s)
			n = 6
			if utf16.IsSurrogate(r) {
				second, _ := hex4(s[6:])
				if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
					n = 12
				}
			}
			b.WriteRune(r)
		default:
			b.WriteByte(s[1])
		}
		s = s[n:]
	}
}

// stringSize is about how long s is as JSON: a text has a line break now and then.
func stringSize(s string) int { return len(s) + len(s)/12 + 2 }

// appendString writes s as a JSON string. U+2028 and U+2029 are escaped: some line readers end a line there.
func appendString(dst []byte, s string) []byte {
	dst = slices.Grow(dst, stringSize(s))
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		i = plainLine(s, i)
		if i >= len(s) {
			break
		}
		c, n := s[i], 1
		if c == 0xE2 && !strings.HasPrefix(s[i:], "\u2028") && !strings.HasPrefix(s[i:], "\u2029") {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case 0xE2:
			dst = append(dst, '\\', 'u', '2', '0', '2', s[i+2]-0xA8+'8')
			n = 3
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i += n
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// plainLine is plain that stops at 0xE2 too, the first byte of U+2028 and U+2029.
func plainLine(s string, i int) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		w := load(s[i : i+8])
		quote, slash, e2 := w^('"'*low), w^('\\'*low), w^(0xE2*low)
		if ((w-0x20*low)&^w|(quote-low)&^quote|(slash-low)&^slash|(e2-low)&^e2)&high != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\\' || c < 0x20 || c == 0xE2 {
			return i
		}
	}
	return i
}
