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

// MaxLookalike bounds a look-alike in bytes, from its first letter to its last. It is what a stream has to hold back.
const MaxLookalike = 4 << 10

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

	pos   int // all before is decided
	valid int // content[pos:valid] is well-formed
	bad   int // bytes of the ill-formed sequence at valid; 0 if none was met yet

	lower, upper int // where to go on looking for 'z' and 'Z'
}

// next decides a piece of content from c.pos on: content[c.pos:end] is to be copied as it is, then with stands in place of
// what lies between end and the new c.pos.
func next[S text](content S, c *cursor) (end int, with string) {
	if c.valid <= c.pos && c.bad == 0 {
		c.valid, c.bad = wellFormed(content, c.pos, min(c.pos+window, len(content)))
	}
	if start, stop, ok := search(content, c); ok {
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

// zAt is where the z stands in the token: its rarest letter, by which it is found.
const zAt = 3

// search finds the first token that starts in content[c.pos:c.valid].
func search[S text](content S, c *cursor) (start, stop int, ok bool) {
	from, to := c.pos+zAt, min(c.valid+zAt, len(content))
	for from < to {
		c.lower = seek(content, max(c.lower, from), to, 'z')
		c.upper = seek(content, max(c.upper, from), to, 'Z')
		z := min(c.lower, c.upper)
		if z >= to {
			break
		}
		if isToken(content, z-zAt) {
			return z - zAt, z - zAt + len(Token), true
		}
		from = z + 1
	}
	return 0, 0, false
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

// isToken reports whether the token, in any ASCII case, stands at i.
func isToken[S text](content S, i int) bool {
	if i < 0 || len(content)-i < len(Token) {
		return false
	}
	for j := range len(Token) {
		c := content[i+j]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != Token[j] {
			return false
		}
	}
	return true
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
