package gate

import "fmt"

// Answer is what the gate says to a call. The zero value is Deny.
type Answer uint8

const (
	Deny  Answer = iota // refused
	Ask                 // only if a person, out of the agent's reach, says yes
	Allow               // go on
)

var answerNames = []string{"deny", "ask", "allow"}

func (a Answer) String() string { return name(answerNames, uint8(a)) }

func (a Answer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func (a *Answer) UnmarshalText(text []byte) error {
	i, err := parseName("answer", answerNames, string(text))
	*a = Answer(i)
	return err
}

// Reason is a stable token for why a decision fell as it did: for programs, audit lines and the agent. It holds no text of
// the call.
type Reason string

const (
	ByRule       Reason = "rule"               // a rule of the operator says so
	RuleError    Reason = "rule-error"         // the condition of a deny or ask rule could not be evaluated
	NoRule       Reason = "no-rule"            // no rule allows it
	CommandParts Reason = "command-part"       // a part of a shell command is not allowed by any rule
	Unresolved   Reason = "command-unresolved" // a shell command whose effect cannot be read from its text
	Limit        Reason = "limit"              // the call is larger or deeper than the gate will judge
	Tainted      Reason = "tainted"            // the session has read untrusted content
	NotGrounded  Reason = "not-grounded"       // an argument that decides who or what comes from no trusted text
	NoTarget     Reason = "no-target"          // after taint, a call that names no target nobody can check
	NotInTask    Reason = "not-in-task"        // the task named beforehand does not use this tool
	NotCommitted Reason = "not-committed"      // isolation: the tool was not used before untrusted content was read
	BudgetSpent  Reason = "budget"             // too many refusals in this session
)

// AgentText is what the agent may be told about a call that was not made: constant for each reason, so that a refusal
// carries nothing from the call or the policy to whoever wrote the agent's instructions.
func (r Reason) AgentText() string {
	return "This call was not permitted (" + string(r) + "). The person in charge can see why. Do not try it in another form; go on without it or tell the user."
}

// Decision is the gate's answer with its grounds. The zero value denies.
type Decision struct {
	Answer     Answer
	Rule       string       // the rule that decided, as the operator wrote it, with its line; "" where none did
	Reason     Reason       // a stable token
	Text       string       // a sentence for the person, not for the agent; it holds nothing of the call
	Ungrounded []Ungrounded // after taint: the arguments no trusted text vouches for
}

// Least returns the strictest of decisions, the first of equals; without any, the zero Decision, which denies. A child
// session has its parent's authority cut with its own: Least(parent, child).
func Least(decisions ...Decision) Decision {
	if len(decisions) == 0 {
		return Decision{}
	}
	least := decisions[0]
	for _, d := range decisions[1:] {
		if d.Answer < least.Answer {
			least = d
		}
	}
	return least
}

// Mode says what a tainted session may still do without asking.
type Mode uint8

const (
	Grounded  Mode = iota // calls that act need their binding arguments grounded in trusted text
	TaintOnly             // every call that acts asks
	Filter                // as Grounded, and in no session, tainted or not, a tool outside the task named beforehand
	Isolation             // as Grounded, and only tools that were called before the taint
)

var modeNames = []string{"grounded", "taint_only", "filter", "isolation"}

func (m Mode) String() string { return name(modeNames, uint8(m)) }

func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

func (m *Mode) UnmarshalText(text []byte) error {
	i, err := parseName("mode", modeNames, string(text))
	*m = Mode(i)
	return err
}

// Budget counts the refusals of one session. The zero value is a fresh budget of [DefaultDenials].
type Budget struct {
	Limit int `json:"limit,omitempty"` // refusals after which the session halts; 0 means DefaultDenials
	Used  int `json:"used,omitempty"`
}

// DefaultDenials is enough for an honest agent that tries a few ways, and too few to search the policy by trial.
const DefaultDenials = 20

// Spend counts d if it was not let through (an Ask that a person turned down is spent by the caller as a Deny) and reports
// whether the session must halt. Once it halts it halts for good.
func (b Budget) Spend(d Decision) (Budget, bool) {
	if d.Answer == Deny {
		b.Used++
	}
	return b, b.Halted()
}

// Halted reports whether the budget is spent.
func (b Budget) Halted() bool {
	limit := b.Limit
	if limit <= 0 {
		limit = DefaultDenials
	}
	return b.Used >= limit
}

// Problem is one thing wrong with a policy.
type Problem struct {
	Line  int    // in the operator's file; 0 where unknown
	Rule  string // as written, "" where it is not about one rule
	Text  string // what is wrong and what to do
	Fatal bool   // the policy is refused; otherwise it is advice
}

func (p Problem) String() string {
	s := p.Text
	if p.Rule != "" {
		s = p.Rule + ": " + s
	}
	if p.Line > 0 {
		s = fmt.Sprintf("line %d: %s", p.Line, s)
	}
	return s
}

// CompileError holds every fatal problem of a policy.
type CompileError struct{ Problems []Problem }

func (e *CompileError) Error() string {
	switch len(e.Problems) {
	case 0:
		return "policy refused"
	case 1:
		return e.Problems[0].String()
	}
	s := fmt.Sprintf("%d problems in the policy:", len(e.Problems))
	for _, p := range e.Problems {
		s += "\n  " + p.String()
	}
	return s
}
