package jsonrpc

import (
	"context"
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
	last int64
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
// hear, and messages that could not be read and are no answer to bad, one after the other: they must not wait for an answer
// of this peer, or it never comes. When it returns all open calls have failed with [ErrClosed].
func (p *Peer) Run(ctx context.Context, hear func(Message), bad func(*BadMessage)) error {
	for {
		m, err := p.transport.Read(ctx)
		if unread := (*BadMessage)(nil); errors.As(err, &unread) {
			if call := p.take(unread); call != nil {
				call.answer <- answer{err: unread}
			} else {
				bad(unread)
			}
			continue
		}
		if err != nil {
			p.fail()
			return err
		}
		if m.Kind != Response {
			hear(m)
			continue
		}
		if call := p.remove(m.ID); call != nil {
			call.answer <- answer{message: m}
		} else {
			p.stats.Unsolicited.Add(1)
		}
	}
}

// take finds the call whose answer could not be read.
func (p *Peer) take(unread *BadMessage) *Call {
	if unread.Request {
		return nil
	}
	return p.remove(unread.ID)
}

func (p *Peer) remove(id ID) *Call {
	key := id.Key()
	p.mu.Lock()
	defer p.mu.Unlock()
	call := p.open[key]
	delete(p.open, key)
	return call
}

func (p *Peer) fail() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = ErrClosed
	for key, call := range p.open {
		call.answer <- answer{err: ErrClosed}
		delete(p.open, key)
	}
}

// Call is one request of ours. Its ID is known before it is sent, so that it can serve as a token inside the request.
type Call struct {
	ID   ID
	Data any // the caller's; what [Peer.Find] gives

	peer   *Peer
	answer chan answer // room for the one answer
}

type answer struct {
	message Message
	err     error
}

// Open reserves an id for a request. The caller must send it ([Call.Do]) or forget it ([Call.Forget]).
func (p *Peer) Open(data any) (*Call, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.end != nil:
		return nil, p.end
	case len(p.open) >= maxOpen:
		return nil, ErrTooManyOpen
	}
	p.last++
	id, _ := NewID(strictjson.Number(strconv.FormatInt(p.last, 10)))
	call := &Call{ID: id, Data: data, peer: p, answer: make(chan answer, 1)}
	p.open[id.Key()] = call
	return call, nil
}

// Find returns the open request with this id.
func (p *Peer) Find(id ID) (*Call, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	call, ok := p.open[id.Key()]
	return call, ok
}

// Send sends the request. After an error it is forgotten.
func (c *Call) Send(ctx context.Context, method string, params strictjson.Value, extra ...strictjson.Member) error {
	err := c.peer.transport.Write(ctx, Message{Kind: Request, ID: c.ID, Method: method, Params: params, Extra: extra})
	if err != nil {
		c.Forget()
	}
	return err
}

// Wait waits for the answer: a response, which may carry an error. An answer that came but could not be read is a
// [*BadMessage]; the end of the connection is [ErrClosed]. When ctx ends first the request is forgotten: a late answer is
// dropped and counted.
func (c *Call) Wait(ctx context.Context) (Message, error) {
	select {
	case a := <-c.answer:
		return a.message, a.err
	case <-ctx.Done():
		c.Forget()
		return Message{}, ctx.Err()
	}
}

// Do is Send and Wait.
func (c *Call) Do(ctx context.Context, method string, params strictjson.Value, extra ...strictjson.Member) (Message, error) {
	if err := c.Send(ctx, method, params, extra...); err != nil {
		return Message{}, err
	}
	return c.Wait(ctx)
}

// Forget drops the request; an answer to it is no longer expected.
func (c *Call) Forget() { c.peer.remove(c.ID) }

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
