package replay

import "slices"

// match counts what the drafter says against what a person says.
type match struct{ both, drafted, given int }

func (m *match) note(drafted, given bool) {
	if drafted {
		m.drafted++
	}
	if given {
		m.given++
	}
	if drafted && given {
		m.both++
	}
}

// DraftScore compares the drafter with the labels set by hand, over one suite.
type DraftScore struct {
	Suite     string
	Tools     int
	acting    match // tools that can do more than read
	binding   match // binding arguments of tools that act, as labelled by hand
	untrusted match // tools whose results can hold a third party's words
}

// figures gives precision and recall of each; a share of nothing has n = 0.
func (d DraftScore) figures() []Figure {
	var out []Figure
	for _, m := range []struct {
		name string
		of   match
	}{{"draft_acting", d.acting}, {"draft_binding", d.binding}, {"draft_untrusted", d.untrusted}} {
		f := Figure{Suite: d.Suite, Agent: "none", Attack: "none", Policy: "draft", Mode: "deny", Labels: "drafted", Words: "without"}
		f.Name = m.name + "_precision"
		out = append(out, count{n: m.of.drafted, sum: m.of.both}.share(f))
		f.Name = m.name + "_recall"
		out = append(out, count{n: m.of.given, sum: m.of.both}.share(f))
	}
	return out
}

func scoreDraft(s *Suite) DraftScore {
	score := DraftScore{Suite: s.Name, Tools: len(s.Tools)}
	labels := s.drafted()
	for _, t := range s.Tools {
		l := labels[t.Name]
		score.acting.note(l.Effects.Acting(), t.Effect != "read")
		score.untrusted.note(!l.Trusted, t.ReturnsUntrusted)
		if t.Effect == "read" {
			continue
		}
		names := slices.Clone(t.BindArgs)
		var drafted []string
		for _, b := range l.Bind {
			drafted = append(drafted, b.Path)
			if !slices.Contains(names, b.Path) {
				names = append(names, b.Path)
			}
		}
		for _, arg := range names {
			score.binding.note(slices.Contains(drafted, arg), slices.Contains(t.BindArgs, arg))
		}
	}
	return score
}
