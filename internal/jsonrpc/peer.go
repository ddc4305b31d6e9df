package jsonrpc

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"strconv"
	"sync"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// maxOpen bounds the requests a peer has open: far above any client, far below what could hurt.
const maxOpen = 4096

// ErrTooManyOpen says that the other side owes too many answers.
var ErrTooManyOpen = errors.New("too many requests are waiting for an answer")

// Peer is one side's end of a transport: it makes requests with ids of its own and hears what the other side sends.
type Peer struct {
	transport Transport
	stats     *Stats

	mu   sync.Mutex
	open map[string]*Call
	end  error // why there can be no more answers, once that is so
}

// NewPeer makes a peer. stats counts the answers that are dropped; nil = none kept.
func NewPeer(t Transport, stats *Stats) *Peer {
	if stats == nil {
		stats = new(Stats)
	}
	return &Peer{transport: t, stats: stats, open: map[string]*Call{}}
}

// Run reads until the transport ends, and returns why: io.EOF is the ordinary end. It gives requests and notifications to
// hear, messages that could not be read and are no answer to bad, and answers to whoever waits for them, one after the other:
// none of these may wait for an answer of this peer, or it never comes. When it returns all open calls have failed with
// [ErrClosed].
func (p *Peer) Run(ctx context.Context, hear func(Message), bad func(*BadMessage)) error {
	return p.RunOn(ctx, func(m Message, _ func()) { hear(m) }, bad)
}

// RunOn is Run with a way to wait: once hear has called readOn, another goroutine reads the next message, and hear may take
// its time; RunOn does not wait for it. A message that needs no waiting is so heard where it was read, without the switch to
// another goroutine, which can take longer than all the rest. readOn may be called again, by the same goroutine, for nothing.
func (p *Peer) RunOn(ctx context.Context, hear func(m Message, readOn func()), bad func(*BadMessage)) error {
	ended := make(chan error, 1)
	var read func()
	read = func() {
		for {
			m, err := p.transport.Read(ctx)
			if unread := (*BadMessage)(nil); err != nil && errors.As(err, &unread) {
				if !p.failAnswer(unread) {
					bad(unread)
				}
				continue
			}
			if err != nil {
				p.fail()
				ended <- err
				return
			}
			if m.Kind != Response {
				passed := false
				hear(m, func() {
					if !passed {
						passed = true
						go read()
					}
				})
				if passed {
					return
				}
				continue
			}
			if call := p.remove(m.ID); call != nil {
				call.answered(m, nil)
			} else {
				p.stats.Unsolicited.Add(1)
			}
		}
	}
	read()
	return <-ended
}

// failAnswer fails the call whose answer could not be read.
func (p *Peer) failAnswer(unread *BadMessage) bool {
	if unread.Request {
		return false
	}
	found := false
	for _, id := range unread.IDs {
		if call := p.remove(id); call != nil {
			call.answered(Message{}, unread)
			found = true
		}
	}
	return found
}

// remove takes a call that was sent from the open ones.
func (p *Peer) remove(id ID) *Call {
	key := id.Key()
	p.mu.Lock()
	defer p.mu.Unlock()
	call := p.open[key]
	if call == nil || call.answered == nil {
		return nil
	}
	delete(p.open, key)
	return call
}

func (p *Peer) fail() {
	p.mu.Lock()
	p.end = ErrClosed
	var open []*Call
	for key, call := range p.open {
		if call.answered != nil {
			open = append(open, call)
			delete(p.open, key)
		}
	}
	p.mu.Unlock()
	for _, call := range open {
		call.answered(Message{}, ErrClosed)
	}
}

// Call is one request of ours. Its ID is known before it is sent, so that it can serve as a token inside the request.
type Call struct {
	ID   ID
	Data any // the caller's; what [Peer.Find] gives

	// Waits is called before Send waits for the transport to take the request. nil: Send just waits.
	Waits func()

	peer     *Peer
	answered func(Message, error) // nil until it is sent
}

// Open reserves an id for a request. The caller must send it ([Call.Do], [Call.Send]) or forget it ([Call.Forget]).
func (p *Peer) Open(data any) (*Call, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.end != nil:
		return nil, p.end
	case len(p.open) >= maxOpen:
		return nil, ErrTooManyOpen
	}
	id := RandomID()
	for p.open[id.Key()] != nil {
		id = RandomID()
	}
	call := &Call{ID: id, Data: data, peer: p}
	p.open[id.Key()] = call
	return call, nil
}

// RandomID draws an id: whoever could tell the next one could answer it before it is asked. It is a number that every JSON
// library keeps exactly.
func RandomID() ID {
	var b [8]byte
	rand.Read(b[:])
	return ID{strictjson.Number(strconv.FormatUint(binary.LittleEndian.Uint64(b[:])>>12, 10))}
}

// Find returns the open request with this id.
func (p *Peer) Find(id ID) (*Call, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	call, ok := p.open[id.Key()]
	return call, ok
}

// Calls returns the open requests, in no order.
func (p *Peer) Calls() []*Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := make([]*Call, 0, len(p.open))
	for _, call := range p.open {
		calls = append(calls, call)
	}
	return calls
}

// Send sends the request. answered is called once with the answer: a response, which may carry an error; or with a
// [*BadMessage], when an answer came but could not be read, or [ErrClosed]. It is called by the goroutine that runs the peer,
// and not at all after an error of Send or after [Call.Forget] returned true.
func (c *Call) Send(ctx context.Context, method string, params strictjson.Value, answered func(Message, error), extra ...strictjson.Member) error {
	c.peer.mu.Lock()
	c.answered = answered
	if c.peer.end != nil {
		c.answered = nil
		c.peer.mu.Unlock()
		return ErrClosed
	}
	c.peer.mu.Unlock()
	m := Message{Kind: Request, ID: c.ID, Method: method, Params: params, Extra: extra}
	at := ctx
	if c.Waits != nil {
		at = AtOnce
	}
	err := c.peer.transport.Write(at, m)
	if c.Waits != nil && errors.Is(err, context.Canceled) {
		c.Waits()
		err = c.peer.transport.Write(ctx, m)
	}
	if err != nil && !c.Forget() {
		return nil // it has been answered all the same, with the end of the connection
	}
	return err
}

// AtOnce is a context that waits for nothing: with it a message is written or queued now, or it is not.
var AtOnce = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Forget drops the request: an answer to it is no longer expected. It returns false if there was one already.
func (c *Call) Forget() bool {
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	key := c.ID.Key()
	_, open := c.peer.open[key]
	delete(c.peer.open, key)
	return open
}

// Do sends the request and waits for the answer. When ctx ends first the request is forgotten: a late answer is dropped and
// counted.
func (c *Call) Do(ctx context.Context, method string, params strictjson.Value, extra ...strictjson.Member) (Message, error) {
	type answer struct {
		m   Message
		err error
	}
	came := make(chan answer, 1)
	if err := c.Send(ctx, method, params, func(m Message, err error) { came <- answer{m, err} }, extra...); err != nil {
		return Message{}, err
	}
	select {
	case a := <-came:
		return a.m, a.err
	case <-ctx.Done():
		if c.Forget() {
			return Message{}, ctx.Err()
		}
		a := <-came
		return a.m, a.err
	}
}

// Notify sends a notification.
func (p *Peer) Notify(ctx context.Context, method string, params strictjson.Value, extra ...strictjson.Member) error {
	return p.transport.Write(ctx, Message{Kind: Notification, Method: method, Params: params, Extra: extra})
}

// Reply answers the other side's request: with failure if it is not absent, otherwise with result.
func (p *Peer) Reply(ctx context.Context, id ID, result, failure strictjson.Value) error {
	m := Message{Kind: Response, ID: id, Error: failure}
	if failure.Kind() == strictjson.KindAbsent {
		m.Result = result
	}
	return p.transport.Write(ctx, m)
}
