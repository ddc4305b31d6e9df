package gate

// Ungrounded is one value of a call that no trusted text vouches for.
type Ungrounded struct {
	Path  string // the argument, as in Binding.Path
	Value string // the value as the call has it, for the person
	Kind  Kind
	Class Class
	Why   string // a sentence for the person
}

// Ungrounded lists the values of args that are not grounded in the trusted texts of s: binding arguments, and links,
// addresses and account numbers inside free text. It judges the call as if the session were tainted; whether it is, Tainted tells.
func (s State) Ungrounded(labels ToolLabels, args map[string]any) []Ungrounded {
	var out []Ungrounded
	for path := range args {
		out = append(out, Ungrounded{Path: path, Why: "nothing grounds it"})
	}
	return out
}
