package gate

import (
	"fmt"
	"slices"
	"strings"
)

// commandArgs are the arguments of a known tool that hold shell commands; ok is false where its schema tells nothing.
func (c *compiler) commandArgs(def ToolDef) (names []string, ok bool) {
	var extra []string
	if t := c.toolSpec(def.Server, def.Name); t != nil {
		extra = t.Commands
	}
	props := plainProps(def.InputSchema)
	for p := range props {
		if isCommandArg(p, extra) {
			names = append(names, p)
		}
	}
	return names, len(props) > 0
}

// plainProps gives the properties of an object's schema; nil where the schema does not list them plainly.
func plainProps(schema any) map[string]any {
	s, _ := schema.(map[string]any)
	if s["$ref"] != nil || s["patternProperties"] != nil || s["allOf"] != nil || s["anyOf"] != nil || s["oneOf"] != nil {
		return nil
	}
	props, _ := s["properties"].(map[string]any)
	return props
}

// checkArgs refuses argument patterns that no call of the matched tools can meet, and patterns that are not what they seem.
func (c *compiler) checkArgs(r *rule, matched []ToolDef) {
	line, text := r.src.Line, r.src.Text
	seen := map[string]bool{}
	for i := range r.pat.args {
		a := &r.pat.args[i]
		if seen[a.name] {
			c.refuse(line, text, "names the argument %q twice; a call has it once", a.name)
		}
		seen[a.name] = true
		c.checkCommandPattern(r, a, matched)
		if len(matched) == 0 {
			continue
		}
		if a.name == "" {
			c.checkBare(r, matched)
			continue
		}
		var near []string
		possible, why := false, ""
		for _, def := range matched {
			sub, names, plain := schemaAt(def.InputSchema, a)
			near = append(near, names...)
			if !plain {
				possible = true
				break
			}
			if sub == nil {
				continue
			}
			if w := unmatchable(sub, a, r.answer); w != "" {
				why = w
				continue
			}
			possible = true
		}
		switch {
		case possible:
		case why != "":
			c.refuse(line, text, "can match nothing: the argument %q %s", a.name, why)
		default:
			c.refuse(line, text, "there is no argument %q%s", a.name, didYouMean(a.name, near))
		}
	}
}

// checkCommandPattern refuses what could only be meant for the text of a whole line.
func (c *compiler) checkCommandPattern(r *rule, a *argPattern, matched []ToolDef) {
	if a.value.cmdErr == nil || r.answer != Allow || a.value.line != "" {
		return
	}
	command := isCommandArg(a.name, nil)
	for _, def := range matched {
		names, _ := c.commandArgs(def)
		command = command || a.name == "" && len(names) > 0 || slices.Contains(names, a.name)
	}
	if command || a.name == "" && len(matched) == 0 && isShellName(r.pat.tool.source()) {
		c.refuse(r.src.Line, r.src.Text, "%v", a.value.cmdErr)
	}
}

// checkBare refuses a pattern without an argument's name where it is not clear which argument is meant.
func (c *compiler) checkBare(r *rule, matched []ToolDef) {
	if r.answer != Allow {
		return // looks at every value of the call
	}
	for _, def := range matched {
		names, plain := c.commandArgs(def)
		if props := plainProps(def.InputSchema); plain && len(names) == 0 && len(props) != 1 {
			c.refuse(r.src.Line, r.src.Text, "%s.%s has several arguments; write which one: %s.%s(%s: …)", def.Server, def.Name, def.Server, def.Name, firstName(props))
			return
		}
	}
}

func firstName(props map[string]any) string {
	first := ""
	for p := range props {
		if first == "" || p < first {
			first = p
		}
	}
	return first
}

// schemaAt finds the schema of an argument. plain is false where the schema does not tell; sub is nil where it says there
// is no such argument, and names are those it has.
func schemaAt(schema any, a *argPattern) (sub map[string]any, names []string, plain bool) {
	for i := 0; ; i++ {
		for s, _ := schema.(map[string]any); s["type"] == "array"; s, _ = schema.(map[string]any) {
			schema = s["items"]
		}
		if i == len(a.path) {
			sub, ok := schema.(map[string]any)
			return sub, names, ok
		}
		props := plainProps(schema)
		if props == nil {
			return nil, names, false
		}
		if i == 0 {
			if whole, ok := props[a.name].(map[string]any); ok {
				return whole, names, true
			}
		}
		for p := range props {
			names = append(names, strings.Join(append(slices.Clone(a.path[:i]), p), "."))
		}
		slices.Sort(names)
		next, ok := props[a.path[i]]
		if !ok {
			return nil, names, true
		}
		schema = next
	}
}

// unmatchable says why no value the schema permits can match, or "".
func unmatchable(schema map[string]any, a *argPattern, answer Answer) string {
	try := func(v any) bool {
		if answer == Allow {
			return leafAllowed(v, a, nil, 0)
		}
		return leafDenied(v, a, nil, 0)
	}
	values, _ := schema["enum"].([]any)
	if v, ok := schema["const"]; ok {
		values = []any{v}
	}
	if len(values) > 0 {
		var texts []string
		for _, v := range values {
			if try(v) {
				return ""
			}
			if t, _, ok := scalar(v); ok {
				texts = append(texts, t)
			}
		}
		return fmt.Sprintf("is one of %s%s", strings.Join(texts, ", "), didYouMean(a.value.text.source(), texts))
	}
	switch typ := schema["type"]; {
	case a.value.text.all():
	case (typ == "integer" || typ == "number") && (a.quoted || a.value.number == "" && a.value.text.exact()):
		return "is a number"
	case typ == "boolean" && (a.quoted || !try(true) && !try(false)):
		return "is true or false"
	}
	return ""
}

func (c *compiler) checkLabelPath(line int, tool, name string, def ToolDef) {
	sub, names, plain := schemaAt(def.InputSchema, &argPattern{name: name, path: strings.Split(name, ".")})
	if plain && sub == nil {
		c.refuse(line, tool, "there is no argument %q%s", name, didYouMean(name, names))
	}
}
