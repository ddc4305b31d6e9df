package gate

import (
	"path"
	"slices"
	"strings"
)

// Bounds of one command line. What is over them is denied: a weaker answer for a longer line would be an invitation.
const (
	maxCommand = 128 << 10 // bytes; a line with a whole file in a here-document still fits
	maxParts   = 4096      // commands in one line
	maxNesting = 24        // substitutions, groups and shells within each other
)

// script is what a shell command line says it will run, as far as that can be read from its text.
type script struct {
	parts      []part
	unresolved string // why a part of the effect cannot be read from the text; "" where all of it can
	limit      bool   // over a bound: nothing about it is known
}

// part is one command with its arguments.
type part struct {
	text  string // canonical: words with a space between, spaces within words escaped
	named bool   // every word is known
	runs  bool   // it runs its arguments as a command: any of its words may start one
}

// shellParser reads command lines of a POSIX-like shell. It never guesses: quoting is resolved, and every expansion,
// redirection or construct whose result is not in the text makes the script unresolved, while the commands inside are
// still found.
type shellParser struct {
	src   string
	pos   int
	out   script
	depth int
	docs  []hereDoc // here-documents whose bodies start after the next newline
}

type hereDoc struct {
	end          string
	tabs, quoted bool
	commands     *bool // whether the command that reads it is a shell; known once the command is complete
}

// simple is the command being read.
type simple struct {
	words   []word
	redirs  bool // it has a redirection; behind one there is no reserved word
	piped   bool // it reads what the command before writes
	isShell bool
}

type word struct {
	text   string
	known  bool
	quoted bool // some of it was quoted, so it is no reserved word
}

func (p *shellParser) doubt(why string) {
	if p.out.unresolved == "" {
		p.out.unresolved = why
	}
}

func (p *shellParser) over() {
	p.out.limit = true
	p.doubt("the command is longer, or has more parts, than the gate will judge")
	p.pos = len(p.src)
}

// enter counts a nesting; false where it is too deep.
func (p *shellParser) enter() bool {
	if p.depth++; p.depth > maxNesting {
		p.over()
		return false
	}
	return true
}

// list reads commands up to the closing character end, which it consumes; 0: up to the end of the text.
func (p *shellParser) list(end byte) {
	if !p.enter() {
		return
	}
	defer func() { p.depth-- }()
	cmd := &simple{}
	for !p.out.limit {
		p.skipBlanks()
		if p.pos >= len(p.src) {
			p.finish(cmd)
			if end != 0 {
				p.doubt("a parenthesis is not closed")
			}
			return
		}
		c := p.src[p.pos]
		switch {
		case c == end && end != 0:
			p.pos++
			p.finish(cmd)
			return
		case c == '\n':
			p.pos++
			p.finish(cmd)
			cmd = &simple{}
			p.hereDocs()
		case p.at("||"):
			p.pos += 2
			p.finish(cmd)
			cmd = &simple{}
		case c == '|':
			if p.pos++; p.pos < len(p.src) && p.src[p.pos] == '&' {
				p.pos++
			}
			p.finish(cmd)
			cmd = &simple{piped: true}
		case c == ';' || c == '&' && !p.at("&>"):
			p.pos++
			p.finish(cmd)
			cmd = &simple{}
		case c == '#':
			// A shell that reads no comments would run what follows.
			p.doubt("a comment")
			if i := strings.IndexByte(p.src[p.pos:], '\n'); i >= 0 {
				p.pos += i
			} else {
				p.pos = len(p.src)
			}
		case c == '(' && len(cmd.words) == 0:
			p.pos++
			p.list(')')
		case c == '(' || c == ')':
			p.pos++
			p.doubt("a parenthesis out of place")
			p.finish(cmd)
			cmd = &simple{}
		case p.redirection(cmd):
		default:
			w := p.word()
			if len(cmd.words) == 0 && !cmd.redirs && !w.quoted && w.known && p.reserved(w.text, cmd) {
				continue
			}
			cmd.words = append(cmd.words, w)
		}
	}
}

// reserved handles words that structure a script at the place of a command's name.
func (p *shellParser) reserved(w string, cmd *simple) bool {
	switch w {
	case "!", "time":
		if cmd.piped { // these stand before a whole pipeline only
			p.doubt("a reserved word inside a pipeline")
		}
		return true
	case "{", "}":
		return true
	case "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "coproc", "function",
		"for", "case", "esac", "select", "in", "[[", "]]":
		p.doubt("a control structure")
		return true
	}
	return false
}

func (p *shellParser) at(s string) bool { return strings.HasPrefix(p.src[p.pos:], s) }

func (p *shellParser) skipBlanks() {
	for p.pos < len(p.src) {
		switch {
		case p.src[p.pos] == ' ' || p.src[p.pos] == '\t':
			p.pos++
		case p.at("\\\n"):
			p.pos += 2
		default:
			return
		}
	}
}

// redirection reads one redirection of cmd, if there is one here. Only those that write and read nothing stay resolved.
func (p *shellParser) redirection(cmd *simple) bool {
	at := p.pos
	for at < len(p.src) && '0' <= p.src[at] && p.src[at] <= '9' {
		at++
	}
	rest := p.src[at:]
	if strings.HasPrefix(rest, "<(") || strings.HasPrefix(rest, ">(") {
		return false // a process substitution is a word
	}
	op := ""
	for _, o := range []string{"&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"} {
		if strings.HasPrefix(rest, o) && (at == p.pos || o[0] != '&') {
			op = o
			break
		}
	}
	if op == "" {
		return false
	}
	p.pos = at + len(op)
	cmd.redirs = true
	p.skipBlanks()
	if p.pos >= len(p.src) || strings.IndexByte("\n;|&<>()", p.src[p.pos]) >= 0 {
		p.doubt("a redirection without a target")
		return true
	}
	w := p.word()
	switch {
	case op == "<<" || op == "<<-":
		p.doubt("a here-document")
		p.docs = append(p.docs, hereDoc{end: w.text, tabs: op == "<<-", quoted: w.quoted, commands: &cmd.isShell})
	case (op == ">&" || op == "<&") && w.known && (allDigits(w.text) || w.text == "-"):
	case w.known && w.text == "/dev/null" && op != "<>":
	default:
		p.doubt("a redirection to or from a file")
	}
	return true
}

// hereDocs reads the bodies of the here-documents of the line that just ended. A shell runs its document; elsewhere only
// the substitutions in it run.
func (p *shellParser) hereDocs() {
	docs := p.docs
	p.docs = nil
	for _, d := range docs {
		start := p.pos
		bodyEnd := len(p.src)
		for p.pos < len(p.src) {
			lineStart := p.pos
			line := p.src[p.pos:]
			if i := strings.IndexByte(line, '\n'); i >= 0 {
				line = line[:i]
				p.pos++
			}
			p.pos += len(line)
			if d.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if line == d.end {
				bodyEnd = lineStart
				break
			}
		}
		body := p.src[start:bodyEnd]
		switch {
		case *d.commands:
			p.nested(body)
		case !d.quoted:
			q := shellParser{src: body, depth: p.depth, out: p.out}
			q.expansions()
			p.out = q.out
		}
	}
}

// nested reads src as a script of its own, within this one.
func (p *shellParser) nested(src string) {
	q := shellParser{src: src, depth: p.depth, out: p.out}
	q.list(0)
	p.out = q.out
	if p.out.limit {
		p.pos = len(p.src)
	}
}

// finish adds the command that was read, and the commands it is known to run.
func (p *shellParser) finish(cmd *simple) {
	words := cmd.words
	for len(words) > 0 && assignment(words[0].text) {
		p.doubt("a variable is set for the command")
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	cmd.isShell = slices.ContainsFunc(words, func(w word) bool { return shells[path.Base(w.text)] })
	p.command(words)
}

// command adds one command by its words.
func (p *shellParser) command(words []word) {
	if len(p.out.parts) >= maxParts {
		p.over()
		return
	}
	pt := newPart(words)
	switch {
	case !words[0].known:
		p.doubt("the program's name is not in the text")
	case strings.HasPrefix(words[0].text, "-") && len(words) > 1:
		p.doubt("an option in the place of a program's name") // time -p
		p.command(words[1:])
		return
	}
	p.unwrap(words, &pt)
	if pt.text != "" {
		p.out.parts = append(p.out.parts, pt)
	}
}

func newPart(words []word) part {
	var b strings.Builder
	pt := part{named: true}
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		writeWord(&b, w.text)
		pt.named = pt.named && w.known
	}
	pt.text = b.String()
	return pt
}

// writeWord writes a word so that the spaces between words stay unambiguous.
func writeWord(b *strings.Builder, w string) {
	if w == "" {
		b.WriteString("''")
	}
	for i := range len(w) {
		if c := w[i]; c <= ' ' || c == '\\' || c == '\'' || c == 0x7f {
			b.WriteByte('\\')
		}
		b.WriteByte(w[i])
	}
}

func assignment(w string) bool {
	for i := range len(w) {
		c := w[i]
		switch {
		case c == '=' && i > 0:
			return true
		case (c == '+' || c == '[') && i > 0:
			return strings.Contains(w[i:], "=")
		case c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || i > 0 && '0' <= c && c <= '9':
		default:
			return false
		}
	}
	return false
}

var shells = set(`sh bash dash zsh ksh mksh ash fish csh tcsh rbash busybox eval source .`)
