package envelope

import (
	"bytes"
	"slices"
	"strings"
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

	seen      int // look-alikes: content[pos:seen] was scanned for a z
	looked    int // look-alikes: the c.valid for which it was looked whether a letter lacks
	wide      int // look-alikes: content[pos:wide] is ASCII
	reference int // look-alikes: where the last & was found, and one more; 0 if there was none
}

// next decides a piece of content from c.pos on: content[c.pos:end] is to be copied as it is, then with stands in place of
// what lies between end and the new c.pos.
func next[S text](content S, c *cursor) (end int, with string) {
	var start, stop int
	var scanned, token, found bool
	if c.valid <= c.pos && c.bad == 0 {
		if vectors && c.pos >= c.retry && len(content)-c.pos >= minScan {
			c.valid, token = scan(content, c)
			scanned = c.valid > c.pos || token
		}
		if !scanned {
			to := min(c.pos+window, len(content))
			if c.retry > c.pos {
				to = min(to, c.retry)
			}
			c.valid, c.bad, c.ascii = wellFormed(content, c.pos, to)
		}
	}
	switch {
	case c.lookalikes && token: // none reaches into it
		start, stop, found = searchLookalike(content, c, c.valid)
	case c.lookalikes:
		start, stop, found = searchLookalike(content, c, min(c.valid+MaxLookalike, len(content)))
	case !scanned && c.ascii:
		start, stop, found = search(content, c)
	}
	switch {
	case found:
		c.pos, c.valid = stop, max(c.valid, stop)
		return start, defanged
	case token:
		end = c.valid
		c.pos = end + len(Token)
		return end, defanged
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
	for start = c.pos; start <= len(content)-len(Token); start++ {
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
	return 0, 0, false
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
