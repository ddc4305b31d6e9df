package replay

import "slices"

// DraftScore compares the drafter with the labels set by hand, over one suite.
type DraftScore struct {
	Suite                                      string
	EffectPrecision, EffectRecall              float64 // of "can do more than read"
	BindPrecision, BindRecall                  float64 // of binding arguments of tools that act, as labelled by hand
	UntrustedPrecision, UntrustedRecall        float64 // of "its results can hold a third party's words"
	Tools, Acting, Drafted, Binding, Untrusted int
}

// scoreDraft counts over a suite. A share of nothing is 1.
func scoreDraft(s *Suite) DraftScore {
	var act, bind, untrusted struct{ both, drafted, given int }
	labels := s.drafted()
	note := func(c *struct{ both, drafted, given int }, drafted, given bool) {
		if drafted {
			c.drafted++
		}
		if given {
			c.given++
		}
		if drafted && given {
			c.both++
		}
	}
	for _, t := range s.Tools {
		l := labels[t.Name]
		note(&act, l.Effects.Acting(), t.Effect != "read")
		note(&untrusted, !l.Trusted, t.ReturnsUntrusted)
		if t.Effect == "read" {
			continue
		}
		names := slices.Clone(t.BindArgs)
		for _, b := range l.Bind {
			if !slices.Contains(names, b.Path) {
				names = append(names, b.Path)
			}
		}
		for _, arg := range names {
			drafted := false
			for _, b := range l.Bind {
				drafted = drafted || b.Path == arg
			}
			note(&bind, drafted, slices.Contains(t.BindArgs, arg))
		}
	}
	share := func(k, n int) float64 {
		if n == 0 {
			return 1
		}
		return round(float64(k) / float64(n))
	}
	return DraftScore{
		Suite: s.Name, Tools: len(s.Tools), Acting: act.given, Drafted: act.drafted, Binding: bind.given, Untrusted: untrusted.given,
		EffectPrecision: share(act.both, act.drafted), EffectRecall: share(act.both, act.given),
		BindPrecision: share(bind.both, bind.drafted), BindRecall: share(bind.both, bind.given),
		UntrustedPrecision: share(untrusted.both, untrusted.drafted), UntrustedRecall: share(untrusted.both, untrusted.given),
	}
}
