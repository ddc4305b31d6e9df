package gateway

import "strings"

// hiddenRune reports characters that a reader cannot see or that a terminal obeys.
func hiddenRune(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xad || r == 0x200b || r >= 0x200e && r <= 0x200f ||
		r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff || r >= 0xe0000 && r <= 0xe007f
}

// cleanHidden removes them and reports whether there were any.
func cleanHidden(s string) (string, bool) {
	if strings.IndexFunc(s, hiddenRune) < 0 {
		return s, false
	}
	return strings.Map(func(r rune) rune {
		if hiddenRune(r) {
			return -1
		}
		return r
	}, s), true
}
