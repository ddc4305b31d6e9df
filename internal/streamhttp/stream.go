package streamhttp

import (
	"context"
	"sync"
	"time"
)

// Bounds of one stream to a client.
const (
	maxKept      = 256      // messages kept for a client that takes the stream up again
	maxKeptBytes = 64 << 20 // of these, beside the one that may exceed it
)

// stream is what one request of a client, or its listening stream, has to say: messages in order, kept until they are too
// many, so that a client whose connection broke can go on behind the last one it saw.
type stream struct {
	id string

	mu      sync.Mutex // guards all below
	first   int        // number of events[0]
	events  [][]byte
	bytes   int
	final   bool // the last event is the answer
	ended   time.Time
	changed chan struct{}
	written int // events that were written out
	holder  int // which handler writes it out: the newest
	dropped int
}

func newStream(id string) *stream { return &stream{id: id, changed: make(chan struct{})} }

// add appends a message. A message that is not the answer is dropped once too much waits.
func (s *stream) add(message []byte, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.final {
		return
	}
	for len(s.events) > 0 && (len(s.events) >= maxKept || s.bytes+len(message) > maxKeptBytes) {
		s.bytes -= len(s.events[0])
		s.events = s.events[1:]
		s.first++
		s.dropped++
	}
	s.events = append(s.events, message)
	s.bytes += len(message)
	if final {
		s.final, s.ended = true, time.Now()
	}
	s.wake()
}

// finish ends a stream that has no answer.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.final {
		s.final, s.ended = true, time.Now()
		s.wake()
	}
}

func (s *stream) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// take makes the caller the one that writes the stream out; whoever did before stops.
func (s *stream) take() (holder int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder++
	s.wake()
	return s.holder
}

// next gives the events from number at on, waiting for the first up to wait; more is false when the stream has ended behind
// them, or another handler has taken it.
func (s *stream) next(ctx context.Context, holder, at int, wait time.Duration) (events [][]byte, from int, more bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		from = max(at, s.first)
		if holder != s.holder {
			s.mu.Unlock()
			return nil, from, false
		}
		if i := from - s.first; i < len(s.events) || s.final {
			events = s.events[min(i, len(s.events)):len(s.events):len(s.events)]
			more = !s.final
			s.mu.Unlock()
			return events, from, more
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			return nil, from, true
		case <-ctx.Done():
			return nil, from, false
		}
	}
}

// sent notes that the events before number at were written out; unsent gives the first that was not.
func (s *stream) sent(at int) {
	s.mu.Lock()
	s.written = max(s.written, at)
	s.mu.Unlock()
}

func (s *stream) unsent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

func (s *stream) endedBefore(t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.final && s.ended.Before(t)
}
