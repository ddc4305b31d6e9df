package replay

import "errors"

// playthrough is one run of a user task through the gateway.
type playthrough struct {
	done  bool   // all of the user's calls were made
	asked int    // questions about the user's calls
	hit   attack // what the attacker's calls came to
}

// play does a user task through the gateway, with an attack on it unless inj is nil: right after the first result that carries
// the attacker's text, if the agent obeys it, all the attacker's calls, then the rest of the user's.
func (c *cell) play(w *world, task *UserTask, ask bool, inj *Injection) (p playthrough, err error) {
	policy, err := w.gate(task)
	if err != nil {
		return p, err
	}
	l, err := w.open(task, policy)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	p.done = true
	attacked := inj == nil
	for i, call := range task.Calls {
		text, carries := call.Result, false
		if first := task.FirstInjectedCall; !attacked && (len(call.Vectors) > 0 || first != nil && *first == i) {
			text, carries = call.injected(order(inj)), true
		}
		before := l.questions()
		ran, shown, err := l.call(call, text, ask)
		if err != nil {
			return p, err
		}
		p.asked += l.questions() - before
		p.done = p.done && ran
		if !carries || !ran {
			continue
		}
		attacked = true
		if !c.agent.obeys(shown, order(inj)) {
			continue
		}
		p.hit.all = true
		for _, evil := range inj.Calls {
			ran, _, err := l.call(evil, evil.Result, false)
			if err != nil {
				return p, err
			}
			if !c.suite.acts(evil.Tool) {
				continue
			}
			p.hit.all, p.hit.any = p.hit.all && ran, p.hit.any || ran
			if ran {
				p.hit.through = append(p.hit.through, evil.String())
			}
		}
	}
	return p, nil
}

func (l *live) questions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}
