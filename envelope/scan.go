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
