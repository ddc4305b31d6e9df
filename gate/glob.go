package gate

import (
	"errors"
	"strings"
)

// maxPattern bounds one pattern: longer than any path, short enough that matching stays cheap.
const maxPattern = 1024

// maxWildText bounds the text that a wildcard of an allow rule may match: PATH_MAX. Two kinds of wildcards can make
// matching quadratic, and a longer text is not a path.
const maxWildText = 4096

// glob is a text whose wildcards were typed by the operator: * and **, with \* for the character. Its literals lie between
// its stars: lits[0] stars[0] lits[1] … lits[n].
type glob struct {
	lits  []string
	stars []bool // true: the star matches '/' too
}

// newGlob reads a pattern. Where oneLevel is set and the pattern has a slash, * stays inside one path component and **
// crosses them; otherwise both match any text.
func newGlob(src string, oneLevel bool) (glob, error) {
	oneLevel = oneLevel && strings.Contains(src, "/")
	var g glob
	var lit strings.Builder
	for i := 0; i < len(src); i++ {
		switch c := src[i]; c {
		case '\\':
			if i++; i == len(src) || !strings.ContainsRune(`*\,():="`, rune(src[i])) {
				return glob{}, errors.New(`a backslash stands before one of * \ , ( ) : = " only; write \\ for a backslash`)
			}
			lit.WriteByte(src[i])
		case '*':
			crosses := !oneLevel
			for i+1 < len(src) && src[i+1] == '*' {
				crosses = true
				i++
			}
			g.lits = append(g.lits, lit.String())
			g.stars = append(g.stars, crosses)
			lit.Reset()
		default:
			lit.WriteByte(c)
		}
	}
	g.lits = append(g.lits, lit.String())
	return g, nil
}

func literalGlob(s string) glob { return glob{lits: []string{s}} }

// exact reports whether the pattern has no wildcard.
func (g glob) exact() bool { return len(g.stars) == 0 }

// all reports whether the pattern matches every text.
func (g glob) all() bool {
	return len(g.stars) == 1 && g.stars[0] && g.lits[0] == "" && g.lits[1] == ""
}

// match reports whether the whole of s matches. Stars that cross slashes cut the pattern into runs, and the leftmost place
// of each run is enough; inside a run the leftmost place of each literal is, because a later one lies behind the same slash.
func (g glob) match(s string) bool {
	first := 0 // the run's first literal
	for i := 0; ; i++ {
		last := i == len(g.stars)
		if !last && !g.stars[i] {
			continue
		}
		end := findRun(s, g.lits[first:i+1], first == 0, last)
		if end < 0 {
			return false
		}
		if last {
			return true
		}
		s, first = s[end:], i+1
	}
}

// findRun finds literals with texts without slashes between them in s and gives the end of the leftmost place, or -1.
func findRun(s string, lits []string, atStart, atEnd bool) int {
	if len(lits) == 1 && !atStart {
		if at := litIndex(s, lits[0], atEnd); at >= 0 {
			return at + len(lits[0])
		}
		return -1
	}
	for from := 0; from <= len(s); from++ {
		if !atStart {
			next := strings.Index(s[from:], lits[0])
			if next < 0 {
				return -1
			}
			from += next
		}
		if end := runAt(s[from:], lits, atEnd); end >= 0 {
			return from + end
		}
		if atStart {
			break
		}
	}
	return -1
}

// runAt is findRun for a run that starts where s starts.
func runAt(s string, lits []string, atEnd bool) int {
	if !strings.HasPrefix(s, lits[0]) {
		return -1
	}
	end := len(lits[0])
	for i, lit := range lits[1:] {
		at := litIndex(s[end:], lit, atEnd && i == len(lits)-2)
		if at < 0 || strings.ContainsAny(s[end:end+at], "/"+wideMark) {
			return -1
		}
		end += at + len(lit)
	}
	if atEnd && end != len(s) {
		return -1
	}
	return end
}

// litIndex finds where lit stands in text: first, or for the last literal of a pattern at the very end.
func litIndex(text, lit string, atEnd bool) int {
	switch {
	case !atEnd:
		return strings.Index(text, lit)
	case strings.HasSuffix(text, lit):
		return len(text) - len(lit)
	}
	return -1
}

// folded is the pattern with letter case and compatibility forms removed, as foldText does with the texts it meets.
func (g glob) folded() glob {
	out := glob{stars: g.stars, lits: make([]string, len(g.lits))}
	for i, l := range g.lits {
		out.lits[i] = foldText(l)
	}
	return out
}

// wide is the pattern with every star crossing slashes.
func (g glob) wide() glob {
	out := glob{lits: g.lits, stars: make([]bool, len(g.stars))}
	for i := range out.stars {
		out.stars[i] = true
	}
	return out
}

// Marks that stand for the stars of a pattern when another pattern is held against it. No pattern holds control characters.
const narrowMark, wideMark = "\x01", "\x02"

// covers reports whether g matches every text that h matches. False may also mean "not known".
func (g glob) covers(h glob) bool {
	// A star of h stands for a character no literal has; only a star of g that reaches as far can match it.
	if g.all() {
		return true
	}
	if h.exact() {
		return g.match(h.lits[0])
	}
	var b strings.Builder
	for i, l := range h.lits {
		b.WriteString(l)
		if i < len(h.stars) {
			if h.stars[i] {
				b.WriteString(wideMark)
			} else {
				b.WriteString(narrowMark)
			}
		}
	}
	return g.match(b.String())
}
