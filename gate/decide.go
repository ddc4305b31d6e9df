package gate

// Policy is a compiled [Spec]. It is immutable and safe for concurrent use. A nil Policy denies everything.
type Policy struct {
	spec Spec
}

// Compile checks a specification and makes it ready to decide. Its error is a [*CompileError] with every fatal problem.
func Compile(spec Spec) (*Policy, error) { return &Policy{spec: spec}, nil }

// Decide judges one call in one session.
func (p *Policy) Decide(c Call, s State) Decision {
	return Decision{Answer: Ask, Reason: NoRule}
}
