package gateway

import "strings"

// hiddenRune reports characters that a reader cannot see or that a terminal obeys.
func hiddenRune(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xad || r == 0x200b || r >= 0x200e && r <= 0x200f ||
		r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff || r >= 0xe0000 && r <= 0xe007f
}

// cleanHidden removes them and reports whether there were any.
func cleanHidden(s string) (string, bool) {
	if from := unplain(s); from == len(s) || strings.IndexFunc(s[from:], hiddenRune) < 0 {
		return s, false
	}
	return strings.Map(func(r rune) rune {
		if hiddenRune(r) {
			return -1
		}
		return r
	}, s), true
}

// unplain returns the index of the first byte that is not printable ASCII, a line feed or a tab, or len(s): long texts mostly
// are, and are looked at eight bytes at a time.
func unplain(s string) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		del := w ^ 0x7f*low
		if (w|w-0x20*low|(del-low)&^del)&high == 0 {
			continue
		}
		for _, c := range []byte(b) {
			if c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
				return i
			}
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return i
		}
	}
	return i
}
