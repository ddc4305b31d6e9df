package envelope

import "unicode/utf8"

// wellFormed returns how far content is UTF-8 from from on, at most to to but never splitting a character, and the length of
// the ill-formed sequence it stopped at, 0 if none.
func wellFormed[S text](content S, from, to int) (valid, bad int) {
	for from < to {
		if content[from] < utf8.RuneSelf {
			from++
			continue
		}
		r, size := decode(content[from:])
		if r == utf8.RuneError && (size != 3 || content[from] != 0xEF) {
			return from, size
		}
		from += size
	}
	return from, 0
}

// decode returns the first character of s and its length. Of ill-formed text it takes the longest beginning of a well-formed
// sequence, at least one byte, as one U+FFFD: what TextDecoder and most languages do, and not what Go's range does.
func decode[S text](s S) (rune, int) {
	var four [utf8.UTFMax]byte
	n := copy(four[:], s)
	r, size := utf8.DecodeRune(four[:n])
	if r != utf8.RuneError || size != 1 {
		return r, size
	}
	for size < n && !utf8.FullRune(four[:size+1]) { // still the beginning of a character
		size++
	}
	return r, size
}
