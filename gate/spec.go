package gate

// Spec is a policy as the operator wrote it. The zero value asks for everything.
type Spec struct {
	Permissions Permissions
	Rules       []Rule
	Tools       []ToolSpec // what the tools can do; a tool that is absent is judged as the zero [ToolLabels]
	Servers     []string   // the servers of the configuration; a rule about another is refused. nil: not checked
	Known       []ToolDef  // the pinned tools; a rule that matches none of them is refused. nil: not checked
	Sandboxed   []string   // the servers that run in the sandbox, so that a deny by text is not all that stands

	Mode           Mode
	DenyUngrounded bool     // refuse what is not grounded instead of asking
	Task           []Source // the tools the task needs, as patterns without arguments. Empty: none named
}

// Source is a piece of the operator's file.
type Source struct {
	Text string
	Line int // 0 where unknown
}

// Permissions are rules in their short form: server.tool, server.tool(argument: pattern, …) and their other spellings.
type Permissions struct{ Deny, Ask, Allow []Source }

// Rule is a rule in its long form.
type Rule struct {
	Name    string // for people; "" means its tool pattern
	Answer  Answer
	Tool    Source // a pattern as in [Permissions]
	When    Source // a CEL condition; "" means always
	Because string // a sentence for the person who is asked
	Tests   []RuleTest
}

// RuleTest is a call with the answer the whole policy must give to it. It runs when the policy is compiled.
type RuleTest struct {
	Line      int
	Tool      string // server.tool
	Args      map[string]any
	Principal string
	Tainted   bool     // the session has read untrusted content
	Reads     []string // the sources it was read from; makes the session tainted
	Said      []string // what the user said before
	Expect    Answer
}

// ToolSpec is what the operator says about a tool.
type ToolSpec struct {
	Line     int
	Labels   ToolLabels
	Commands []string // arguments that hold shell commands, besides those whose names say so
}
