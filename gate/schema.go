package gate

import (
	"slices"
	"strings"
)

// property is one argument as a tool's input schema has it.
type property struct {
	name   string
	words  []string // of the name
	desc   []string // of the description's first sentence
	types  []string
	format string
	enum   bool
	seen   int // schemas read for it
}

// maxProperties bounds how much of one schema is read: the rest is unknown to the labels, so it is binding.
const maxProperties = 256

func properties(schema any) []property {
	root, _ := schema.(map[string]any)
	props, _ := root["properties"].(map[string]any)
	var out []property
	for _, name := range sortedKeys(props) {
		if len(out) == maxProperties {
			break
		}
		p := property{name: name, words: camel(name)}
		def, _ := props[name].(map[string]any)
		p.read(def, 0)
		if text, ok := def["description"].(string); ok {
			p.desc = firstSentence(text)
		}
		out = append(out, p)
	}
	return out
}

// read collects the types of a schema, through lists and alternatives.
func (p *property) read(def map[string]any, depth int) {
	if p.seen++; def == nil || depth > maxNest || p.seen > maxProperties {
		return
	}
	switch t := def["type"].(type) {
	case string:
		p.types = append(p.types, t)
	case []any:
		for _, e := range t {
			if s, ok := e.(string); ok {
				p.types = append(p.types, s)
			}
		}
	}
	if f, ok := def["format"].(string); ok {
		p.format = f
	}
	if e, ok := def["enum"].([]any); ok && len(e) > 0 {
		p.enum = true
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		alternatives, _ := def[key].([]any)
		for _, a := range alternatives {
			sub, _ := a.(map[string]any)
			p.read(sub, depth+1)
		}
	}
	items, _ := def["items"].(map[string]any)
	p.read(items, depth+1)
}

// is reports whether the last word of the name is one of words: "participant_emails" is a mail, "email_body" is a body.
func (p property) is(words map[string]bool) bool {
	if len(p.words) == 0 {
		return false
	}
	return words[p.words[len(p.words)-1]] || words[strings.Join(p.words, "_")]
}

// text reports whether the argument can be a string. A schema without types says nothing against it.
func (p property) text() bool {
	return len(p.types) == 0 || slices.Contains(p.types, "string") || slices.Contains(p.types, "object")
}

func (p property) number() bool {
	return !p.text() && (slices.Contains(p.types, "integer") || slices.Contains(p.types, "number"))
}

// carries reports whether the argument brings something in, which a tool that only reads has no use for.
func (p property) carries() bool {
	return p.is(contentWords) && p.text() && !p.enum
}

// kind is what the name and format of an argument say about its values; Text where they say nothing.
func (p property) kind() Kind {
	switch p.format {
	case "email", "idn-email":
		return Mail
	case "uri", "url", "iri", "uri-reference":
		return Link
	case "hostname", "idn-hostname", "ipv4", "ipv6":
		return Host
	case "uuid":
		return ID
	case "date", "time", "date-time":
		return Time
	case "password":
		return Secret
	}
	kind := kindOf(p.words, Text)
	if kind == Any && p.mentions("email") {
		return Mail
	}
	return kind
}

// kindOf reads the words of an argument's name, the last one first in weight.
func kindOf(w []string, otherwise Kind) Kind {
	if len(w) == 0 {
		return otherwise
	}
	last := w[len(w)-1]
	switch {
	case idWords[last]:
		return ID
	case linkWords[last]:
		return Link
	case accountWords[last]:
		return Account
	case secretWords[last]:
		return Secret
	case phoneWords[last]:
		return Phone
	case mailWords[last]:
		return Mail
	case peopleWords[last]: // who, in whatever form people are named there
		return Any
	case hostWords[last]:
		return Host
	case pathWords[last], last == "name" && len(w) > 1 && pathWords[w[0]]:
		return Path
	case nameWords[last], last == "name":
		return Name
	}
	return otherwise
}

// binding tells the kind of a binding argument and why it is one; "" for an argument that is text.
func (p property) binding(d *drafter) (Kind, string) {
	if len(p.types) > 0 && !slices.Contains(p.types, "string") && !slices.Contains(p.types, "object") && !p.number() {
		return Any, "" // a switch
	}
	kind := p.kind()
	switch {
	case p.enum && kind != Mail && kind != Link:
		return Any, ""
	case d.verb == verbPays && p.is(memoWords): // the text that goes with a payment
		return Any, ""
	case p.is(codeWords) && d.labels.Effects&Exec != 0:
		return Text, "it is what runs"
	case kind == ID:
		return ID, "an id says what is acted on"
	case p.number(), kind == Time:
		return Any, ""
	case kind != Text && !(p.is(anchorWords) && !p.namesTarget(d)):
		return kind, "its name says who or what: " + kind.String()
	case p.is(textWords) || p.is(anchorWords):
		return Any, ""
	case p.mentions("email", "recipient", "address", "attachment"):
		return Any, "its description speaks of who or what"
	case d.cost == Credential:
		return Any, "it is the account's own data"
	}
	if d.labels.Effects == Unknown || d.cost == Unclassed {
		return Any, "nothing says that it is only text"
	}
	return Name, "nothing says that it is only text"
}

// namesTarget tells the "name" of something that is there from the name of something new.
func (p property) namesTarget(d *drafter) bool { return d.verb != verbMakes || len(p.words) > 1 }

func (p property) mentions(what ...string) bool {
	return slices.ContainsFunc(p.desc, func(w string) bool { return slices.Contains(what, singular(w)) })
}
