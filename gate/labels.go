package gate

import (
	"fmt"
	"slices"
	"strings"
)

// Effects is the set of things a call of a tool can do. The zero value is "unknown" and is judged as [Unknown].
type Effects uint8

const (
	Read  Effects = 1 << iota // gives back what is stored, at a place no argument chooses
	Write                     // changes something that stays
	Send                      // reaches a destination an argument chooses; a web fetch is a send
	Exec                      // runs code or commands
)

// Unknown is what a tool counts as about which nothing was said.
const Unknown = Write | Send

var effectNames = []string{"read", "write", "send", "exec"}

// Acting reports whether a call with these effects can do more than read.
func (e Effects) Acting() bool { return e == 0 || e&(Write|Send|Exec) != 0 }

// Names lists the effects in a fixed order; those of [Unknown] for the zero value.
func (e Effects) Names() []string {
	if e == 0 {
		e = Unknown
	}
	var names []string
	for i, name := range effectNames {
		if e&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (e Effects) String() string { return strings.Join(e.Names(), "+") }

// ParseEffects reads effects by name, in any order.
func ParseEffects(names []string) (Effects, error) {
	var e Effects
	for _, name := range names {
		i := slices.Index(effectNames, name)
		if i < 0 {
			return 0, fmt.Errorf("unknown effect %q; the effects are %s", name, strings.Join(effectNames, ", "))
		}
		e |= 1 << i
	}
	return e, nil
}

// Class says what a wrong value of a binding argument costs, and with it which trusted texts may ground it. The zero value
// is the strictest: nothing is known about the argument, so only the person's own words ground it.
type Class uint8

const (
	Unclassed  Class = iota // unknown: the user's words or approved values only
	Ordinary                // any trusted text may ground it
	Money                   // payments, orders, bookings: user's words or approved values only, as all below
	Deletion                // what cannot be read again afterwards
	Sharing                 // who may read a stored thing from now on
	Credential              // passwords, keys, the account's own settings
	Invitation              // who becomes a member
	Publishing              // what anyone may read
)

var classNames = []string{"unclassed", "ordinary", "money", "deletion", "sharing", "credential", "invitation", "publishing"}

func (c Class) String() string { return name(classNames, uint8(c)) }

// OwnWords reports whether only the user's words and values a person approved ground an argument of this class.
func (c Class) OwnWords() bool { return c != Ordinary }

func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func (c *Class) UnmarshalText(text []byte) error {
	i, err := parseName("class", classNames, string(text))
	*c = Class(i)
	return err
}

// Binding is one argument that says who or what a call acts on.
type Binding struct {
	Path   string // the argument's name, with dots for fields of objects; lists are walked: "to", "attachments.file_id"
	Kind   Kind   // how its values are read; the zero value finds out from the value
	Class  Class
	Reason string // why the drafter thinks so, for people; no effect
}

// ToolLabels is what the gate knows about a tool: its own labels from the operator's file, or those of [Draft].
// The zero value is a tool about which nothing is known: [Unknown] effects, and every argument is binding.
type ToolLabels struct {
	Server, Tool string
	Effects      Effects
	Bind         []Binding
	Text         []string // arguments that are free text: links, addresses and accounts inside them must be grounded
	Anchor       []string // arguments that name what is made (a title); where nothing else binds a call, they must be trusted words
	Trusted      bool     // its results hold no third party's words; false taints
	Reasons      []string // one sentence for each drafted effect, for people; no effect
}

// ToolDef is a tool as its server describes it. The texts are the server's own words, so they can only add caution.
type ToolDef struct {
	Server, Name, Description string
	InputSchema               any            // parsed JSON Schema: map[string]any or nil
	Annotations               map[string]any // the server's hints
}

func name(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%d", i)
}

func parseName(what string, names []string, s string) (uint8, error) {
	i := slices.Index(names, s)
	if i < 0 {
		return 0, fmt.Errorf("unknown %s %q; one of %s", what, s, strings.Join(names, ", "))
	}
	return uint8(i), nil
}
