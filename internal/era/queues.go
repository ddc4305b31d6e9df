package era

import (
	"context"
	"errors"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

// Bounds of a bridge's queues.
const (
	maxQueue = 1024    // messages that wait in one direction
	maxBytes = 4 << 20 // … and their size, beside the one that may exceed it
)

type queued struct {
	m   jsonrpc.Message
	err error
}

// queue is what waits in one direction.
type queue struct {
	list  []queued
	bytes int
}

func (q *queue) full() bool { return len(q.list) >= maxQueue || q.bytes >= maxBytes }

func (q *queue) put(e queued) {
	q.list = append(q.list, e)
	q.bytes += size(e.m)
}

func (q *queue) take() queued {
	e := q.list[0]
	q.list[0] = queued{}
	q.list = q.list[1:]
	q.bytes -= size(e.m)
	return e
}

// size is about what a message holds in memory, whichever part of it is kept: each part holds the whole text.
func size(m jsonrpc.Message) int {
	n := m.Params.Size() + m.Result.Size() + m.Error.Size() + len(m.Method)
	for _, e := range m.Extra {
		n += len(e.Name) + e.Value.Size()
	}
	return n
}

// next takes a message from the queue for the client; false: there is none yet.
func (b *Bridge) next(ctx context.Context) (queued, bool) {
	b.mu.Lock()
	if len(b.in.list) > 0 {
		q := b.in.list[0]
		if q.err == nil || unread(q.err) != nil { // the end stays
			b.in.take()
		}
		close(b.inLess)
		b.inLess = make(chan struct{})
		b.mu.Unlock()
		return q, true
	}
	b.mu.Unlock()
	select {
	case <-b.inMore:
		return queued{}, false
	case <-ctx.Done():
		return queued{err: ctx.Err()}, true
	}
}

func unread(err error) *jsonrpc.BadMessage {
	bad := (*jsonrpc.BadMessage)(nil)
	errors.As(err, &bad)
	return bad
}

// toClient hands a message to whoever reads. The caller holds mu.
func (b *Bridge) toClient(m jsonrpc.Message) { b.put(queued{m: m}) }

func (b *Bridge) put(q queued) {
	b.listen()
	b.in.put(q)
	poke(b.inMore)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// toServer writes a message, or has it written where that must be waited for. The caller holds mu.
func (b *Bridge) toServer(m jsonrpc.Message) {
	if b.ended != nil {
		return
	}
	if len(b.out.list) == 0 && !b.busy {
		err := b.inner.Write(jsonrpc.AtOnce, m)
		if err == nil {
			return
		}
		if !errors.Is(err, context.Canceled) {
			go b.unsent(m)
			return
		}
	}
	b.out.put(queued{m: m})
	if !b.writing {
		b.writing = true
		go b.write()
	}
	poke(b.outMore)
}

// answer answers a request of the server's that goes no further. A server that reads nothing does without. The caller holds mu.
func (b *Bridge) answer(m jsonrpc.Message) {
	if !b.out.full() {
		b.toServer(m)
	}
}

// listen starts the goroutine that reads the server. The caller holds mu, and is the goroutine that read it so far.
func (b *Bridge) listen() {
	if b.listening {
		return
	}
	b.listening = true
	b.way.Store(queues)
	go b.hear()
}

// hear reads the server.
func (b *Bridge) hear() {
	for {
		m, err := b.inner.Read(context.Background())
		b.mu.Lock()
		switch bad := unread(err); {
		case err != nil && bad == nil:
			b.end(err)
			b.mu.Unlock()
			return
		case b.tr == nil:
			if !b.search(m, err) {
				b.put(queued{m, err})
			}
		case bad != nil:
			b.tell(bad)
		case m.Kind == jsonrpc.Response && b.own(m.ID): // a late answer, from before the era was known
		default:
			b.tr.fromServer(m)
		}
		for b.in.full() && !b.closed {
			less := b.inLess
			b.mu.Unlock()
			select {
			case <-less:
			case <-b.gone: // nobody reads any more
			}
			b.mu.Lock()
		}
		b.mu.Unlock()
	}
}

// tell passes on that a message could not be read, under the ids that the client knows.
func (b *Bridge) tell(bad *jsonrpc.BadMessage) {
	if !bad.Request {
		copied := *bad
		copied.IDs = nil
		for _, id := range bad.IDs {
			if id = b.tr.clientID(id); !id.IsZero() {
				copied.IDs = append(copied.IDs, id)
			}
		}
		bad = &copied
	}
	b.put(queued{err: bad})
}

// write is the goroutine that writes to the server.
func (b *Bridge) write() {
	for {
		b.mu.Lock()
		if b.ended != nil || b.closed {
			b.mu.Unlock()
			return
		}
		if len(b.out.list) == 0 {
			b.mu.Unlock()
			select {
			case <-b.outMore:
			case <-b.gone:
			}
			continue
		}
		q := b.out.take()
		b.busy = true
		close(b.outLess)
		b.outLess = make(chan struct{})
		b.mu.Unlock()
		err := b.inner.Write(context.Background(), q.m)
		b.mu.Lock()
		b.busy = false
		b.mu.Unlock()
		if err != nil {
			b.unsent(q.m)
		}
	}
}

// unsent answers a request that the transport did not take. One that ended says so itself.
func (b *Bridge) unsent(m jsonrpc.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answer := failure(m.ID, jsonrpc.CodeInternal, "the server takes no more requests")
	switch {
	case b.ended != nil || m.Kind != jsonrpc.Request:
	case b.tr != nil:
		b.tr.fromServer(answer)
	case b.listening && !b.search(answer, nil):
		b.put(queued{m: answer})
	}
}
