package gate

import "encoding/json"

// Trust says whose words an observation is.
type Trust uint8

const (
	Untrusted  Trust = iota // anyone's: taints
	FirstParty              // a result the operator trusts: its structured fields ground ordinary arguments
	Store                   // the operator's store: contacts, accounts, hosts, paths
	User                    // the user's own words
	Approved                // a value that a person approved
)

var trustNames = []string{"untrusted", "first-party", "store", "user", "approved"}

func (t Trust) String() string { return name(trustNames, uint8(t)) }

// Observation is one text that entered the session.
type Observation struct {
	Source string // the server, or where else it came from
	Tool   string // the tool whose result it is, or ""
	Trust  Trust
	Text   string
	Data   any // the parsed JSON of the result, if any: string, bool, nil, json.Number, float64, []any, map[string]any
}

// State is what a session has read and who vouches for what. It is a value: its methods return a new one and never change
// the receiver. The zero value is a session that has read nothing and trusts nothing.
type State struct {
	tainted bool
	reads   []string
}

// Observe returns the state after o was read.
func (s State) Observe(o Observation) State {
	if o.Trust == Untrusted {
		s.tainted = true
	}
	return s
}

// Commit returns the state after the call was let through, before it runs.
func (s State) Commit(c Call) State { return s }

// Endorse returns the state in which a person vouches for values, each in the kind given.
func (s State) Endorse(kind Kind, values ...string) State { return s }

// Tainted reports whether anything untrusted was read.
func (s State) Tainted() bool { return s.tainted }

// Reads lists the sources read, untrusted ones first seen first, without repeats.
func (s State) Reads() []string { return s.reads }

// Committed reports whether the tool was called before the session was tainted.
func (s State) Committed(server, tool string) bool { return false }

// MarshalJSON writes the state for a restart. It holds digests of trusted values, not the values.
func (s State) MarshalJSON() ([]byte, error) {
	return json.Marshal(stateJSON{Tainted: s.tainted, Reads: s.reads})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *State) UnmarshalJSON(data []byte) error {
	var j stateJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*s = State{tainted: j.Tainted, reads: j.Reads}
	return nil
}

type stateJSON struct {
	Tainted bool     `json:"tainted"`
	Reads   []string `json:"reads,omitempty"`
}
