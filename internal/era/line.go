package era

import (
	"slices"
	"sync"
	"time"
)

// lineFor is how long calls wait for a server that does not answer what the bridge asked before them.
const lineFor = 5 * time.Second

// line is where calls wait, in their order, until the server has done what the bridge asked of it before them: set a level, take a
// subscription. A server may take up a call beside an earlier request, and what it says meanwhile would be lost. One that does not
// answer in time is waited for again only once it has answered something. All is done with mu held.
type line struct {
	mu    *sync.Mutex // the bridge's
	calls []waiting
	bytes int
	owed  int // answers that are waited for
	since int // counts the times that waiting was given up
	deaf  bool
	timer *time.Timer
}

// waiting is a call in a line.
type waiting struct {
	call  any
	bytes int
	send  func() bool // false: it had something asked first
}

// put sends a call, or has it wait. Where too many wait, none does any more.
func (l *line) put(w waiting) {
	l.calls = append(l.calls, w)
	if l.bytes += w.bytes; len(l.calls) > maxQueue || l.bytes > maxBytes && len(l.calls) > 1 {
		l.giveUp()
	}
	l.move()
}

func (l *line) move() {
	for l.owed == 0 && len(l.calls) > 0 {
		if w := l.calls[0]; w.send() {
			l.drop(w.call)
		}
	}
}

// drop takes a call out.
func (l *line) drop(call any) {
	l.calls = slices.DeleteFunc(l.calls, func(w waiting) bool {
		if w.call == call {
			l.bytes -= w.bytes
		}
		return w.call == call
	})
}

// expect has calls wait until done is called, which must be once.
func (l *line) expect() (done func()) {
	if l.deaf {
		return func() { l.deaf = false }
	}
	if l.owed++; l.owed == 1 {
		since := l.since
		l.timer = time.AfterFunc(lineFor, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.since == since && l.owed > 0 {
				l.giveUp()
				l.move()
			}
		})
	}
	since := l.since
	return func() {
		if l.since != since {
			l.deaf = false
			return
		}
		if l.owed--; l.owed == 0 {
			l.stop()
			l.since++
			l.move()
		}
	}
}

// giveUp waits no more for what is owed.
func (l *line) giveUp() {
	l.stop()
	l.since++
	l.owed, l.deaf = 0, true
}

func (l *line) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}
