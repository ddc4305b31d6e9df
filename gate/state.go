package gate

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
)

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
	Text   string // read only where Trust is Store, User or Approved; what anyone else wrote grounds nothing as running text
	Data   any    // the parsed JSON of the result, if any: string, bool, nil, json.Number, float64, []any, map[string]any
}

// State is what a session has read and who vouches for what. It is a value: its methods return a new one and never change
// the receiver. The zero value is a session that has read nothing and trusts nothing.
//
// It keeps digests of trusted values, not the texts, and at most a bounded number of each.
type State struct {
	tainted   bool
	reads     []string
	committed []string
	known     index // values and who vouches for them
	said      index // values the agent passed while tainted, and that nothing grounded: a result that repeats them proves nothing
	deaf      bool  // more was said than is remembered: results ground nothing any more
}

// Observe returns the state after o was read. Untrusted text taints and grounds nothing. Trusted text never takes a taint away.
func (s State) Observe(o Observation) State {
	if o.Source != "" && !slices.Contains(s.reads, o.Source) && len(s.reads) < maxReads && (o.Trust == Untrusted || o.Trust == FirstParty) {
		s.reads = append(slices.Clip(s.reads), o.Source)
	}
	a := &adder{old: s.known}
	switch o.Trust {
	case FirstParty:
		if !s.deaf {
			s.addResult(a, o)
		}
	case Store:
		addStore(a, o)
	case User:
		addWords(a, o.Text, fromUser)
		walk("", o.Data, 0, func(_ string, leaf string) { addWords(a, leaf, fromUser) })
	case Approved:
		addWhole(a, o.Text, Any, fromApproved)
		walk("", o.Data, 0, func(_ string, leaf string) { addWhole(a, leaf, Any, fromApproved) })
	default:
		s.tainted = true
	}
	s.known = a.index()
	return s
}

// Commit returns the state after the call was let through, before it runs.
func (s State) Commit(c Call) State {
	if key := toolKey(c.Server, c.Tool); !s.tainted {
		if !slices.Contains(s.committed, key) && len(s.committed) < maxReads {
			s.committed = append(slices.Clip(s.committed), key)
		}
		return s
	}
	if s.deaf {
		return s
	}
	fresh := index{}
	said, whole := saidIn(c.Args)
	for _, d := range said {
		if _, ok := s.said[d]; !ok {
			fresh[d] = 1
		}
	}
	switch {
	case !whole || len(s.said)+len(fresh) > maxSaid:
		s.said, s.deaf = nil, true
	case len(fresh) > 0:
		maps.Copy(fresh, s.said)
		s.said = fresh
	}
	return s
}

// Deaf returns the state in which, once it is tainted, no result grounds anything any more. It is for a session in which no
// result is trusted: what its calls passed need then not be remembered.
func (s State) Deaf() State {
	if s.tainted {
		s.said, s.deaf = nil, true
	}
	return s
}

// Same reports whether nothing has come to one state that the other lacks since one was made from the other. It is quick,
// and may say no of equal states that were not.
func (s State) Same(o State) bool {
	same := func(a, b index) bool { // an index is never changed, only replaced
		return len(a) == len(b) && (len(a) == 0 || reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer())
	}
	return s.tainted == o.tainted && s.deaf == o.deaf &&
		same(s.known, o.known) && same(s.said, o.said) && slices.Equal(s.reads, o.reads) && slices.Equal(s.committed, o.committed)
}

// Endorse returns the state in which a person vouches for values, each read as the kind given. It grounds these values
// for every class; it does not take the taint away.
func (s State) Endorse(kind Kind, values ...string) State {
	a := &adder{old: s.known}
	for _, v := range values {
		addWhole(a, v, kind, fromApproved)
	}
	s.known = a.index()
	return s
}

// Tainted reports whether anything untrusted was read.
func (s State) Tainted() bool { return s.tainted }

// Reads lists the servers read from, in the order of their first result, at most 256.
func (s State) Reads() []string { return slices.Clone(s.reads) }

// Committed reports whether the tool was called before the session was tainted.
func (s State) Committed(server, tool string) bool {
	return slices.Contains(s.committed, toolKey(server, tool))
}

// toolKey cannot be made by another pair: a server's name holds no line feed.
func toolKey(server, tool string) string { return server + "\n" + tool }

// stateVersion changes whenever digests are made in another way: a state of another version is refused, not misread.
const stateVersion = 1

type stateJSON struct {
	Version   int      `json:"version"`
	Tainted   bool     `json:"tainted"`
	Reads     []string `json:"reads,omitempty"`
	Committed []string `json:"committed,omitempty"`
	Known     string   `json:"known,omitempty"`
	Said      string   `json:"said,omitempty"`
	Deaf      bool     `json:"deaf,omitempty"`
}

// MarshalJSON writes the state for a restart. Equal states give equal bytes. It holds digests of trusted values, not the
// values; a short value can be guessed from its digest, so the file is to be kept like the session itself.
func (s State) MarshalJSON() ([]byte, error) {
	return json.Marshal(stateJSON{stateVersion, s.tainted, s.reads, s.committed, s.known.pack(), s.said.pack(), s.deaf})
}

// UnmarshalJSON reads what MarshalJSON wrote. On an error the state is left tainted and trusts nothing.
func (s *State) UnmarshalJSON(data []byte) error {
	*s = State{tainted: true, deaf: true}
	var j stateJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	if j.Version != stateVersion {
		return errors.New("the session was written by another version; it starts tainted, without trusted values")
	}
	if len(j.Reads) > maxReads || len(j.Committed) > maxReads {
		return errors.New("the session lists more sources than it can have")
	}
	known, err := unpack(j.Known, maxEntries)
	if err != nil {
		return err
	}
	said, err := unpack(j.Said, maxSaid)
	if err != nil {
		return err
	}
	*s = State{j.Tainted, j.Reads, j.Committed, known, said, j.Deaf}
	return nil
}
