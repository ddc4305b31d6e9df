package approve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-4e9f7b04/hearsay/audit"
)

// Verdict is a person's answer.
type Verdict uint8

const (
	Deny    Verdict = iota // the zero value: also no answer, and two different ones
	Once                   // this call, this time
	Session                // this call, and its values count as approved for the rest of the session
)

var verdictNames = [...]string{"deny", "once", "session"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "deny"
}

// ParseVerdict reads a verdict by its name.
func ParseVerdict(s string) (Verdict, error) {
	for i, name := range verdictNames {
		if s == name {
			return Verdict(i), nil
		}
	}
	return Deny, fmt.Errorf("unknown answer %q; the answers are once, session and deny", s)
}

// Answer is what became of a question.
type Answer struct {
	Verdict Verdict
	Channel string // page, terminal, elicitation; "" when nobody answered
	Reason  string // stable token: answered, timeout, conflict, canceled, too-many, too-large, closed, not-recorded
}

const (
	defaultTimeout = 5 * time.Minute
	// maxWaiting bounds the questions of all sessions, maxPerSession those of one: far more than a person can keep apart, few
	// enough that a flood hides nothing for long.
	maxWaiting    = 64
	maxPerSession = 16
)

// Options of [New].
type Options struct {
	// Timeout is how long a question waits; 0 means five minutes.
	Timeout time.Duration
	// Record writes an answer to the audit log before it counts; an error makes it Deny. nil records nothing.
	Record func(audit.Event) error
}

// Desk holds the questions that wait. It is safe for concurrent use.
type Desk struct {
	opt Options

	mu      sync.Mutex // guards all below
	closed  bool
	waiting []*Pending // in the order they were asked
	version uint64
	changed chan struct{} // closed and replaced at every change
}

// Pending is a question that waits, as a channel shows it.
type Pending struct {
	ID       string
	Digest   string // of the exact call; an answer names it
	Once     string // one-time value that an answer on the page must carry
	Question Question
	Asked    time.Time
	Expires  time.Time

	verdict Verdict
	channel string
	reason  string
	done    chan struct{} // closed at the first answer
	taken   bool          // Ask has returned
}

// New makes a desk.
func New(opt Options) *Desk {
	if opt.Timeout <= 0 {
		opt.Timeout = defaultTimeout
	}
	return &Desk{opt: opt, changed: make(chan struct{})}
}

// Errors of [Desk.Answer].
var (
	ErrUnknown  = errors.New("no such question is waiting: it was answered, or its time ran out")
	ErrDigest   = errors.New("the answer is for another call than the one that waits")
	ErrConflict = errors.New("the question had another answer already; two different answers deny it")
)

// Ask puts the question and waits for its answer. It returns at the first answer, when the time is over, or when ctx ends.
func (d *Desk) Ask(ctx context.Context, q Question) Answer {
	p, reason := d.put(q)
	if p == nil {
		return d.record(q, Answer{Reason: reason})
	}
	ctx, cancel := context.WithDeadline(ctx, p.Expires)
	defer cancel()
	var asking sync.WaitGroup
	if q.Elicit != nil && !q.HighRisk {
		asking.Go(func() {
			verdict, err := q.Elicit(ctx, q.Text())
			if err == nil {
				d.Answer(p.ID, p.Digest, verdict, "elicitation")
			}
		})
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	answer := d.take(p, ctx.Err())
	cancel() // ends an elicitation that nobody answered
	asking.Wait()
	return d.record(q, answer)
}

func (d *Desk) put(q Question) (*Pending, string) {
	if q.size() > MaxShown {
		return nil, "too-large"
	}
	now := time.Now()
	p := &Pending{ID: rand.Text(), Once: rand.Text(), Digest: q.Digest(), Question: q, Asked: now, Expires: now.Add(d.opt.Timeout), done: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, "closed"
	}
	same := 0
	for _, w := range d.waiting {
		if w.Question.Session == q.Session {
			same++
		}
	}
	if len(d.waiting) >= maxWaiting || same >= maxPerSession {
		return nil, "too-many"
	}
	d.waiting = append(d.waiting, p)
	d.notify()
	return p, ""
}

// take ends the wait for p and says what came of it.
func (d *Desk) take(p *Pending, ctxErr error) Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.taken = true
	for i, w := range d.waiting {
		if w == p {
			d.waiting = append(d.waiting[:i:i], d.waiting[i+1:]...)
			break
		}
	}
	d.notify()
	switch {
	case p.reason != "":
		return Answer{p.verdict, p.channel, p.reason}
	case errors.Is(ctxErr, context.DeadlineExceeded):
		return Answer{Reason: "timeout"}
	default:
		return Answer{Reason: "canceled"}
	}
}

func (d *Desk) record(q Question, a Answer) Answer {
	if d.opt.Record != nil && d.opt.Record(q.Event(a)) != nil {
		return Answer{Channel: a.Channel, Reason: "not-recorded"}
	}
	return a
}

// Answer gives a person's answer to the question id. digest must be the one that was shown. A second answer that differs
// from the first denies the question as long as its call was not let through, and is an error in any case.
func (d *Desk) Answer(id, digest string, v Verdict, channel string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.waiting {
		if p.ID != id {
			continue
		}
		if p.Digest != digest {
			return ErrDigest
		}
		if p.reason == "" {
			p.verdict, p.channel, p.reason = v, channel, "answered"
			close(p.done)
			d.notify()
			return nil
		}
		if p.verdict == v {
			return nil
		}
		p.verdict, p.reason = Deny, "conflict"
		return ErrConflict
	}
	return ErrUnknown
}

// Waiting lists the questions that have no answer yet, oldest first, and a number that changes whenever the list does.
func (d *Desk) Waiting() ([]Pending, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []Pending
	for _, p := range d.waiting {
		if p.reason == "" {
			list = append(list, *p)
		}
	}
	return list, d.version
}

// Changed gives a channel that is closed at the next change of [Desk.Waiting].
func (d *Desk) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// Close denies what waits and every later question.
func (d *Desk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, p := range d.waiting {
		if p.reason == "" {
			p.reason = "closed"
			close(p.done)
		}
	}
	d.notify()
}

// notify is called with mu held.
func (d *Desk) notify() {
	d.version++
	close(d.changed)
	d.changed = make(chan struct{})
}
