package envelope

import "iter"

// Tokens gives the start and end of every token in content and of all that looks like one: what [NeutralizeLookalikes] would
// replace. In a text from outside each is somebody's try to end or to begin a frame, or a text about frames.
func Tokens(content string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for c := (cursor{lookalikes: true}); c.pos < len(content); {
			start, with := next(content, &c)
			if with == defanged && !yield(start, c.pos) {
				return
			}
		}
	}
}
