// Package replay plays attack suites against the boundaries with an agent that is taken to be lost, and counts what still
// gets through. No language model runs: the agent obeys the attacker completely, which is the limit of every adaptive attack
// on a model. The same suites give the same figures, on any machine.
//
// [Load] and [Own] give suites, [Run] counts, and the [Report] writes itself as a table, as JSON and for benchstat.
//
//	suites, err := replay.Own()
//	report, err := replay.Run(suites, replay.Options{})
//	report.Table(os.Stdout)
//
// # Limits
//
// A suite holds one way to do each task; another way may ask more or less. An attack that wants only words said has no call
// that a gate could see, so it is not counted. What a frame does to a real model is not measured here at all. The searcher
// finds what it looks for: that it found nothing says that these spellings and splits do not pass, not that none does.
package replay
