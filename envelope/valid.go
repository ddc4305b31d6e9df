package envelope

import (
	"math/bits"
	"unicode/utf8"
)

// Masks over eight bytes at once.
const (
	each = 0x0101010101010101
	high = 0x80 * each // not ASCII
)

// wellFormed returns how far content is UTF-8 from from on, at most to to but never splitting a character, and the length of
// the ill-formed sequence it stopped at, 0 if none. It reads words where the text is ASCII or made of characters of three bytes,
// as CJK is. ascii says that there is a stretch of ASCII which a token could be in.
func wellFormed[S text](content S, from, to int) (valid, bad int, ascii bool) {
	begin, steep, known, ahead := from, false, from, 0
	for from < to {
		start := from
		switch c := content[from]; {
		case c < utf8.RuneSelf:
			if from++; from < to && content[from] < utf8.RuneSelf {
				from = skipASCII(content, from, to)
			}
			ascii = ascii || from-start >= len(Token) || start == begin || from >= to
			continue
		case c >= 0xE1 && c <= 0xEF:
			if from >= known { // not all at once: what ends soon, as where it is ill-formed, is not worth a look at all
				ahead = max(4*ahead, firstAhead)
				known = min(from+ahead, to)
				steep = indexByte(content[from:known], 0xE0) >= 0 || indexByte(content[from:known], 0xED) >= 0
			}
			if steep {
				from = skipSteep(content, from, known)
			} else {
				from = skipLevel(content, from, known)
			}
			for known-from >= 3 && content[from] >= 0xE1 && content[from] <= 0xEF && content[from] != 0xED &&
				content[from+1]&0xC0 == 0x80 && content[from+2]&0xC0 == 0x80 {
				from += 3
			}
			if from > start {
				continue
			}
		}
		r, size := decode(content[from:])
		if r == utf8.RuneError && (size != 3 || content[from] != 0xEF) { // U+FFFD itself is EF BF BD
			return from, size, ascii
		}
		from += size
	}
	return from, 0, ascii
}

// skipASCII returns where the first byte in content[from:to] is that is not ASCII.
func skipASCII[S text](content S, from, to int) int {
	s := content[from:to]
	for len(s) >= 64 {
		a := word(s) | word(s[8:]) | word(s[16:]) | word(s[24:])
		b := word(s[32:]) | word(s[40:]) | word(s[48:]) | word(s[56:])
		if (a|b)&high != 0 {
			break
		}
		s = s[64:]
	}
	for len(s) >= 8 && word(s)&high == 0 {
		s = s[8:]
	}
	for len(s) > 0 && s[0] < utf8.RuneSelf {
		s = s[1:]
	}
	return to - len(s)
}

// firstAhead is how far it is looked at first whether a text is steep: whether it holds E0 or ED, the two of the sixteen first bytes
// of three-byte characters that not every second byte may follow.
const firstAhead = 96

// Twenty-four bytes of three-byte characters are three words, in which the first bytes stand at different places.
const (
	lead0 = 0x00FF0000FF0000FF
	lead1 = 0xFF0000FF0000FF00
	lead2 = 0x0000FF0000FF0000

	// What form keeps of a byte: 1110xxxx begins a character of three bytes, 10xxxxxx goes on with it.
	form  = 0xC0 * each
	form0 = form | lead0&(0xF0*each)
	form1 = form | lead1&(0xF0*each)
	form2 = form | lead2&(0xF0*each)
	want0 = high | lead0&(0xE0*each)
	want1 = high | lead1&(0xE0*each)
	want2 = high | lead2&(0xE0*each)
)

// skipLevel skips blocks of three-byte characters in a text that holds neither E0 nor ED, so that their form is all there is
// to check.
func skipLevel[S text](content S, from, to int) int {
	s := content[from:to]
	for len(s) >= 96 {
		a := (word(s) ^ want0) | (word(s[24:]) ^ want0) | (word(s[48:]) ^ want0) | (word(s[72:]) ^ want0)
		b := (word(s[8:]) ^ want1) | (word(s[32:]) ^ want1) | (word(s[56:]) ^ want1) | (word(s[80:]) ^ want1)
		c := (word(s[16:]) ^ want2) | (word(s[40:]) ^ want2) | (word(s[64:]) ^ want2) | (word(s[88:]) ^ want2)
		if a&form0|b&form1|c&form2 != 0 {
			break
		}
		s = s[96:]
	}
	for len(s) >= 24 {
		a, b, c := (word(s)^want0)&form0, (word(s[8:])^want1)&form1, (word(s[16:])^want2)&form2
		if a|b|c != 0 { // go on at the character that is not of this kind
			first := bits.TrailingZeros64(a)
			if a == 0 {
				first += bits.TrailingZeros64(b)
			}
			if a|b == 0 {
				first += bits.TrailingZeros64(c)
			}
			return to - len(s) + first/24*3
		}
		s = s[24:]
	}
	return to - len(s)
}

// skipSteep skips blocks of three-byte characters, whatever they begin with: after E0 the second byte is at least A0 (or the form
// would be overlong), after ED it is below A0 (or it would be a surrogate).
func skipSteep[S text](content S, from, to int) int {
	s := content[from:to]
	for len(s) >= 24 {
		a, b, c := word(s), word(s[8:]), word(s[16:])
		if (a^want0)&form0|(b^want1)&form1|(c^want2)&form2 != 0 {
			break
		}
		// Four low bits of the first byte, and as the fifth the one of the second byte that is set from A0 on.
		first := (a&lead0 | b&lead1 | c&lead2) & (0x0F * each)
		second := a&lead1 | b&lead2 | c&lead0 // one byte further on, in the same order
		five := first | rotate8(second)>>1&(0x10*each)
		if noZero(five)&noZero(five^0x1D*each)&high != high {
			break
		}
		s = s[24:]
	}
	return to - len(s)
}

// rotate8 moves each byte one place down, the lowest to the top.
func rotate8(w uint64) uint64 { return w>>8 | w<<56 }

// noZero sets the high bit of every byte of w that is not 0. All are below 0x80.
func noZero(w uint64) uint64 { return w + 0x7F*each }

// word reads eight bytes.
func word[S text](s S) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
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

// unfinished returns how many bytes at the end of s are the beginning of a character.
func unfinished[S text](s S) int {
	var four [utf8.UTFMax]byte
	n := copy(four[:], s[max(0, len(s)-(utf8.UTFMax-1)):])
	for back := 1; back <= n; back++ {
		if utf8.RuneStart(four[n-back]) {
			if utf8.FullRune(four[n-back : n]) {
				return 0
			}
			return back
		}
	}
	return 0
}
