package envelope

import (
	"slices"
	"unicode/utf8"
)

// marks are the bytes with which something can begin that is read as the token's z: the letter, a reference, or (from wideMarks
// on) a character of more than one byte.
var marks = [...]byte{'z', 'Z', '&', 0xCE, 0xE1, 0xE2, 0xEA, 0xEF, 0xF0}

const wideMarks = 3

// searchLookalike finds the first look-alike of the token that starts in content[c.pos:c.valid]. Its z stands before to.
func searchLookalike[S text](content S, c *cursor, to int) (start, stop int, ok bool) {
	for from := c.pos; from < to; {
		found := seekMark(content, c, from, to)
		if found >= to {
			break
		}
		if canBeZ(content, found) && canFollowM(content, found, c.referenceIn(maxReference, found)) {
			if stop, ok, _ = matchFrom(content, found, zAt, true); ok {
				references := c.referenceIn(MaxLookalike, found)
				start = startBefore(content, found, max(c.pos, stop-MaxLookalike), references)
				if start >= c.valid {
					break // it belongs to the next piece, and is found again there
				}
				if start >= 0 && references { // forwards a reference may be another
					stop, ok, _ = matchAt(content, start, true)
				}
				if start >= 0 && ok {
					return start, stop, true
				}
			}
			if c.misses++; c.misses >= fewMisses && c.looked != c.valid {
				if c.looked = c.valid; lacksLetter(content, c.pos, to) {
					break
				}
				c.misses = 0
			}
		}
		if content[found] == '&' {
			c.reference = found + 1
		}
		from = found + 1
	}
	return 0, 0, false
}

// fewMisses is how often a z that can follow an m is found for nothing before it is looked whether the content can hold a look-alike at all.
const fewMisses = 8

// referenceIn reports whether a reference may begin in the size bytes before i.
func (c *cursor) referenceIn(size, i int) bool { return c.reference > 0 && i-c.reference < size }

// seekMark returns where in content[from:to] the first mark stands, or to. It may leave out marks that no look-alike has as its z.
func seekMark[S text](content S, c *cursor, from, to int) int {
	if vectors {
		marked := zAfterM
		if from = max(from, c.seen); c.referenceIn(maxReference, from) {
			marked = zAnywhere
		}
		c.seen = seekClass(content, from, to, marked)
		return c.seen
	}
	if c.wide = max(c.wide, from); c.wide < to && content[c.wide] < utf8.RuneSelf {
		c.wide = skipASCII(content, c.wide, to)
	}
	looked := wideMarks
	if c.wide < to {
		looked = len(marks)
	}
	found := to
	for i, mark := range marks[:looked] {
		if c.next[i] < from || c.next[i] < to && content[c.next[i]] != mark {
			c.next[i] = seek(content, max(c.next[i], from), to, mark)
		}
		found = min(found, c.next[i])
	}
	return found
}

// zEnds holds, for each of the wide marks, the last bytes of the characters that begin with it and are read as z.
var zEnds = func() (ends [len(marks)][0x40]bool) {
	for _, c := range confusables {
		s := string(c.r)
		if i := slices.Index(marks[:], s[0]); c.as&isZ != 0 && i >= 0 {
			ends[i][s[len(s)-1]&0x3F] = true
		}
	}
	return ends
}()

// zReferences are the bytes that can follow the & of a reference that is read as z.
var zReferences = func() (follow [0x100]bool) {
	follow['#'] = true
	for _, ref := range references {
		if readAs(ref.r)&isZ != 0 {
			follow[ref.name[0]] = true
		}
	}
	return follow
}()

// canBeZ reports whether the mark at i can be read as z: a quick no for most references, most punctuation of Chinese and most of Greek.
func canBeZ[S text](content S, i int) bool {
	size := 3
	switch c := content[i]; {
	case c == '&':
		return i+1 < len(content) && zReferences[content[i+1]]
	case c < utf8.RuneSelf:
		return true
	case c < 0xE0:
		size = 2
	case c >= 0xF0:
		size = 4
	}
	return i+size <= len(content) && zEnds[slices.Index(marks[:], content[i])][content[i+size-1]&0x3F]
}

// scarce are letters that every look-alike has if it is ASCII without references. An m is not asked for, because rn is read as one,
// and near-tokens have another n, t and u.
const scarce = "da-ers"

// lacksLetter reports whether content[from:to] is ASCII without references and lacks one of the scarce letters: content made of
// near-tokens would cost a comparison at each z.
func lacksLetter[S text](content S, from, to int) bool {
	if vectors {
		for i := range scarceClasses {
			if seekClass(content, from, to, &scarceClasses[i]) >= to {
				return true
			}
		}
		return false
	}
	s := content[from:to]
	if s[0] >= utf8.RuneSelf || skipASCII(content, from, to) < to || indexByte(s, '&') >= 0 {
		return false
	}
	for _, letter := range []byte(scarce) {
		if indexByte(s, letter) < 0 && (letter == '-' || indexByte(s, letter-'a'+'A') < 0) {
			return true
		}
	}
	return false
}

// canFollowM reports whether what stands before i can be read as the token's m: a quick no for nearly every z of honest text. reference
// says that it may be a reference.
func canFollowM[S text](content S, i int, reference bool) bool {
	if i == 0 {
		return false
	}
	before := content[i-1]
	return reference || before <= ' ' || before|0x20 == 'm' || before|0x20 == 'n' || before >= 0x7F
}
