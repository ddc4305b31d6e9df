package screen

// A matcher finds all of a set of words in one pass, without regard to ASCII case. It looks at each place's first bytes, two for the
// words that have no more and three for the others, and compares whole words only where some word begins so. For honest text that
// is one place in twenty, and a few operations at each of the rest that wait for nothing: faster than an automaton, which must know
// its state before it can take the next byte. How many words begin alike bounds the work at a place, whatever the text.
type matcher struct {
	words []string
	lower [256]uint8
	pairs [1 << 16 / 64]uint64  // two bytes → whether words of two bytes are so; all bits are 0 where there are none
	short map[uint32][]uint16   // and which
	slots [1 << slotBits]uint16 // hash of three bytes → bucket; 0 = no word begins so
	long  [][]uint16            // bucket → the words
}

const slotBits = 12

func slot(three uint32) uint32 { return three * 2654435761 >> (32 - slotBits) }

// newMatcher makes a matcher of words in lower case, each of two bytes or more, 65,535 at most.
func newMatcher(words []string) *matcher {
	m := &matcher{words: words, short: map[uint32][]uint16{}, long: make([][]uint16, 1)}
	for c := range m.lower {
		m.lower[c] = uint8(c)
		if 'A' <= c && c <= 'Z' {
			m.lower[c] += 'a' - 'A'
		}
	}
	if len(words) >= 1<<16 {
		panic("screen: too many words for one matcher")
	}
	for i, word := range words {
		two := uint32(word[0])<<8 | uint32(word[1])
		if len(word) == 2 {
			m.pairs[two/64] |= 1 << (two % 64)
			m.short[two] = append(m.short[two], uint16(i))
			continue
		}
		at := &m.slots[slot(two<<8|uint32(word[2]))]
		if *at == 0 {
			*at = uint16(len(m.long))
			m.long = append(m.long, nil)
		}
		m.long[*at] = append(m.long[*at], uint16(i))
	}
	return m
}

// each calls found with every word in text and where it starts, until found returns false. The starts grow, but for words of two
// bytes, which come before a longer one that starts a byte earlier.
func (m *matcher) each(text string, found func(word, start int) bool) {
	last := uint32(0)
	for i := range len(text) {
		last = last<<8 | uint32(m.lower[text[i]])
		if two := last & 0xFFFF; m.pairs[two/64]>>(two%64)&1 != 0 && i > 0 {
			for _, word := range m.short[two] {
				if !found(int(word), i-1) {
					return
				}
			}
		}
		bucket := m.slots[slot(last&0xFFFFFF)]
		if bucket == 0 || i < 2 {
			continue
		}
		for _, word := range m.long[bucket] {
			if m.standsAt(text[i-2:], m.words[word]) && !found(int(word), i-2) {
				return
			}
		}
	}
}

func (m *matcher) standsAt(text, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if m.lower[text[i]] != word[i] {
			return false
		}
	}
	return true
}

// any reports whether text holds one of the words.
func (m *matcher) any(text string) bool {
	held := false
	m.each(text, func(int, int) bool { held = true; return false })
	return held
}
