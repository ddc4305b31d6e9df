package envelope

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Neutralize returns content with every token, in any ASCII case and wherever it stands, replaced by namzu_untrusted, and with
// invalid UTF-8 replaced by U+FFFD. It is idempotent. It is what [Envelope.Wrap] does to content.
//
// The fold is ASCII only: U+017F (ſ) is not an s here, as a case-insensitive regexp would have it.
func Neutralize(content string) string { return defang(content, false) }

// NeutralizeLookalikes is Neutralize that also replaces what a model may read as the token: a run whose skeleton is the token
// when characters that show nothing and white space are dropped, compatibility forms and confusable letters folded, and
// HTML references decoded once. Runs of more than [MaxLookalike] bytes are left as they are, and nothing else is changed.
func NeutralizeLookalikes(content string) string { return defang(content, true) }

func defang(content string, lookalikes bool) string {
	c := cursor{lookalikes: lookalikes}
	end, with := 0, ""
	for c.pos < len(content) && with == "" {
		end, with = next(content, &c)
	}
	if with == "" {
		return content
	}
	var b strings.Builder
	b.Grow(len(content))
	b.WriteString(content[:end])
	b.WriteString(with)
	for c.pos < len(content) {
		from := c.pos
		end, with = next(content, &c)
		b.WriteString(content[from:end])
		b.WriteString(with)
	}
	return b.String()
}

func appendDefanged[S text](dst []byte, content S, lookalikes bool) []byte {
	dst = slices.Grow(dst, len(content))
	for c := (cursor{lookalikes: lookalikes}); c.pos < len(content); {
		from := c.pos
		end, with := next(content, &c)
		dst = append(dst, content[from:end]...)
		dst = append(dst, with...)
	}
	return dst
}

// text is content as its caller has it, so that neither form is copied to be searched.
type text interface{ ~string | ~[]byte }

// window is how much is searched before it is copied: small enough to be still in the first-level cache then.
const window = 16 << 10

// A cursor is how far a content is decided.
type cursor struct {
	lookalikes bool

	pos   int  // all before is decided
	valid int  // content[pos:valid] is well-formed
	bad   int  // bytes of the ill-formed sequence at valid; 0 if none was met yet
	ascii bool // a token may stand there

	retry int // no scan before that place,
	slow  int // which is that far from where one gave nothing

	next [len(marks)]int // where to go on looking for each of the bytes looked for

	anchor int // plain: which of anchors is looked for
	misses int // how often that, or the z, was found and no token with it,
	since  int // from here on
	doubts int // plain: how often another anchor was thought of

	looked    int // look-alikes: the c.valid for which it was looked whether a letter lacks
	wide      int // look-alikes: content[pos:wide] is ASCII
	reference int // look-alikes: where the last & was found, and one more; 0 if there was none
}

// next decides a piece of content from c.pos on: content[c.pos:end] is to be copied as it is, then with stands in place of
// what lies between end and the new c.pos.
func next[S text](content S, c *cursor) (end int, with string) {
	if c.valid <= c.pos && c.bad == 0 {
		to := min(c.pos+window, len(content))
		if vectors && !c.lookalikes {
			n, token := scan(content, c)
			if token {
				c.pos = n + len(Token)
				return n, defanged
			}
			if n > c.pos {
				c.pos = n
				return n, ""
			}
			if c.retry > c.pos {
				to = min(c.retry, to)
			}
		}
		c.valid, c.bad, c.ascii = wellFormed(content, c.pos, to)
	}
	var start, stop int
	var found bool
	if c.lookalikes {
		start, stop, found = searchLookalike(content, c)
	} else if c.ascii {
		start, stop, found = search(content, c)
	}
	if found {
		c.pos, c.valid = stop, max(c.valid, stop)
		return start, defanged
	}
	end = c.valid
	c.pos = end + c.bad
	if c.bad > 0 {
		c.bad, with = 0, "\uFFFD"
	}
	return end, with
}

// anchors are the letters by which the token is found, in honest text the rarest first. Content made of near-tokens, each of
// which has one letter wrong, is searched by another letter as soon as the one looked for turns out to be frequent.
var anchors = [...]struct {
	at           int
	lower, upper byte
}{{zAt, 'z', 'Z'}, {14, 'd', 'D'}, {dashAt, '-', '-'}, {2, 'm', 'M'}}

// An anchor is frequent if it was found manyMisses times for nothing, seldomMiss bytes or less apart. The others are counted
// in the sampled bytes that follow.
const manyMisses, seldomMiss, sampled = 32, 256, 256

// search finds the first token that starts in content[c.pos:c.valid].
func search[S text](content S, c *cursor) (start, stop int, ok bool) {
	for start = c.pos; ; start++ {
		anchor := anchors[c.anchor]
		from, to := start+anchor.at, min(c.valid+anchor.at, len(content))
		if from >= to {
			return 0, 0, false
		}
		c.next[0] = seek(content, max(c.next[0], from), to, anchor.lower)
		c.next[1] = seek(content, max(c.next[1], from), to, anchor.upper)
		found := min(c.next[0], c.next[1])
		if found >= to {
			return 0, 0, false
		}
		start = found - anchor.at
		if isToken(content, start) {
			return start, start + len(Token), true
		}
		if c.misses++; c.misses == manyMisses<<c.doubts {
			if start-c.since < c.misses*seldomMiss {
				c.doubts = min(c.doubts+1, 16)
				c.anchor = rarest(content[start:min(start+sampled, len(content))])
				c.next = [len(marks)]int{}
			}
			c.misses, c.since = 0, start
		}
	}
}

// rarest returns which anchor a sample of the content holds least often.
func rarest[S text](sample S) int {
	var count [len(anchors)]int
	for i := range len(sample) {
		for j, anchor := range anchors {
			if c := sample[i]; c == anchor.lower || c == anchor.upper {
				count[j]++
			}
		}
	}
	return slices.Index(count[:], slices.Min(count[:]))
}

// marks are the bytes with which something can begin that is read as the token's z: the letter, a reference, or (from wideMarks
// on) a character of more than one byte.
var marks = [...]byte{'z', 'Z', '&', 0xCE, 0xE1, 0xE2, 0xEA, 0xEF, 0xF0}

const (
	referenceMark = 2
	wideMarks     = 3
)

// searchLookalike finds the first look-alike of the token that starts in content[c.pos:c.valid].
func searchLookalike[S text](content S, c *cursor) (start, stop int, ok bool) {
	from, to := c.pos, min(c.valid+MaxLookalike, len(content))
	if c.wide = max(c.wide, from); c.wide < to && content[c.wide] < utf8.RuneSelf {
		c.wide = skipASCII(content, c.wide, to)
	}
	looked := wideMarks
	if c.wide < to {
		looked = len(marks)
	}
	for from < to {
		found := to
		for i, mark := range marks[:looked] {
			if c.next[i] < from || c.next[i] < to && content[c.next[i]] != mark {
				c.next[i] = seek(content, max(c.next[i], from), to, mark)
			}
			found = min(found, c.next[i])
		}
		if found >= to {
			break
		}
		if found == c.next[referenceMark] {
			c.reference = found + 1
		}
		references := c.reference > 0 && found-c.reference < MaxLookalike
		if endsLikeZ(content, found) && canFollowM(content, found, references) && readAs(unitAt(content, found, isZ).r)&isZ != 0 {
			if start = startBefore(content, found, references); start >= c.valid {
				break // it belongs to the next piece, and is found again there
			}
			if start >= c.pos {
				if stop, ok, _ = matchAt(content, start, true); ok {
					return start, stop, true
				}
			}
		}
		from = found + 1
		if c.misses++; c.misses >= manyMisses && c.looked != c.valid && looked == wideMarks && c.next[referenceMark] >= to {
			if c.looked = c.valid; lacksLetter(content[c.pos:to]) {
				break
			}
		}
	}
	return 0, 0, false
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

// endsLikeZ reports whether the character at i, which begins with one of the marks, can be read as z: a quick no for most punctuation
// of Chinese and most of Greek.
func endsLikeZ[S text](content S, i int) bool {
	size := 3
	switch c := content[i]; {
	case c < utf8.RuneSelf:
		return true
	case c < 0xE0:
		size = 2
	case c >= 0xF0:
		size = 4
	}
	return i+size <= len(content) && zEnds[slices.Index(marks[:], content[i])][content[i+size-1]&0x3F]
}

// lacksLetter reports whether s, which is ASCII without references, lacks a letter that every look-alike has then: content made of
// near-tokens would cost a comparison at each z. An m is not asked for, because rn is read as one.
func lacksLetter[S text](s S) bool {
	for _, letter := range []byte("da-ers") {
		if indexByte(s, letter) < 0 && (letter == '-' || indexByte(s, letter-'a'+'A') < 0) {
			return true
		}
	}
	return false
}

// canFollowM reports whether what stands before i can be read as the token's m: a quick no for nearly every z of honest text.
func canFollowM[S text](content S, i int, references bool) bool {
	if i == 0 {
		return false
	}
	before := content[i-1]
	return references || before <= ' ' || before|0x20 == 'm' || before|0x20 == 'n' || before >= 0x7F
}

// seek returns the first b in content[from:to], or to.
func seek[S text](content S, from, to int, b byte) int {
	if from >= to || content[from] == b {
		return from
	}
	if i := indexByte(content[from:to], b); i >= 0 {
		return from + i
	}
	return to
}

// The token as words: its first eight bytes and its last eight, and the bit that makes a letter lower case.
const (
	fold   = 0x20 * each
	dash   = 0x20 << (8 * dashAt) // the bit where the token has no letter
	first8 = 'n' | 'a'<<8 | 'm'<<16 | 'z'<<24 | 'u'<<32 | '-'<<40 | 'u'<<48 | 'n'<<56
	last8  = 'n' | 't'<<8 | 'r'<<16 | 'u'<<24 | 's'<<32 | 't'<<40 | 'e'<<48 | 'd'<<56
)

// isToken reports whether the token, in any ASCII case, stands at i.
func isToken[S text](content S, i int) bool {
	if i < 0 || len(content)-i < len(Token) {
		return false
	}
	s := content[i : i+len(Token)]
	return word(s)|fold&^dash == first8 && word(s[len(Token)-8:])|fold == last8
}

func indexByte[S text](s S, b byte) int {
	switch s := any(s).(type) {
	case string:
		return strings.IndexByte(s, b)
	case []byte:
		return bytes.IndexByte(s, b)
	}
	panic("unreachable: S is string or []byte")
}
