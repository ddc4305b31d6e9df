package proxy

import (
	"sync"
	"sync/atomic"
	"time"
)

// guard ends a connection whose time is up: one timer that is armed at the earliest moment anything could be due, so that
// the bytes in between cost an atomic store and no timer call. Before begin it guards nothing.
type guard struct {
	expire func()

	last  atomic.Int64 // when the limit began to run, or the last byte moved; nanoseconds of the Unix epoch
	limit atomic.Int64
	final int64 // the moment no activity moves, 0 for none

	mu    sync.Mutex
	timer *time.Timer
	armed int64 // when timer fires; 0 before begin and after stop
}

// begin lets limit run from now. Calls of touch start it anew.
func (g *guard) begin(limit time.Duration) {
	now := time.Now().UnixNano()
	g.last.Store(now)
	g.limit.Store(int64(limit))
	g.arm(now, g.due(now))
}

// touch notes that a byte moved, in whichever direction.
func (g *guard) touch() { g.last.Store(time.Now().UnixNano()) }

func (g *guard) due(last int64) int64 {
	due := last + g.limit.Load()
	if g.final > 0 && g.final < due {
		return g.final
	}
	return due
}

func (g *guard) arm(now, due int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.timer == nil && g.armed == 0:
		g.timer = time.AfterFunc(time.Duration(due-now), g.fire)
	case g.timer == nil || g.armed <= due: // stopped, or soon enough
		return
	default:
		g.timer.Reset(time.Duration(due - now))
	}
	g.armed = due
}

func (g *guard) fire() {
	now := time.Now().UnixNano()
	due := g.due(g.last.Load())
	if now >= due {
		g.expire()
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Reset(time.Duration(due - now))
		g.armed = due
	}
}

func (g *guard) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	g.armed = -1
}
