package screen

import "strings"

// isControl reports whether r is of C0, C1 or DEL and does something else than to end a line, a page or a column.
func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' && r != '\f' || r >= 0x7F && r < 0xA0
}

// control takes the control character at at out, with the whole of the terminal sequence that it begins (ECMA-48), and
// returns how much that was. The text of a title, of a link's address or for the clipboard goes with it: it is not shown either.
func (s *scanner) control(at int, r rune, size int) int {
	if r == '\r' {
		if !strings.HasPrefix(s.text[at+size:], "\n") {
			s.add(ruleReturn, at, at+size, "\n")
		}
		return size
	}
	rest := s.text[at+size:]
	length := size
	switch {
	case r == 0x1B && rest != "":
		length += s.escape(at+size, rest[0], 1)
	case r == 0x90 || r >= 0x98 && r <= 0x9F:
		length += s.escape(at+size, byte(r)-0x40, 0)
	}
	rule := ruleControl
	if length > size || r == 0x1B || r >= 0x80 && r != 0x85 {
		rule = ruleEscape
	}
	s.add(rule, at, at+length, "")
	return length
}

// escape returns the length of the sequence that goes on at at and is of the kind that c introduces; c itself counts introduced bytes.
func (s *scanner) escape(at int, c byte, introduced int) int {
	body := s.text[at+introduced:]
	switch {
	case c == '[': // parameters, intermediates, a final character
		n := 0
		for n < len(body) && body[n] >= 0x20 && body[n] < 0x40 {
			n++
		}
		if n < len(body) && body[n] >= 0x40 && body[n] < 0x7F {
			n++
		}
		return introduced + n
	case strings.IndexByte("]PX^_", c) >= 0: // a string up to its terminator
		end := s.stringEnd(at + introduced)
		if end < 0 {
			return introduced // none comes: what follows is shown
		}
		return end - at
	case c >= 0x20 && c < 0x30: // intermediates, a final character
		n := introduced
		for n < len(s.text)-at && s.text[at+n] >= 0x20 && s.text[at+n] < 0x30 {
			n++
		}
		if n < len(s.text)-at && s.text[at+n] >= 0x30 && s.text[at+n] < 0x7F {
			n++
		}
		return n
	case c >= 0x30 && c < 0x7F:
		return introduced
	}
	return 0
}

// stringEnd returns where the terminal string that goes on at at ends, its terminator included, or -1.
func (s *scanner) stringEnd(at int) int {
	if s.terminator >= 0 && s.terminator < at || s.terminator == -1 {
		s.terminator = len(s.text) + 1
		for i := at; i < len(s.text); i++ {
			if c := s.text[i]; c == '\a' || c == 0x1B && strings.HasPrefix(s.text[i+1:], `\`) || c == 0xC2 && strings.HasPrefix(s.text[i+1:], "\x9c") {
				s.terminator = i
				break
			}
		}
	}
	switch {
	case s.terminator > len(s.text):
		return -1
	case s.text[s.terminator] == '\a':
		return s.terminator + 1
	}
	return s.terminator + 2
}
