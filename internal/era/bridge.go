package era

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// probeFor is how long a server may take to answer server/discover before it is asked to initialize as well.
const probeFor = 10 * time.Second

// Bridge is a [jsonrpc.Transport] to a server of either era, for a client of either.
type Bridge struct {
	inner jsonrpc.Transport
	mem   *Memory
	way   atomic.Int32 // how Read and Write work, see below

	mu      sync.Mutex // guards all below
	phase   phase
	settled chan struct{}   // closed when the phase is the last one
	first   jsonrpc.Message // the client's own initialize or server/discover, while it waits for the eras to be known; zero if it opened with another request
	hello   strictjson.Value
	probe   jsonrpc.ID      // of the server/discover that is under way
	greet   jsonrpc.ID      // of the bridge's own initialize that is under way
	refusal jsonrpc.Message // the server's refusal of the first question: the client gets it where it asked that, and the other era fails too
	fails   bool            // the server refused the bridge's initialize
	vain    bool            // an answer of the search was none of the server's, which was not reached
	again   bool            // so nothing was learnt of it: the next request asks anew
	timer   *time.Timer
	tr      translator // nil where nothing is translated
	ended   error

	in, out   queue         // to the client, to the server
	inMore    chan struct{} // something was put into in
	outMore   chan struct{}
	inLess    chan struct{} // closed and replaced when something was taken from in
	outLess   chan struct{}
	writing   bool // the goroutine that writes out runs
	busy      bool // … and is at it
	listening bool // the goroutine that reads the server runs
	closed    bool
	gone      chan struct{} // closed with it
}

// How a bridge reads and writes.
const (
	deciding = iota // the eras are not known yet
	straight        // both are of one era: the server's transport is used as it is
	queues          // a goroutine reads the server
)

// phase is how far the eras are known.
type phase uint8

const (
	open          phase = iota // the client has said nothing that tells its era
	legacyAsked                // its initialize is at the server
	modernAsked                // a server/discover is at the server, for a modern client; an initialize may be as well
	probingModern              // a server/discover is at the server, for a legacy client
	last                       // known: tr says whether there is something to translate
)

// translator turns messages around. It is called with the bridge's lock held and hands on by [Bridge.toServer] and
// [Bridge.toClient].
type translator interface {
	fromClient(jsonrpc.Message)
	fromServer(jsonrpc.Message)
	clientID(jsonrpc.ID) jsonrpc.ID // what the client knows a request at the server by; zero if it waits for no answer
	end()                           // the server has ended
}

// New makes a bridge to the server at the other end of inner. mem may be nil. It starts no goroutine before it has something to
// translate; those end with the transport.
func New(inner jsonrpc.Transport, mem *Memory) *Bridge {
	if mem == nil {
		mem = new(Memory)
	}
	return &Bridge{
		inner: inner, mem: mem, settled: make(chan struct{}),
		inMore: make(chan struct{}, 1), outMore: make(chan struct{}, 1), inLess: make(chan struct{}), outLess: make(chan struct{}),
		gone: make(chan struct{}),
	}
}

// Write takes a message of the client.
func (b *Bridge) Write(ctx context.Context, m jsonrpc.Message) error {
	if b.way.Load() == straight {
		return b.inner.Write(ctx, m)
	}
	waited := false
	for {
		b.mu.Lock()
		var wait chan struct{}
		if b.again && !waited && m.Kind == jsonrpc.Request { // one that waited for the search gets what came of it
			b.reopen()
		}
		switch {
		case b.ended != nil:
			b.mu.Unlock()
			return jsonrpc.ErrClosed
		case b.tr != nil && !b.out.full():
			b.tr.fromClient(m)
			b.mu.Unlock()
			return nil
		case b.tr != nil:
			wait = b.outLess
		case b.phase == last, b.phase == legacyAsked:
			b.mu.Unlock()
			return b.inner.Write(ctx, m)
		case b.phase == open:
			send, held := b.begin(m)
			b.mu.Unlock()
			if send.Kind != 0 {
				if err := b.inner.Write(ctx, send); err != nil {
					b.unbegin()
					return err
				}
			}
			if !held {
				return nil
			}
			continue
		default:
			wait = b.settled
		}
		b.mu.Unlock()
		select {
		case <-wait:
			waited = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reopen begins the search anew. The caller holds mu.
func (b *Bridge) reopen() {
	b.phase, b.settled = open, make(chan struct{})
	b.first, b.refusal, b.hello, b.probe, b.greet = jsonrpc.Message{}, jsonrpc.Message{}, strictjson.Value{}, jsonrpc.ID{}, jsonrpc.ID{}
	b.fails, b.vain, b.again = false, false, false
}

// begin looks at a message of a client whose era is not known. send is what goes to the server now, if anything; held says that
// the message itself waits until the server's era is known. The caller holds mu.
func (b *Bridge) begin(m jsonrpc.Message) (send jsonrpc.Message, held bool) {
	discover, ofNone := m.Method == "server/discover", absent(m.Params.Get("_meta").Get(metaVersion))
	modern, old := b.mem.get()
	switch {
	case m.Kind == jsonrpc.Request && m.Method == "initialize" && ofNone:
		b.first, b.hello = m, m.Params
		if modern == yes && old == no {
			b.phase = probingModern
			return b.discover(b.ownDiscover()), false
		}
		b.phase = legacyAsked
		return m, false
	case m.Kind != jsonrpc.Request || !discover && ofNone:
		return m, false // of no era
	case modern == yes:
		b.settle(nil)
		return m, false
	}
	b.phase, b.hello = modernAsked, m.Params
	discover = discover && sound(m.Params.Get("_meta")) // another may be refused for what it lacks, by a server of either era
	if discover {
		b.first = m
	}
	switch {
	case modern == no && old == yes:
		return b.initialize(), !discover
	case discover:
		return b.discover(m), false
	}
	return b.discover(b.ownDiscover()), true
}

// unbegin forgets what could not be written.
func (b *Bridge) unbegin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.phase != last {
		b.phase, b.first, b.probe, b.greet = open, jsonrpc.Message{}, jsonrpc.ID{}, jsonrpc.ID{}
		b.stopTimer()
	}
}

func (b *Bridge) stopTimer() {
	if b.timer != nil {
		b.timer.Stop()
	}
}

// discover notes that m, a server/discover, goes to the server.
func (b *Bridge) discover(m jsonrpc.Message) jsonrpc.Message {
	b.probe = m.ID
	b.timer = time.AfterFunc(probeFor, b.impatient)
	return m
}

// ownDiscover makes a server/discover. For a modern client, who does not see the answer, it says nothing that a server could refuse.
func (b *Bridge) ownDiscover() jsonrpc.Message {
	meta := strictjson.Object(member(metaVersion, str(Modern)), member(metaCapabilities, strictjson.Object()))
	if absent(b.hello.Get("_meta").Get(metaVersion)) {
		meta = modernMeta(b.hello)
	}
	return request(jsonrpc.RandomID(), "server/discover", strictjson.Object(member("_meta", meta)))
}

// initialize makes an initialize with what a modern client said of itself.
func (b *Bridge) initialize() jsonrpc.Message {
	meta := b.hello.Get("_meta")
	info := meta.Get(metaClient)
	if !named(info) {
		info = strictjson.Object(member("name", str("hearsay")), member("version", str("0")))
	}
	b.greet = jsonrpc.RandomID()
	return request(b.greet, "initialize", strictjson.Object(
		member("protocolVersion", str(legacy[0])),
		member("capabilities", withoutTasks(meta.Get(metaCapabilities))),
		member("clientInfo", info)))
}

// impatient goes on where a server does not answer server/discover: older ones need not answer what they do not know.
func (b *Bridge) impatient() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended != nil || b.probe.IsZero():
	case b.phase == modernAsked && b.greet.IsZero():
		b.toServer(b.initialize())
	case b.phase == probingModern:
		b.giveUp()
	}
}

// settle ends the search. The caller holds mu.
func (b *Bridge) settle(tr translator) {
	b.stopTimer()
	b.tr, b.phase = tr, last
	if tr == nil && !b.listening && !b.writing && b.greet.IsZero() { // nor does the server owe the bridge an answer
		b.way.Store(straight)
	}
	close(b.settled)
}

// giveUp leaves the client alone with the server: neither era helps. It gets the server's refusal.
func (b *Bridge) giveUp() {
	if b.phase == probingModern && b.refusal.Kind == 0 { // it was thought to be modern, and has not been asked to initialize
		b.stopTimer()
		b.phase = legacyAsked
		b.toServer(b.first)
		return
	}
	if b.refusal.Kind != 0 && b.refusal.ID.Key() == b.first.ID.Key() {
		b.toClient(b.refusal)
	}
	b.mem.forget()
	b.settle(nil)
	b.again = b.vain
}

// Read gives the next message for the client.
func (b *Bridge) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		switch b.way.Load() {
		case straight:
			return b.inner.Read(ctx)
		case deciding:
			m, err := b.inner.Read(ctx)
			b.mu.Lock()
			mine := b.search(m, err)
			b.mu.Unlock()
			if !mine {
				return m, err
			}
		default:
			if q, ok := b.next(ctx); ok {
				return q.m, q.err
			}
		}
	}
}

// end notes that the server has ended. The caller holds mu.
func (b *Bridge) end(err error) {
	b.ended = err
	b.stopTimer()
	if b.tr != nil {
		b.tr.end()
	}
	if b.phase != last {
		b.phase = last
		close(b.settled)
	}
	poke(b.outMore)
	close(b.outLess)
	b.outLess = make(chan struct{})
	if b.listening {
		b.put(queued{err: err})
	}
}

// Close closes the server's transport. The goroutines end then, also if nobody reads what has come.
func (b *Bridge) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.gone)
		b.stopTimer()
	}
	b.mu.Unlock()
	return b.inner.Close()
}
