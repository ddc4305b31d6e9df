package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// State of a layer.
type State string

const (
	Enforced State = "enforced"
	Off      State = "off" // given up by a weaker mode
)

// Layer is one wall, as it was measured from inside after it was set.
type Layer struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// Mount is one entry of the file view.
type Mount struct {
	Path   string `json:"path"`
	Access string `json:"access"` // ro, rw, hidden, protected
}

// Report says what holds a sandbox, as it was measured from inside before the command ran.
type Report struct {
	Weaker      []Weaker `json:"weaker,omitempty"` // asked for by the operator
	Layers      []Layer  `json:"layers"`
	LandlockABI int      `json:"landlock_abi"`
	Kernel      string   `json:"kernel"`
	View        []Mount  `json:"view,omitempty"`
	Notes       []string `json:"notes,omitempty"` // what the operator should know, a line each
}

// Full says that every layer is enforced.
func (r Report) Full() bool {
	return len(r.Layers) > 0 && len(r.Weaker) == 0 && !slices.ContainsFunc(r.Layers, func(l Layer) bool { return l.State == Off })
}

// String is the report as a table for people.
func (r Report) String() string {
	var b strings.Builder
	for _, l := range r.Layers {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-12s %-9s %s", l.Name, l.State, l.Detail), " ") + "\n")
	}
	for _, w := range r.Weaker {
		fmt.Fprintf(&b, "weaker mode  %s\n", w)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note         %s\n", n)
	}
	return b.String()
}

// LayerError says which layer could not be set, and what to do. Nothing was started.
type LayerError struct {
	Layer  string // as in [Layer.Name]
	Err    error
	Remedy string // a sentence for the operator; "" when there is none
}

func (e *LayerError) Error() string {
	s := fmt.Sprintf("sandbox: %s: %v", e.Layer, e.Err)
	if e.Remedy != "" {
		s += ". " + e.Remedy
	}
	return s
}

func (e *LayerError) Unwrap() error { return e.Err }

// CommandError says that the sandbox stands but the command could not be started in it.
type CommandError struct {
	Command  string
	Err      error
	NotFound bool // otherwise it was found and could not be executed
	Hint     string
}

func (e *CommandError) Error() string {
	s := fmt.Sprintf("sandbox: starting %q: %v", e.Command, e.Err)
	if e.Hint != "" {
		s += ". " + e.Hint
	}
	return s
}

func (e *CommandError) Unwrap() error { return e.Err }
