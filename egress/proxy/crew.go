package proxy

import (
	"sync"
	"sync/atomic"
)

// idleHands bounds the goroutines that a crew keeps: more than begin and end at the same moment, and about a megabyte of stacks.
const idleHands = 64

// crew runs functions at the same time, in goroutines that it keeps for the next ones: the stack of a new one has to grow
// first, and that is a twentieth of what a tunnel's set-up costs. A nil crew keeps none.
type crew struct {
	work         chan func()
	idle         atomic.Int32
	tasks, hands sync.WaitGroup
}

func newCrew() *crew { return &crew{work: make(chan func())} }

// do runs f beside its caller.
func (c *crew) do(f func()) {
	if c == nil {
		go f()
		return
	}
	c.tasks.Add(1)
	select {
	case c.work <- f:
	default:
		c.hands.Go(func() { c.hand(f) })
	}
}

// hand runs f, and then whatever comes next.
func (c *crew) hand(f func()) {
	for f != nil {
		f()
		c.tasks.Done()
		if c.idle.Add(1) > idleHands {
			c.idle.Add(-1)
			return
		}
		f = <-c.work // nil once the crew has ended
		c.idle.Add(-1)
	}
}

// end waits for all that runs and for what that begins, and lets the goroutines go.
func (c *crew) end() {
	c.tasks.Wait()
	close(c.work)
	c.hands.Wait()
}
