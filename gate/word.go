package gate

import "strings"

// expansions finds the substitutions in text that is otherwise not a script.
func (p *shellParser) expansions() {
	for p.pos < len(p.src) && !p.out.limit {
		switch p.src[p.pos] {
		case '\\':
			p.pos += 2
		case '$':
			p.dollar(nil)
		case '`':
			p.backquote()
		default:
			p.pos++
		}
	}
}

// word reads one word, with everything that is expanded inside it.
func (p *shellParser) word() word {
	w := word{known: true}
	var b strings.Builder
	unknown := func(why string) {
		w.known = false
		p.doubt(why)
	}
	start := p.pos
	for p.pos < len(p.src) && !p.out.limit {
		c := p.src[p.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == ';' || c == '&' || c == '|' || c == ')':
			w.text = b.String()
			return w
		case c == '(':
			// A function, an array or a pattern. The text inside is read as commands.
			unknown("a parenthesis inside a word")
			w.text = b.String()
			return w
		case (c == '<' || c == '>') && strings.HasPrefix(p.src[p.pos+1:], "("):
			unknown("a process substitution")
			p.pos += 2
			p.list(')')
		case c == '<' || c == '>':
			w.text = b.String()
			return w
		case c == '\\':
			w.quoted = true
			if p.pos++; p.pos == len(p.src) {
				unknown("a line that goes on")
				continue
			}
			if p.src[p.pos] == '\n' {
				unknown("a word that goes on in the next line") // two characters may become one operator
			} else {
				b.WriteByte(p.src[p.pos])
			}
			p.pos++
		case c == '\'':
			w.quoted = true
			end := strings.IndexByte(p.src[p.pos+1:], '\'')
			if end < 0 {
				unknown("a quote is not closed")
				end = len(p.src) - p.pos - 1
			}
			b.WriteString(p.src[p.pos+1 : p.pos+1+end])
			p.pos = min(p.pos+end+2, len(p.src))
		case c == '"':
			w.quoted = true
			if !p.doubleQuoted(&b) {
				w.known = false
			}
		case c == '$':
			if !p.dollar(&b) {
				w.known = false
			}
		case c == '`':
			w.known = false
			p.backquote()
		case c == '*' || c == '?' || c == '[' && !p.lone():
			unknown("a wildcard for file names")
			b.WriteByte(c)
			p.pos++
		case (c == '{' || c == '}') && !p.lone() && !p.emptyBraces():
			unknown("a brace expansion")
			b.WriteByte(c)
			p.pos++
		case c == '~' && (p.pos == start || p.src[p.pos-1] == ':' || p.src[p.pos-1] == '='):
			unknown("a home folder")
			b.WriteByte(c)
			p.pos++
		case (c == '!' || c == '=') && p.pos == start && !p.lone() && !p.at("!=") && !p.at("=="):
			unknown("a history or command expansion")
			b.WriteByte(c)
			p.pos++
		case c < 0x20 || c == 0x7f:
			unknown("a control character")
			b.WriteByte(c)
			p.pos++
		default:
			b.WriteByte(c)
			p.pos++
		}
	}
	w.text = b.String()
	return w
}

// lone reports whether the character here is a word by itself.
func (p *shellParser) lone() bool {
	before := p.pos == 0 || strings.IndexByte(" \t\n;|&()", p.src[p.pos-1]) >= 0
	after := p.pos+1 == len(p.src) || strings.IndexByte(" \t\n;|&()", p.src[p.pos+1]) >= 0
	return before && after
}

// emptyBraces reports whether here is a brace of {}, which shells leave alone.
func (p *shellParser) emptyBraces() bool {
	return p.at("{}") || p.src[p.pos] == '}' && p.pos > 0 && p.src[p.pos-1] == '{'
}

// doubleQuoted reads a double-quoted string and reports whether its text is known.
func (p *shellParser) doubleQuoted(b *strings.Builder) bool {
	known := true
	for p.pos++; p.pos < len(p.src) && !p.out.limit; {
		switch c := p.src[p.pos]; c {
		case '"':
			p.pos++
			return known
		case '\\':
			p.pos++
			if p.pos == len(p.src) {
				continue
			}
			if c := p.src[p.pos]; strings.IndexByte("$`\"\\\n", c) < 0 {
				b.WriteByte('\\')
			}
			if p.src[p.pos] != '\n' {
				b.WriteByte(p.src[p.pos])
			}
			p.pos++
		case '$':
			known = p.dollar(b) && known
		case '`':
			p.backquote()
			known = false
		case '!':
			if p.pos+1 < len(p.src) && strings.IndexByte(" \t\n=\"(", p.src[p.pos+1]) < 0 {
				p.doubt("a history expansion")
			}
			b.WriteByte(c)
			p.pos++
		default:
			b.WriteByte(c)
			p.pos++
		}
	}
	p.doubt("a quote is not closed")
	return false
}

// dollar reads what starts with a dollar sign and reports whether it stands for itself. b may be nil.
func (p *shellParser) dollar(b *strings.Builder) bool {
	p.pos++
	next := byte(0)
	if p.pos < len(p.src) {
		next = p.src[p.pos]
	}
	switch {
	case p.at("\\\n"):
		p.doubt("a word that goes on in the next line")
	case next == '(':
		p.doubt("a command substitution")
		p.pos++
		p.list(')')
	case next == '{':
		p.doubt("a parameter expansion")
		p.pos++
		p.braces()
	case next == '[':
		p.doubt("an arithmetic expansion")
		p.pos++
	case next == '\'' || next == '"':
		p.doubt("a quote with a dollar sign")
	case next == '_' || 'a' <= next|0x20 && next|0x20 <= 'z':
		p.doubt("a variable")
		for p.pos < len(p.src) && (p.src[p.pos] == '_' || allDigits(p.src[p.pos:p.pos+1]) || 'a' <= p.src[p.pos]|0x20 && p.src[p.pos]|0x20 <= 'z') {
			p.pos++
		}
	case next != 0 && strings.IndexByte("0123456789@*#?-$!", next) >= 0:
		p.doubt("a variable")
		p.pos++
	default:
		if b != nil {
			b.WriteByte('$')
		}
		return true
	}
	return false
}

// braces reads ${…} to its closing brace and what is substituted inside.
func (p *shellParser) braces() {
	if !p.enter() {
		return
	}
	defer func() { p.depth-- }()
	for p.pos < len(p.src) && !p.out.limit {
		switch p.src[p.pos] {
		case '}':
			p.pos++
			return
		case '\\':
			p.pos += 2
		case '$':
			p.dollar(nil)
		case '`':
			p.backquote()
		case '<', '>':
			if p.pos++; p.pos < len(p.src) && p.src[p.pos] == '(' {
				p.pos++
				p.list(')')
			}
		default:
			p.pos++
		}
	}
	p.pos = min(p.pos, len(p.src))
}

// backquote reads an old command substitution.
func (p *shellParser) backquote() {
	p.doubt("a command substitution")
	var inner strings.Builder
	for p.pos++; p.pos < len(p.src) && p.src[p.pos] != '`'; p.pos++ {
		if p.src[p.pos] == '\\' && p.pos+1 < len(p.src) && strings.IndexByte("$`\\", p.src[p.pos+1]) >= 0 {
			p.pos++
		}
		inner.WriteByte(p.src[p.pos])
	}
	p.pos = min(p.pos+1, len(p.src))
	if p.enter() {
		p.nested(inner.String())
		p.depth--
	}
}
