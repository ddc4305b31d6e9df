package replay

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/seed-4e9f7b04/hearsay/gate"
)

// approval is how the person's answers to the user's own calls are used.
type approval int

const (
	once       approval = iota // for this call
	remembered                 // the values are good for the rest of the session
	batched                    // and like calls in a row are one question
	capability                 // one question lets a tool be used as often as the task still needs it, and no more
)

var approvals = []approval{once, remembered, batched, capability}

// run is one user task under way in one session.
type run struct {
	stages
	task   *UserTask
	server string
	ask    bool // a person answers; otherwise what asks is refused
	how    approval

	grants map[string]int // capabilities left, by tool
	last   string         // the tool of the question before, if it was the call before
	asked  int
	done   bool // every call so far was made
}

func (w *world) start(task *UserTask, ask bool, how approval) (*run, error) {
	s, err := w.session(task)
	return &run{stages: s, task: task, server: w.suite.server(), ask: ask, how: how, done: true}, err
}

func (r *run) fork() *run {
	f := *r
	f.stages, f.grants = r.stages.fork(), maps.Clone(r.grants)
	return &f
}

func (r *run) call(c Call) gate.Call { return gate.Call{Server: r.server, Tool: c.Tool, Args: c.Args} }

// user makes call i of the user's task and reports whether it was made.
func (r *run) user(i int) bool {
	c := r.task.Calls[i]
	call := r.call(c)
	d := r.decide(call)
	ok := d.Answer == gate.Allow || r.useGrant(c.Tool)
	if !ok && d.Answer == gate.Ask && r.ask {
		if r.how != batched || r.last != c.Tool {
			r.asked++
		}
		r.last = c.Tool
		if r.how != once {
			r.approve(call, d)
		}
		if r.how == capability {
			if r.grants == nil {
				r.grants = map[string]int{}
			}
			for _, later := range r.task.Calls[i+1:] {
				if later.Tool == c.Tool {
					r.grants[c.Tool]++
				}
			}
		}
		ok = true
	} else if d.Answer != gate.Ask {
		r.last = ""
	}
	if !ok {
		r.done = false
		return false
	}
	r.commit(call)
	return true
}

// useGrant spends one use of a capability.
func (r *run) useGrant(tool string) bool {
	if r.grants[tool] <= 0 {
		return false
	}
	r.grants[tool]--
	return true
}

// attacker makes a call of the attacker's and reports whether it was made. A person who is asked refuses it.
func (r *run) attacker(c Call) bool {
	call := r.call(c)
	if r.decide(call).Answer != gate.Allow && !r.useGrant(c.Tool) {
		return false
	}
	r.commit(call)
	r.result(c.Tool, c.Result)
	return true
}

// benign does the whole task with results that nobody attacked.
func (r *run) benign() {
	for i, c := range r.task.Calls {
		if r.user(i) {
			r.result(c.Tool, c.Result)
		}
	}
}

// toInjection does the user's calls up to the first result that carries the attacker's text, and gives its index; -1 where
// none was reached, because the calls that would have read it were refused.
func (r *run) toInjection() int {
	for i, c := range r.task.Calls {
		if !r.user(i) {
			continue
		}
		if first := r.task.FirstInjectedCall; len(c.Vectors) > 0 || first != nil && *first == i {
			return i
		}
		r.result(c.Tool, c.Result)
	}
	return -1
}

// acts reports whether a tool changes something or reaches out, by the suite's own label.
func (s *Suite) acts(tool string) bool {
	i := slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == tool })
	return i >= 0 && s.Tools[i].Effect != "read"
}

// visible reports whether a tool gate can see the attack at all: one that wants only words said has no call to stop.
func (s *Suite) visible(inj *Injection) bool {
	return slices.ContainsFunc(inj.Calls, func(c Call) bool { return s.acts(c.Tool) })
}

// attack is what became of one attack.
type attack struct {
	all, any bool
	through  []string // the state-changing calls that got through
}

// attack lets the agent, taken over, make all calls of the attack, in order, with perfect knowledge. Reads that are refused do
// not stop it: the attacker knows what they would have said.
func (r *run) attack(s *Suite, inj *Injection, try func(*run, Call) bool) attack {
	a := attack{all: true}
	for _, c := range inj.Calls {
		ok := try(r, c)
		if !s.acts(c.Tool) {
			continue
		}
		a.all = a.all && ok
		a.any = a.any || ok
		if ok {
			a.through = append(a.through, c.String())
		}
	}
	return a
}

// succeeds reports whether all of the attack gets through; it stops at the first call that does not.
func (r *run) succeeds(s *Suite, inj *Injection) bool {
	for _, c := range inj.Calls {
		if !r.attacker(c) && s.acts(c.Tool) {
			return false
		}
	}
	return true
}

// String is the call as a person reads it, its arguments cut at a length that still tells calls apart.
func (c Call) String() string {
	args, err := json.Marshal(c.Args)
	if err != nil {
		return c.Tool
	}
	const most = 200
	if len(args) > most {
		args = append(bytes.ToValidUTF8(args[:most], nil), "…"...)
	}
	return c.Tool + string(args)
}
