package proxy

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestCrew: what is begun together runs together, what begins more is waited for, and nobody is kept beyond the bound or the end.
func TestCrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		c := newCrew()
		var ran atomic.Int32
		gate := make(chan struct{})
		for range 3 * idleHands {
			c.do(func() {
				<-gate
				ran.Add(1)
			})
		}
		synctest.Wait() // all wait at the gate at once, or one waits for another
		close(gate)
		synctest.Wait()
		if got := ran.Load(); got != 3*idleHands {
			t.Fatalf("%d have run, want %d", got, 3*idleHands)
		}
		if got := c.idle.Load(); got != idleHands {
			t.Errorf("%d goroutines are kept, want %d", got, idleHands)
		}
		c.do(func() { c.do(func() { ran.Add(1) }) })
		c.end()
		if got := ran.Load(); got != 3*idleHands+1 {
			t.Errorf("%d have run by the end, want %d", got, 3*idleHands+1)
		}
	})
}

// TestCrewKeepsGoroutines: the next function runs in a goroutine that has run one.
func TestCrewKeepsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew()
		defer c.end()
		for range 10 {
			c.do(func() {})
			synctest.Wait()
			if got := c.idle.Load(); got != 1 {
				t.Fatalf("%d goroutines are kept, want 1", got)
			}
		}
	})
}
