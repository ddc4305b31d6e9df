package replay

import "github.com/seed-4e9f7b04/hearsay/envelope"

// stage is what stands between a result and the agent in the runs of an agent that obeys what it reads.
type stage struct {
	name string
	show func(string) string
}

func readings() []stage {
	frame := func(s string) string {
		return envelope.Envelope{Kind: "connector-tool-result", Lookalikes: true}.Wrap(s)
	}
	return []stage{
		{"none", func(s string) string { return s }},
		{"frame", frame},
	}
}

// phrases counts attacks on an agent that obeys orders it can read outside of a frame, with no gate at all: each attack in
// each dress. It shows what the labels do against attacks that do not adapt, and nothing about those that do.
func phrases(suites []Suite) []Figure {
	var out []Figure
	sums := map[string]*count{}
	agent := Phrases()
	for i := range suites {
		s := &suites[i]
		for _, st := range readings() {
			var c count
			for _, task := range s.UserTasks {
				if task.FirstInjectedCall == nil {
					continue
				}
				read := task.Calls[*task.FirstInjectedCall]
				for k := range s.Injections {
					if inj := &s.Injections[k]; s.visible(inj) {
						for _, d := range dress {
							c.hit(agent.obeys(st.show(read.injected(d.as(order(inj)))), order(inj)))
						}
					}
				}
			}
			out = append(out, c.share(phraseFigure(s.Name, agent, st)))
			if sums[st.name] == nil {
				sums[st.name] = &count{}
			}
			sums[st.name].plus(c)
		}
	}
	if len(suites) > 1 {
		for _, st := range readings() {
			out = append(out, sums[st.name].share(phraseFigure("all", agent, st)))
		}
	}
	return out
}

func phraseFigure(suite string, a Agent, st stage) Figure {
	return Figure{Suite: suite, Agent: a.Name, Attack: "static", Policy: st.name, Mode: "deny", Labels: "given", Words: "with", Name: "asr"}
}
