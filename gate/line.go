package gate

// commandLine is the shell command of a call, from all arguments that hold one.
type commandLine struct {
	raw    string // the text as received, where one argument holds it; "" otherwise
	script script

	folded    []string // the parts as deny and ask rules compare them
	foldedRaw string
}

// readCommands finds and reads the shell commands of a call, in objects and lists too; nil where it holds none.
func readCommands(args map[string]any, commands []string) *commandLine {
	if !holdsCommand(args, "", commands, 0) {
		return nil
	}
	r := commandReader{commands: commands}
	r.object(args, "", 0)
	l := &commandLine{script: r.out}
	if r.found == 1 {
		l.raw = r.raw
	}
	return l
}

// holdsCommand is the quick look before readCommands takes a slow one. What is too deep to look at counts.
func holdsCommand(v any, prefix string, commands []string, depth int) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, sub := range v {
			if isCommandName(name) || len(commands) > 0 && isCommandArg(prefix+name, commands) {
				return true
			}
			if holdsNested(sub) && (depth > maxDepth || holdsCommand(sub, nested(prefix, name, commands), commands, depth+1)) {
				return true
			}
		}
	case []any:
		for _, sub := range v {
			if holdsNested(sub) && (depth > maxDepth || holdsCommand(sub, prefix, commands, depth+1)) {
				return true
			}
		}
	}
	return false
}

func holdsNested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// nested is the prefix of the names below an argument. Nobody asks for it where the operator named no commands.
func nested(prefix, name string, commands []string) string {
	if len(commands) == 0 {
		return ""
	}
	return prefix + name + "."
}

// commandReader collects the commands of a call, in the same order every time.
type commandReader struct {
	shellParser
	commands []string
	found    int
	raw      string
}

func (r *commandReader) object(args map[string]any, prefix string, depth int) {
	if depth > maxDepth {
		r.over()
		return
	}
	here := false
	for _, name := range sortedKeys(args) {
		v := args[name]
		if !isCommandArg(prefix+name, r.commands) {
			r.value(v, nested(prefix, name, r.commands), depth+1)
			continue
		}
		here = true
		r.found++
		switch v := v.(type) {
		case string:
			r.raw = r.readCommand(args, v)
		case []any:
			r.argv(v, isPlural(name))
		default:
			r.doubt("a command that is no text")
			r.value(v, nested(prefix, name, r.commands), depth+1)
		}
	}
	if here && setsContext(args) {
		r.doubt("an environment or input that the call sets")
		r.raw = ""
	}
}

func (r *commandReader) value(v any, prefix string, depth int) {
	switch v := v.(type) {
	case map[string]any:
		r.object(v, prefix, depth)
	case []any:
		if depth > maxDepth {
			r.over()
			return
		}
		for _, sub := range v {
			r.value(sub, prefix, depth+1)
		}
	}
}

// setsContext reports whether a call changes what its command does from outside the command: LD_PRELOAD runs other code in
// any program, and a shell runs its input.
func setsContext(args map[string]any) bool {
	for name, v := range args {
		if !oneOf(contextNames, name) {
			continue
		}
		switch v := v.(type) {
		case nil:
		case string:
			if v != "" {
				return true
			}
		case map[string]any:
			if len(v) > 0 {
				return true
			}
		case []any:
			if len(v) > 0 {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// readCommand reads one command text and gives it back where it is the whole line; where the call has a list of arguments
// beside it, they are its words.
func (p *shellParser) readCommand(args map[string]any, text string) string {
	for name, v := range args {
		if name != "args" && name != "argv" && name != "arguments" {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			p.doubt("a command with arguments that are no list")
		}
		p.argv(append([]any{text}, list...), false)
		return ""
	}
	if len(text) > maxCommand {
		p.over()
	} else {
		p.nested(text)
	}
	return text
}

// argv reads a command given as a list of words, or a list of lines.
func (p *shellParser) argv(list []any, lines bool) {
	words := make([]word, 0, len(list))
	size := 0
	for _, v := range list {
		s, ok := v.(string)
		if size += len(s) + 1; size > maxCommand {
			p.over()
			return
		}
		if !ok {
			p.doubt("a word of the command is no text")
		}
		words = append(words, word{text: s, known: ok})
	}
	if lines {
		for _, w := range words {
			p.nested(w.text)
		}
		return
	}
	if len(words) == 0 {
		return
	}
	for _, c := range words[0].text {
		if c <= ' ' || c == ';' || c == '|' || c == '&' || c == '$' || c == '`' {
			p.doubt("a command with separate arguments")
			p.nested(words[0].text)
			break
		}
	}
	p.depth++
	p.command(words)
	p.depth--
}

func isPlural(name string) bool {
	return name != "" && (name[len(name)-1] == 's' || name[len(name)-1] == 'S')
}

// denied reports whether a deny or ask pattern matches the line or any command in it.
func (l *commandLine) denied(v *valuePattern) bool {
	if v.wide.all() {
		return true
	}
	l.fold()
	for i, pt := range l.script.parts {
		if v.deniesPart(l.folded[i], pt.runs) {
			return true
		}
	}
	return l.raw != "" && v.wide.match(l.foldedRaw)
}

func (l *commandLine) fold() {
	if l.folded != nil {
		return
	}
	l.folded = make([]string, 0, len(l.script.parts)+1)
	for _, pt := range l.script.parts {
		l.folded = append(l.folded, foldText(pt.text))
	}
	l.foldedRaw = foldText(l.raw)
}

// hides reports whether a command that is not known to run its arguments might run one that a deny or ask pattern means.
func (l *commandLine) hides(i int, q *inquiry) bool {
	l.fold()
	for _, list := range [2][]*rule{q.rules.deny, q.rules.ask} {
		for _, r := range list {
			if !r.tool.match(q.folded) {
				continue
			}
			for j := range r.pat.args {
				a := &r.pat.args[j]
				if !q.isCommand(a) {
					continue
				}
				if a.value.deniesPart(l.folded[i], true) {
					return true
				}
			}
		}
	}
	return false
}

// allowedBy finds the rule that allows the i-th command. A rule that does not spell out the program does not allow one
// that may run what another rule denies.
func (l *commandLine) allowedBy(i int, found []candidate, q *inquiry) *rule {
	for _, c := range found {
		if c.command != nil && !c.command.allowsPart(l.script.parts[i]) {
			continue
		}
		if c.command != nil && c.command.namesProgram() || !q.guarded() || !l.hides(i, q) {
			return c.rule
		}
	}
	return nil
}
