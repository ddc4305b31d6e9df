package replay

import (
	"context"
	"errors"

	"github.com/seed-4e9f7b04/hearsay/screen"
)

// readings are what stands between a result and an agent that obeys what it reads: nothing, the screens alone, and a whole
// gateway without a policy, which screens and frames.
var readings = []string{"none", "screen", "screen and frame"}

// phrases counts attacks on an agent that obeys orders it can read outside of a frame, with no gate at all: each attack in
// each dress. It shows what the labels do against attacks that do not adapt, and nothing about those that do.
func phrases(suites []Suite) ([]Figure, error) {
	var out []Figure
	sums := make([]count, len(readings))
	for i := range suites {
		counts, err := phrasesOf(&suites[i])
		if err != nil {
			return nil, err
		}
		for k, c := range counts {
			out = append(out, c.share(phraseFigure(suites[i].Name, readings[k])))
			sums[k].plus(c)
		}
	}
	if len(suites) > 1 {
		for k, c := range sums {
			out = append(out, c.share(phraseFigure("all", readings[k])))
		}
	}
	return out, nil
}

func phraseFigure(suite, reading string) Figure {
	return Figure{Suite: suite, Agent: Phrases().Name, Attack: "static", Policy: reading, Mode: "deny", Labels: "given", Words: "with", Name: "asr"}
}

func phrasesOf(s *Suite) (counts []count, err error) {
	counts = make([]count, len(readings))
	screens, err := screen.New(screen.Options{RestatesRequest: screen.Off})
	if err != nil {
		return nil, err
	}
	w, err := newWorld(s, Policy{Name: "none", none: true}, s.given(), true)
	if err != nil {
		return nil, err
	}
	for i := range s.UserTasks {
		task := &s.UserTasks[i]
		if task.FirstInjectedCall == nil {
			continue
		}
		l, err := w.open(task, nil)
		if err != nil {
			return nil, err
		}
		read := task.Calls[*task.FirstInjectedCall]
		for k := range s.Injections {
			inj := &s.Injections[k]
			if !s.visible(inj) {
				continue
			}
			for _, d := range dress {
				text := read.injected(d.as(order(inj)))
				screened := screens.Check(context.Background(), screen.Input{Tool: read.Tool, Text: text})
				_, shown, err := l.call(read, text, false)
				if err != nil {
					return nil, errors.Join(err, l.close())
				}
				for i, seen := range []string{text, screened.Text, shown} {
					counts[i].hit(Phrases().obeys(seen, order(inj)))
				}
			}
		}
		if err := l.close(); err != nil {
			return nil, err
		}
	}
	return counts, nil
}
