package broker

import "bytes"

// Mask overwrites secrets in a stream with asterisks, as many as the secret has bytes, so that no length changes. A secret
// may be spread over calls: the end of a piece that could be the start of one is held back until the next.
type Mask struct {
	words [][]byte
	held  []byte
	out   []byte
}

// Next takes a piece and returns what may go on, which may be empty; it is valid until the next call.
func (m *Mask) Next(p []byte) []byte {
	m.out = append(append(m.out[:0], m.held...), p...)
	m.blot(m.out)
	keep := 0
	for _, w := range m.words {
		for n := min(len(w)-1, len(m.out)); n > keep; n-- {
			if bytes.HasPrefix(w, m.out[len(m.out)-n:]) {
				keep = n
				break
			}
		}
	}
	cut := len(m.out) - keep
	m.held = append(m.held[:0], m.out[cut:]...)
	return m.out[:cut]
}

// End returns what was held back.
func (m *Mask) End() []byte {
	rest := m.held
	m.held = nil
	return rest
}

// Whole masks a value that stands for itself, such as a header's; it returns p itself when nothing was found.
func (m *Mask) Whole(p []byte) []byte {
	for _, w := range m.words {
		if bytes.Contains(p, w) {
			c := bytes.Clone(p)
			m.blot(c)
			return c
		}
	}
	return p
}

func (m *Mask) blot(b []byte) {
	for _, w := range m.words {
		for at := 0; ; {
			i := bytes.Index(b[at:], w)
			if i < 0 {
				break
			}
			for k := range w {
				b[at+i+k] = '*'
			}
			at += i + len(w)
		}
	}
}
