// Package gate decides whether an agent may make a tool call.
//
// An operator's [Spec] becomes a [Policy] with [Compile]; [Policy.Decide] judges one [Call] in one session [State]. Both are
// pure: no clock, no files, no network. A session starts with the zero State; every text it reads goes through
// [State.Observe], and once something untrusted was read the gate gives less than before until a person gives it back.
//
//	policy, err := gate.Compile(spec)
//	…
//	switch d := policy.Decide(call, state); d.Answer {
//	case gate.Allow: // run it
//	case gate.Ask:   // show d.Text to a person, outside the agent's reach
//	default:         // tell the agent d.Reason.AgentText(), nothing else
//	}
//
// # Limits
//
// The gate sees calls, not what a tool does with them: a tool that does more than its labels say is outside its sight, and
// so is whatever an agent does without a tool call. Rules about the text of a shell command or a path are no boundary where
// they deny: the same deed has endless spellings. Run such tools in the sandbox and write what is allowed. Whoever can
// write as the user (into the prompt, the operator's file or the approval page) is the user to the gate.
package gate
