package gate

import (
	"fmt"
	"slices"
	"strings"
)

// Ungrounded is one value of a call that no trusted text vouches for.
type Ungrounded struct {
	Path  string // the argument, as in Binding.Path; "" where the call as a whole names nothing that could be checked
	Value string // the value as the call has it, for the person
	Kind  Kind
	Class Class
	Rule  Grounds // which rule it fails
	Why   string  // a sentence for the person
}

// Grounds names a rule about grounded arguments: a stable token, for programs and for measuring what each rule is worth.
type Grounds string

const (
	RuleValue    Grounds = "value"    // a binding value stands in no trusted text
	RuleClass    Grounds = "class"    // it stands in one that does not count for what the call does
	RuleDisguise Grounds = "disguise" // a value is written so that it can be taken for another
	RuleText     Grounds = "text"     // free text holds a link, address, account or telephone number of no trusted text
	RuleAnchor   Grounds = "anchor"   // the call names nobody, and what it makes is not called by trusted words
	RuleSize     Grounds = "size"     // too large or too deep to be judged
)

// Ungrounded lists the values of args that are not grounded in the trusted texts of s: binding arguments, and links,
// addresses and account numbers inside free text. Arguments that labels do not know are binding. It judges the call as if
// the session were tainted; whether it is, Tainted tells. A call that can only read needs no grounds.
func (s State) Ungrounded(labels ToolLabels, args map[string]any) []Ungrounded {
	if !labels.Effects.Acting() {
		return nil
	}
	g := grounding{state: s, labels: labels}
	for _, path := range sortedKeys(args) {
		if !fieldName(path) && !labels.knows(path) {
			g.leaf(path, "", Binding{Path: path}, path)
		}
		if b, ok := labels.binding(path); ok {
			g.bind(path, path, b, args[path], 0)
		} else {
			g.text(path, args[path])
		}
	}
	if !g.anchored && !g.refused {
		g.anchor(args)
	}
	return g.out
}

// binding finds the label of an argument. An argument that is neither binding nor text is one nobody has looked at.
func (l ToolLabels) binding(arg string) (Binding, bool) {
	for _, b := range l.Bind {
		if top, _, _ := strings.Cut(b.Path, "."); top == arg {
			return b, true
		}
	}
	if slices.Contains(l.Text, arg) || slices.Contains(l.Anchor, arg) {
		return Binding{}, false
	}
	return Binding{Path: arg}, true
}

// knows reports whether an argument's name stands in the labels, so that it is the schema's.
func (l ToolLabels) knows(arg string) bool {
	known := func(path string) bool { top, _, _ := strings.Cut(path, "."); return top == arg }
	return slices.ContainsFunc(l.Bind, func(b Binding) bool { return known(b.Path) }) || slices.Contains(l.Text, arg) || slices.Contains(l.Anchor, arg)
}

type grounding struct {
	state    State
	labels   ToolLabels
	out      []Ungrounded
	anchored bool // a grounded binding value says who or what the call is about
	refused  bool // a binding value is not grounded
}

func (g *grounding) refuse(path, val string, b Binding, rule Grounds, why string) {
	g.out = append(g.out, Ungrounded{Path: path, Value: val, Kind: b.Kind, Class: b.Class, Rule: rule, Why: why})
}

// bind judges a binding argument: every leaf of it.
func (g *grounding) bind(path, field string, b Binding, v any, depth int) {
	if depth > maxNest {
		g.refuse(path, "", b, RuleSize, "it is nested too deeply to be judged")
		g.refused = true
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			sub := b
			for _, known := range g.labels.Bind {
				if known.Path == path+"."+key {
					sub = known
				}
			}
			if word := camel(key); len(word) > 0 && formFields[word[len(word)-1]] && enumLike(v[key]) {
				if all := everyone(v[key].(string)); all != "" {
					g.leaf(path+"."+key, key, sub, all)
				}
				continue // {"type": "file"} says how to read the rest; {"type": "anyone"} says who
			}
			if !fieldName(key) { // {"ann@home.example": "to"}: the name is the value
				g.leaf(path, field, b, key)
			}
			sub.Kind = kindOf(camel(key), sub.Kind)
			g.bind(path+"."+key, key, sub, v[key], depth+1)
		}
	case []any:
		for _, e := range v {
			g.bind(path, field, b, e, depth+1)
		}
	case bool:
		if all := everyone(field); v && all != "" { // {"public": true}: the name is the value
			g.leaf(path, field, b, all)
		}
	default:
		if leaf, ok := leafText(v); ok && strings.TrimSpace(leaf) != "" {
			g.leaf(path, field, b, leaf)
		}
	}
}

func (g *grounding) leaf(path, field string, b Binding, leaf string) {
	v, ok := parseValue(leaf, b.Kind)
	if !ok {
		g.refuse(path, leaf, b, RuleDisguise, "it is too long, or written so that it can be taken for something else, and such a value is never compared")
		g.refused = true
		return
	}
	from := g.state.origins(v, leaf, b.Kind, g.labels, field)
	switch {
	case from == 0:
		g.refuse(path, leaf, b, RuleValue, fmt.Sprintf("this %s stands in nothing you said, in no store and in no trusted result", noun(v, b.Kind)))
	case b.Class.OwnWords() && from&ownWords == 0:
		g.refuse(path, leaf, b, RuleClass, fmt.Sprintf("this %s is known, but for %s only your own words or your approval count", noun(v, b.Kind), b.Class.about()))
	case from&fromSelf == 0 || from&ownWords != 0:
		g.anchored = true
		return
	default: // the user's own address: it does not say that the user wants the deed
		return
	}
	g.refused = true
}

// origins tells who vouches for the whole value.
func (s State) origins(v value, raw string, hint Kind, labels ToolLabels, field string) origin {
	raw = strings.TrimSpace(raw)
	switch v.kind {
	case ID, Secret:
		if !shortNumber(raw) {
			return s.known[digestOf(spaceToken, raw)] | s.part(field, strings.ToLower(raw))
		}
		from := s.known[digestOf(spaceNum, numKey("", raw))]
		for _, noun := range nouns(field, labels.Tool) {
			from |= s.known[digestOf(spaceNum, numKey(noun, raw))]
			from |= s.known[digestOf(spaceNum, numKey(labels.Server+"\x00"+noun, raw))]
		}
		return from
	case Name, Text:
		w := strings.Fields(v.canon)
		switch {
		case len(w) == 0 || len(w) == 1 && stopWords[w[0]]:
			return 0
		case len(w) <= maxRun:
			return s.known[digestOf(spaceRun, v.canon)] | s.part(field, v.canon)
		}
		from := ^origin(0)
		for i := 0; i+maxRun <= len(w); i++ {
			from &= s.known[digestOf(spaceRun, strings.Join(w[i:i+maxRun], " "))]
		}
		return from
	case Link:
	case Account, Phone:
		return s.known[digestOf(v.kind.String(), v.canon)] | s.known[digestOf(spaceToken, raw)]
	}
	return s.known[digestOf(v.kind.String(), v.canon)]
}

// part looks a name up among the halves of the user's "owner/name", where the argument is called like one of them.
func (s State) part(field, canon string) origin {
	switch w := camel(field); {
	case len(w) == 0:
	case ownerWords[w[len(w)-1]]:
		return s.known[digestOf(spaceOwner, canon)]
	case repoWords[w[len(w)-1]]:
		return s.known[digestOf(spaceRepo, canon)]
	}
	return 0
}

// nouns says what the values of an argument count as: the words of its own name, or those of its tool where the name says
// no more than "id".
func nouns(field, tool string) []string {
	own := slices.DeleteFunc(camel(field), func(w string) bool { return idWords[w] })
	if len(own) > 0 {
		return own
	}
	d := drafter{name: camel(tool)}
	if i := d.findVerb(); i >= 0 {
		return slices.Delete(d.name, i, i+1)
	}
	return d.name
}

// text judges a free text argument: every link, address, account and telephone number in it.
func (g *grounding) text(path string, v any) {
	seen := map[string]bool{}
	if tooDeep(v, 0) {
		g.refuse(path, "", Binding{Kind: Text, Class: Ordinary}, RuleSize, "it is nested too deeply to be searched for links and addresses")
	}
	search := func(p, leaf string) {
		if len(leaf) > maxScan {
			g.refuse(p, "", Binding{Kind: Text, Class: Ordinary}, RuleSize, "it is too long to be searched for links and addresses")
			return
		}
		open := map[value]bool{}
		for _, val := range scan(leaf) {
			open[val] = true
			g.inText(p, val, seen, "")
		}
		if clear := unmask(leaf); clear != leaf {
			for _, val := range scan(clear) {
				if !open[val] {
					g.inText(p, val, seen, "it is written in a disguise, as which it is never compared")
				}
			}
		}
	}
	walk(path, v, 0, search)
	walkNames(v, 0, func(name string) { search(path, name) })
}

func (g *grounding) inText(path string, v value, seen map[string]bool, disguise string) {
	switch v.kind {
	case Mail, Link, Host, Account, Phone:
	default:
		return
	}
	if seen[v.canon] {
		return
	}
	from := g.state.origins(v, v.canon, v.kind, g.labels, "")
	if v.kind == Account || v.kind == Phone { // digits are read as both
		from |= g.state.known[digestOf(Account.String(), v.canon)] | g.state.known[digestOf(Phone.String(), v.canon)] | g.state.known[digestOf(spaceToken, v.canon)]
	}
	if v.kind == Host { // also the name of a file, where a trusted text calls it that
		from |= g.state.known[digestOf(spaceToken, v.canon)]
	}
	if from != 0 && disguise == "" {
		return
	}
	seen[v.canon] = true
	rule, why := RuleDisguise, disguise
	if why == "" {
		rule = RuleText
		why = fmt.Sprintf("the text holds a %s that stands in nothing you said, in no store and in no trusted result", v.kind)
	}
	g.refuse(path, v.written(), Binding{Kind: v.kind, Class: Ordinary}, rule, why)
}

// anchor judges a call that names nobody but the user: an entry in one's own calendar, a note, a post to a place that is
// fixed. What it is called must then consist of trusted words; where nothing is called anything, all of its texts must.
func (g *grounding) anchor(args map[string]any) {
	names := slices.DeleteFunc(slices.Clone(g.labels.Anchor), func(a string) bool { return !isText(args[a]) })
	if len(names) > 0 {
		for _, a := range names {
			if g.covered(args[a]) {
				return
			}
		}
		g.refuse(names[0], args[names[0]].(string), Binding{Kind: Text, Class: Ordinary}, RuleAnchor, "the call names nobody, and this name is not made of your words or of known names")
		return
	}
	any := false
	for _, path := range sortedKeys(args) {
		if isText(args[path]) && saysSomething(args[path].(string)) {
			any = true
			if !g.covered(args[path]) {
				g.refuse(path, args[path].(string), Binding{Kind: Text, Class: Ordinary}, RuleAnchor, "the call names nobody, and this text is not made of your words or of known names")
			}
		}
	}
	if !any && len(g.out) == 0 {
		g.refuse("", "", Binding{}, RuleAnchor, "the call names nothing that could be compared with what you said")
	}
}

func isText(v any) bool {
	s, ok := v.(string)
	return ok && strings.TrimSpace(s) != ""
}

// saysSomething is false for times and numbers: they need no words of the user's.
func saysSomething(s string) bool {
	_, isTime := parseTime(s)
	return hasLetter(s) && !isTime
}

// covered reports whether every word of a text is a trusted word.
func (g *grounding) covered(v any) bool {
	s, _ := v.(string)
	w := words(s)
	if len(w) == 0 || !plain(s) {
		return false
	}
	trusted := 0
	for _, word := range w {
		if g.state.known[digestOf(spaceWord, word)] != 0 {
			trusted++
		} else if !stopWords[word] {
			return false
		}
	}
	return trusted > 0
}

// formFields say how to read a value, not who or what it is.
var formFields = set(`type kind format mode encoding mime mimetype unit`)

// reach are the words that open something to people whom nobody named.
var reach = set(`anonymous anybody anyone domain everybody everyone guest internet public unauthenticated world`)

// people are whom "all" can be about.
var people = set(`authenticated guest member people user`)

// everyone gives the word in s that means people whom nobody named; "" if none does.
func everyone(s string) string {
	words := camel(s)
	for _, word := range words {
		if reach[word] {
			return word
		}
	}
	if len(words) > 1 && words[0] == "all" && people[words[1]] { // allUsers
		return s
	}
	return ""
}

// enumLike reports whether a value is one plain word, as the choices of a schema are.
func enumLike(v any) bool {
	s, ok := v.(string)
	return ok && len(s) <= 24 && isToken(s) && !strings.ContainsAny(s, ".@:#/") && plain(s)
}

// about names what a class is for, in a sentence.
func (c Class) about() string {
	switch c {
	case Money:
		return "payments and bookings"
	case Deletion:
		return "deleting"
	case Sharing:
		return "sharing"
	case Credential:
		return "passwords and account data"
	case Invitation:
		return "inviting"
	case Publishing:
		return "publishing"
	}
	return "this argument"
}

func noun(v value, hint Kind) string {
	if hint != Any && hint != Text {
		return hint.String()
	}
	return v.kind.String()
}
