package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// pattern is one rule's left side: which calls it is about.
type pattern struct {
	server string // "*" for all, in deny and ask rules only
	tool   glob
	args   []argPattern
}

// argPattern is what a rule wants of one argument.
type argPattern struct {
	name   string // with dots for fields of objects; "" where the operator named none
	path   []string
	value  valuePattern
	quoted bool // typed in quotes: a string and nothing else
}

// valuePattern reads one typed text in the ways an argument may be read.
type valuePattern struct {
	text    glob        // any text
	wide    glob        // the same for deny and ask rules: without case, stars cross slashes
	number  string      // its canonical form if the pattern is a number, else ""
	url     *urlPattern // set where the pattern is a link with a wildcard
	command []glob      // the pattern over the canonical text of one command
	folded  []glob      // the same for deny and ask rules
	line    string      // the pattern without wildcards, as a whole command line; "" where it has wildcards
	cmdErr  error       // why it cannot be read as a command
}

var errNoServer = errors.New("names no server: the tool of any server could take the name")

// parsePattern reads the spelling of a rule: mcp__server__tool, server__tool, server.tool or server:tool, then arguments
// in parentheses. servers are the known ones; nil: any.
func parsePattern(src string, servers []string) (pattern, error) {
	if strings.ContainsFunc(src, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return pattern{}, errors.New("holds a control character")
	}
	if len(src) > maxPattern {
		return pattern{}, fmt.Errorf("longer than %d bytes", maxPattern)
	}
	head, args := strings.TrimSpace(src), ""
	hasArgs := false
	if i := strings.IndexByte(head, '('); i >= 0 {
		if !strings.HasSuffix(head, ")") {
			return pattern{}, errors.New("the parenthesis is not closed at the end")
		}
		head, args, hasArgs = strings.TrimSpace(head[:i]), head[i+1:len(head)-1], true
	}
	var p pattern
	var tool string
	var err error
	p.server, tool, err = splitTool(head, servers)
	if err == nil && strings.ContainsFunc(tool, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		err = errors.New("has a space or a character that does not show in the tool's name, which no tool has")
	}
	if err != nil {
		return pattern{}, err
	}
	if p.tool, err = newGlob(tool, false); err != nil {
		return pattern{}, err
	}
	if !hasArgs {
		return p, nil
	}
	p.args, err = parseArgs(args)
	return p, err
}

// SplitTool reads the name of a tool in any of the spellings of rules. servers are the known ones; nil: any. It takes no
// wildcards.
func SplitTool(name string, servers []string) (server, tool string, err error) {
	if strings.ContainsAny(name, "*()") {
		return "", "", errors.New("names one tool, without wildcards and arguments")
	}
	if server, tool, err = splitTool(name, servers); err == nil && tool == "*" {
		err = errors.New("names a server, and no tool of it")
	}
	return server, tool, err
}

// splitTool finds the server in a tool's name. Where servers are known they decide which separator is meant.
func splitTool(head string, servers []string) (server, tool string, err error) {
	name, mcp := strings.CutPrefix(head, "mcp__")
	if name == "" {
		return "", "", errors.New("names no tool")
	}
	if name == "*" {
		return "*", "*", nil
	}
	if mcp && !strings.Contains(name, "__") {
		return name, "*", checkServer(name, servers) // mcp__github is every tool of github
	}
	found := -1
	for i := 1; i < len(name); i++ {
		sep := separator(name[i:], mcp)
		if sep == 0 || i+sep == len(name) || !slices.Contains(servers, name[:i]) {
			continue
		}
		if found >= 0 && server != name[:i] {
			return "", "", fmt.Errorf("could mean a tool of %q or of %q: rename one of the servers", server, name[:i])
		}
		if found < 0 {
			found, server, tool = i, name[:i], name[i+sep:]
		}
	}
	if found >= 0 {
		return server, tool, nil
	}
	for _, sep := range []string{"__", ".", ":"} {
		if server, tool, ok := strings.Cut(name, sep); ok && server != "" && tool != "" {
			if server == "*" {
				return server, tool, nil
			}
			return server, tool, checkServer(server, servers)
		}
	}
	return "", "", errNoServer
}

// separator gives the length of the separator s starts with, or 0.
func separator(s string, mcp bool) int {
	switch {
	case strings.HasPrefix(s, "__"):
		return 2
	case !mcp && (s[0] == '.' || s[0] == ':'):
		return 1
	}
	return 0
}

func checkServer(server string, servers []string) error {
	switch {
	case strings.Contains(server, "*"):
		return errors.New("a wildcard in the server's name would follow any server that takes such a name")
	case servers == nil || slices.Contains(servers, server):
		return nil
	}
	return fmt.Errorf("there is no server %q%s", server, didYouMean(server, servers))
}

// parseArgs reads what stands between the parentheses: name: pattern, or name=pattern, with commas between; or one
// pattern without a name.
func parseArgs(src string) ([]argPattern, error) {
	src = strings.TrimSpace(src)
	if src == "" {
		return nil, errors.New("the parentheses are empty; leave them out to mean every call")
	}
	if argName(src) == 0 {
		a, err := parseArg("", src)
		return []argPattern{a}, err
	}
	var out []argPattern
	for src != "" {
		n := argName(src)
		name := strings.TrimSpace(src[:n])
		rest := src[n+1:]
		end := argEnd(rest)
		a, err := parseArg(name, strings.TrimSpace(rest[:end]))
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", name, err)
		}
		out = append(out, a)
		if end == len(rest) {
			break
		}
		src = strings.TrimSpace(rest[end+1:])
	}
	return out, nil
}

// argName gives the length of the argument's name src starts with, up to its ':' or '=', or 0. A link's "https://" is none.
func argName(src string) int {
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == ':' && strings.HasPrefix(src[i:], "://"):
			return 0
		case c == ':', c == '=':
			return i
		case c == '_' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z':
		default:
			return 0
		}
	}
	return 0
}

// argEnd finds the comma that ends a value: outside quotes, not escaped, and followed by another name.
func argEnd(src string) int {
	quoted := false
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ',':
			if !quoted && argName(strings.TrimSpace(src[i+1:])) > 0 {
				return i
			}
		}
	}
	return len(src)
}

func parseArg(name, src string) (argPattern, error) {
	a := argPattern{name: name}
	if name != "" {
		a.path = strings.Split(name, ".")
		if slices.Contains(a.path, "") {
			return a, errors.New("an empty name between dots")
		}
	}
	if src == "" {
		return a, errors.New(`the pattern is empty; write "" for the empty text, * for any`)
	}
	if name != "" && len(src) >= 2 && src[0] == '"' && src[len(src)-1] == '"' {
		text, err := unquote(src[1 : len(src)-1])
		if err != nil {
			return a, err
		}
		a.quoted = true
		a.value = literalValue(text)
		return a, nil
	}
	var err error
	a.value, err = newValue(src)
	return a, err
}

func unquote(src string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(src); i++ {
		switch {
		case src[i] == '"':
			return "", errors.New(`a quote inside a quoted text; write \"`)
		case src[i] == '\\' && i+1 < len(src):
			i++
		}
		b.WriteByte(src[i])
	}
	return b.String(), nil
}

// literalValue is a pattern that only text matches.
func literalValue(text string) valuePattern {
	g := literalGlob(text)
	return valuePattern{text: g, wide: g.folded(), line: text, cmdErr: errors.New("write the command without quotes around it")}
}

func newValue(src string) (valuePattern, error) {
	var v valuePattern
	var err error
	if v.text, err = newGlob(src, true); err != nil {
		return v, err
	}
	v.wide = v.text.wide().folded()
	if v.text.exact() {
		v.number = canonicalNumber(v.text.lits[0])
		v.line = v.text.lits[0]
	} else if strings.Contains(src, "://") {
		if v.url, err = newURLPattern(src); err != nil {
			return v, err
		}
	}
	v.command, v.cmdErr = commandGlobs(src)
	for _, g := range v.command {
		v.folded = append(v.folded, g.folded())
	}
	return v, nil
}

// allows reports whether an allow rule's pattern matches a text: exactly, and a wildcard only what is what it seems.
func (v *valuePattern) allows(s string) bool {
	switch {
	case v.text.exact():
		return s == v.text.lits[0]
	case v.url != nil:
		return v.url.match(s)
	case v.text.all():
		return true
	case !v.pathLike():
		return v.text.match(s)
	}
	return plainPath(s) && v.text.match(s)
}

// pathLike reports whether the pattern speaks about components between slashes.
func (v *valuePattern) pathLike() bool {
	return slices.ContainsFunc(v.text.lits, func(l string) bool { return strings.Contains(l, "/") })
}

// denies reports whether a deny or ask rule's pattern matches a text in any spelling.
func (v *valuePattern) denies(s string) bool {
	return v.wide.all() || spellings(s, v.wide.match)
}

// covers reports whether an allow rule's v matches every value that an allow rule's w matches.
func (v *valuePattern) covers(w *valuePattern) bool {
	switch {
	case w.text.exact():
		return v.allows(w.text.lits[0])
	case v.url != nil:
		return w.url != nil && v.url.covers(w.url)
	case v.pathLike() && !w.pathLike():
		return false // w also matches what is no plain path
	}
	return v.text.covers(w.text)
}
