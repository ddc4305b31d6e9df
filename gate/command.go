package gate

import (
	"errors"
	"strings"
)

// commandGlobs reads a pattern for commands: shell quoting without expansions, and * for any text, spaces too. A pattern
// that ends with a space and a star also matches without further words.
func commandGlobs(src string) ([]glob, error) {
	var g glob
	var lit strings.Builder
	quote := byte(0)
	src = strings.TrimSpace(src)
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(src):
			i++
			writeWord(&lit, src[i:i+1])
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			writeWord(&lit, src[i:i+1])
		case c == '\'' || c == '"':
			if quote = c; i+1 < len(src) && src[i+1] == c && (i == 0 || src[i-1] == ' ') {
				writeWord(&lit, "")
			}
		case c == '*':
			if i > 0 && src[i-1] == '*' {
				continue
			}
			if strings.HasSuffix(src[:i], ":") && i == len(src)-1 {
				return nil, errors.New("the colon before the last * is part of the text here; write a space before the * to mean any further words")
			}
			g.lits = append(g.lits, lit.String())
			g.stars = append(g.stars, true)
			lit.Reset()
		case c == ' ':
			if src[i-1] != ' ' {
				lit.WriteByte(' ')
			}
		case strings.IndexByte(";|&<>()$`\n", c) >= 0:
			return nil, errors.New("the parts of a command line are judged one by one; write a rule for each command, without " + string(c))
		default:
			lit.WriteByte(c)
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	g.lits = append(g.lits, lit.String())
	globs := []glob{g}
	if n := len(g.stars); n > 0 && g.lits[n] == "" && strings.HasSuffix(g.lits[n-1], " ") {
		bare := glob{lits: append([]string(nil), g.lits[:n]...), stars: g.stars[:n-1]}
		bare.lits[n-1] = strings.TrimSuffix(bare.lits[n-1], " ")
		globs = append(globs, bare)
	}
	return globs, nil
}

func matchAny(globs []glob, s string) bool {
	for _, g := range globs {
		if g.match(s) {
			return true
		}
	}
	return false
}

// allowsPart reports whether an allow rule's pattern matches a command.
func (v *valuePattern) allowsPart(pt part) bool { return pt.named && matchAny(v.command, pt.text) }

// namesProgram reports whether the pattern spells out the program, so that the operator has said what runs.
func (v *valuePattern) namesProgram() bool {
	return v.text.exact() || len(v.command) > 0 && strings.Contains(v.command[0].lits[0], " ")
}

// maxInner bounds the words at which a command inside a command is looked for; with more of them it is taken to be there.
const maxInner = 64

// deniesPart reports whether a deny or ask rule's pattern matches a command, under its path or its name. With anywhere, a
// command that starts at any later word counts too.
func (v *valuePattern) deniesPart(folded string, anywhere bool) bool {
	for start, n := 0, 0; ; n++ {
		if n > maxInner {
			return true
		}
		word := folded[start:]
		if matchAny(v.folded, word) {
			return true
		}
		end := wordEnd(word)
		if slash := strings.LastIndexByte(word[:end], '/'); slash >= 0 && matchAny(v.folded, word[slash+1:]) {
			return true
		}
		if !anywhere || end == len(word) {
			return false
		}
		start += end + 1
	}
}

// wordEnd finds the end of the first word of a canonical command.
func wordEnd(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case ' ':
			return i
		}
	}
	return len(s)
}

// commandNames are the names under which tools take a shell command, without case, dashes and underscores.
var commandNames = set(`command cmd commands cmds commandline cmdline shellcommand bashcommand script shell bash`)

// contextNames are the names under which tools take what surrounds a command.
var contextNames = set(`env envs environment environmentvariables envvars stdin`)

func isCommandName(name string) bool { return oneOf(commandNames, name) }

// oneOf looks up a name of an argument without case, dashes and underscores. It does not allocate.
func oneOf(names map[string]bool, name string) bool {
	var short [24]byte // longer than any name in the sets
	n := 0
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '-' || c == '_':
			continue
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		}
		if n == len(short) {
			return false
		}
		short[n] = c
		n++
	}
	return names[string(short[:n])]
}
