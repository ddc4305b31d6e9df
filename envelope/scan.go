package envelope

import "unicode/utf8"

const (
	scanBlock  = 64 // what the vector scans read at once
	scanBefore = 3  // bytes before the first block that are read too

	// minScan is what the content must have left for a scan: a block, and the token that may begin at its end.
	minScan = scanBefore + scanBlock + len(Token) - 1
)

// scan returns how far content is decided from c.pos on, at most a window: content[c.pos:n] is well-formed and no token
// starts there. token says that one starts at n. Where n is c.pos, and there is no token, the way of wellFormed has to be taken.
func scan[S text](content S, c *cursor) (n int, token bool) {
	from, to := c.pos, min(c.pos+window, len(content)-len(Token)+1)
	if first := content[:scanBefore]; from == 0 && asciiNoN(first[0]) && asciiNoN(first[1]) && asciiNoN(first[2]) {
		from = scanBefore
	}
	for from < scanBefore {
		if isToken(content, from) {
			return from, !c.lookalikes || !referenceBefore(content, from)
		}
		r, size := decode(content[from:])
		if r == utf8.RuneError {
			return c.pos, false
		}
		from += size
	}
	if !utf8.RuneStart(content[from]) { // after an ill-formed sequence, with which it might seem to be whole
		return c.pos, false
	}
	switch s := any(content).(type) {
	case string:
		n = scanString(s, from, to)
	case []byte:
		n = scanBytes(s, from, to)
	}
	if n > from { // the last character may go on in the block where the scan stopped, or may have to
		switch {
		case content[n-1] >= 0xC0:
			n--
		case content[n-2] >= 0xE0:
			n -= 2
		case content[n-3] >= 0xF0:
			n -= 3
		}
	}
	token = isToken(content, n) && !(c.lookalikes && referenceBefore(content, n))
	if n-c.pos >= scanBlock {
		c.slow = 0
	} else if !token || !c.lookalikes { // a scan is for stretches; text that is ill-formed or a tag everywhere has none
		c.slow = min(max(4*c.slow, scanBlock), window)
		c.retry = n + c.slow
	}
	return n, token
}

func asciiNoN(c byte) bool { return c < utf8.RuneSelf && c|0x20 != Token[0] }

// referenceBefore reports whether an HTML reference may begin before i and end behind it. Without one, no look-alike that begins
// before a token goes on in it: of the letters the token begins with, the n can stand for an n, and the a after it for no t.
func referenceBefore[S text](content S, i int) bool {
	return indexByte(content[max(0, i-maxReference):i], '&') >= 0
}

// ruleTables are what the scan looks up, each by half a byte: the rules of pairs that a byte, or the one before it, may break.
var ruleTables = func() (t [3][16]byte) {
	for rule, pair := range pairs {
		for half := range 16 {
			for i, set := range [...]uint16{pair.high, pair.low, pair.second} {
				if set>>half&1 != 0 {
					t[i][half] |= 1 << rule
				}
			}
		}
	}
	return t
}()

// pairs are the rules of UTF-8 on two bytes in a row, each by the sets of the upper and lower halves of the first byte and of
// the upper half of the second that it forbids together (Unicode 15.0, table 3-7). The way to look them up is that of Keiser and
// Lemire, "Validating UTF-8 in less than one instruction per byte" (arXiv:2010.03090).
var pairs = [8]struct{ high, low, second uint16 }{
	{0xF000, 0xFFFF, 0xF0FF}, // a first byte, and nothing that goes on
	{0x00FF, 0xFFFF, 0x0F00}, // ASCII that is gone on with
	{0x4000, 0x0001, 0x0300}, // E0 80..9F: overlong
	{0x8000, 0xFFF0, 0x0E00}, // F4..FF 90..BF: beyond U+10FFFF
	{0x4000, 0x2000, 0x0C00}, // ED A0..BF: a surrogate
	{0x1000, 0x0003, 0x0F00}, // C0 or C1: overlong
	{0x8000, 0xFFE1, 0x0100}, // F0 80..8F: overlong; F5..FF 80..8F: beyond U+10FFFF
	{0x0F00, 0xFFFF, 0x0F00}, // two that go on: right in the third and fourth place, wrong elsewhere
}
