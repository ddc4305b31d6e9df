package screen

// A matcher finds all of a set of words in one pass, without regard to ASCII case: the automaton of Aho and Corasick, with its
// failure links resolved into one table.
type matcher struct {
	class   [256]uint8 // byte → column
	columns int
	next    []uint16   // state*columns + column → state
	words   [][]uint16 // state → indices of the words that end there
	ends    []bool     // state → whether any does
}

// newMatcher builds a matcher of words in lower case. There is room for 65,535 states: the words may have that many letters.
func newMatcher(words []string) *matcher {
	m := &matcher{columns: 1} // column 0: a byte that stands in no word
	for _, word := range words {
		for i := range len(word) {
			if c := word[i]; m.class[c] == 0 {
				m.class[c] = uint8(m.columns)
				m.columns++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		m.class[c-'a'+'A'] = m.class[c]
	}
	m.addState()
	for i, word := range words {
		state := uint16(0)
		for j := range len(word) {
			at := int(state)*m.columns + int(m.class[word[j]])
			if m.next[at] == 0 {
				m.next[at] = m.addState()
			}
			state = m.next[at]
		}
		m.words[state] = append(m.words[state], uint16(i))
	}
	m.link()
	m.ends = make([]bool, len(m.words))
	for state, words := range m.words {
		m.ends[state] = len(words) > 0
	}
	return m
}

func (m *matcher) addState() uint16 {
	m.next = append(m.next, make([]uint16, m.columns)...)
	m.words = append(m.words, nil)
	if len(m.words) > 1<<16 {
		panic("screen: too many words for one matcher")
	}
	return uint16(len(m.words) - 1)
}

// link fills in, breadth first, where each state goes on when the word it is in does not.
func (m *matcher) link() {
	failure := make([]uint16, len(m.words))
	var queue []uint16
	for column := range m.columns {
		if state := m.next[column]; state != 0 {
			queue = append(queue, state)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		m.words[state] = append(m.words[state], m.words[failure[state]]...)
		for column := range m.columns {
			at, other := int(state)*m.columns+column, m.next[int(failure[state])*m.columns+column]
			if child := m.next[at]; child != 0 {
				failure[child] = other
				queue = append(queue, child)
			} else {
				m.next[at] = other
			}
		}
	}
}

// each calls found with every word in text and where it ends, in the order of the ends, until found returns false.
func (m *matcher) each(text string, found func(word, end int) bool) {
	state := 0
	for i := range len(text) {
		state = int(m.next[state*m.columns+int(m.class[text[i]])])
		if !m.ends[state] {
			continue
		}
		for _, word := range m.words[state] {
			if !found(int(word), i+1) {
				return
			}
		}
	}
}

// any reports whether text holds one of the words.
func (m *matcher) any(text string) bool {
	held := false
	m.each(text, func(int, int) bool { held = true; return false })
	return held
}
