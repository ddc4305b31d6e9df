package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// describeFor is how long a server may take to start and say all it offers. npx may download it first.
const describeFor = 3 * time.Minute

// Describe starts a server, asks it for everything it offers and ends it. Nothing of the answer is cleaned: it is what
// [Offer.Approve] judges and what a lock keeps. launch is as in [Options].
func Describe(ctx context.Context, s Server, launch func(context.Context, Server) (*Process, error)) (Offer, error) {
	ctx, cancel := context.WithTimeout(ctx, describeFor)
	defer cancel()
	s.Source.Trust = FirstParty // for this client, which shows nothing to a model
	g, err := NewGateway(Options{Servers: []Server{s}, Launch: launch})
	if err != nil {
		return Offer{}, err
	}
	near, far := memoryTransport()
	var work sync.WaitGroup
	work.Go(func() { g.Serve(ctx, Client{Transport: far}) })
	defer work.Wait()
	defer near.Close()
	peer := jsonrpc.NewPeer(near, nil)
	work.Go(func() {
		peer.Run(ctx, func(m jsonrpc.Message) { // whoever describes answers no questions
			if m.Kind == jsonrpc.Request {
				peer.Reply(jsonrpc.AtOnce, m.ID, strictjson.Value{}, ownError(jsonrpc.CodeMethodNotFound, "no answer while a server is described"))
			}
		}, func(*jsonrpc.BadMessage) {})
	})
	o, err := describe(ctx, peer)
	if err != nil {
		return Offer{}, fmt.Errorf("asking server %s what it offers: %w", s.Server, err)
	}
	o.Server, o.Launch = s.Server, s.launched()
	return o, nil
}

// describeHello declares what a client can, since some servers offer tools only to clients that can do something.
const describeHello = `{"protocolVersion":"2025-11-25","clientInfo":{"name":"hearsay-pin","version":"1"},
	"capabilities":{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}}}}`

func describe(ctx context.Context, peer *jsonrpc.Peer) (Offer, error) {
	hello, err := strictjson.ParseString(describeHello, strictjson.Limits{})
	if err != nil {
		return Offer{}, err
	}
	greeting, err := askPeer(ctx, peer, "initialize", hello)
	if err != nil {
		return Offer{}, err
	}
	if err := peer.Notify(ctx, "notifications/initialized", strictjson.Value{}); err != nil {
		return Offer{}, err
	}
	o := Offer{Info: greeting.Get("serverInfo"), Instructions: greeting.Get("instructions").Str(), Definitions: map[PinKind][]strictjson.Value{}}
	for _, kind := range pinKinds {
		if greeting.Get("capabilities").Get([...]string{"tools", "prompts", "resources"}[kind]).Kind() == strictjson.KindAbsent {
			continue
		}
		cursor := strictjson.Value{}
		for range maxPages {
			page, err := askPeer(ctx, peer, kind.method(), strictjson.Object(strictjson.Member{Name: "cursor", Value: cursor}))
			var refused *peerError
			if errors.As(err, &refused) && refused.code == jsonrpc.CodeMethodNotFound {
				break // resources without templates
			}
			if err != nil {
				return o, err
			}
			for _, def := range page.Get(kind.section()).Elems() {
				if len(o.Definitions[kind]) >= maxDefinitions {
					return o, fmt.Errorf("it offers more than %d %ss", maxDefinitions, kind)
				}
				o.Definitions[kind] = append(o.Definitions[kind], def)
			}
			next := page.Get("nextCursor")
			if next.Kind() != strictjson.KindString || next.Str() == cursor.Str() {
				break
			}
			cursor = next
		}
	}
	return o, nil
}

// peerError is a server's refusal.
type peerError struct {
	code    int
	message string
}

func (e *peerError) Error() string {
	return fmt.Sprintf("it answered with error %d, %s", e.code, Quote(e.message))
}

func askPeer(ctx context.Context, peer *jsonrpc.Peer, method string, params strictjson.Value) (strictjson.Value, error) {
	call, err := peer.Open(nil)
	if err != nil {
		return strictjson.Value{}, err
	}
	m, err := call.Do(ctx, method, params)
	switch {
	case err != nil:
		return strictjson.Value{}, err
	case m.Error.Kind() != strictjson.KindAbsent:
		code, _ := jsonrpc.ErrorCode(m.Error)
		return strictjson.Value{}, &peerError{code, m.Error.Get("message").Str()}
	}
	return m.Result, nil
}

// memoryEnd is one end of a transport within the process.
type memoryEnd struct {
	in   <-chan jsonrpc.Message
	out  chan<- jsonrpc.Message
	ends chan struct{} // closed when either end is
	once *sync.Once
}

func memoryTransport() (near, far *memoryEnd) {
	one, two, ends, once := make(chan jsonrpc.Message), make(chan jsonrpc.Message), make(chan struct{}), new(sync.Once)
	return &memoryEnd{one, two, ends, once}, &memoryEnd{two, one, ends, once}
}

func (e *memoryEnd) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-e.in:
		return m, nil
	case <-e.ends:
		return jsonrpc.Message{}, io.EOF
	case <-ctx.Done():
		return jsonrpc.Message{}, ctx.Err()
	}
}

func (e *memoryEnd) Write(ctx context.Context, m jsonrpc.Message) error {
	select {
	case e.out <- m:
		return nil
	case <-e.ends:
		return jsonrpc.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *memoryEnd) Close() error {
	e.once.Do(func() { close(e.ends) })
	return nil
}

// Draft drafts what the gate should know about the tools, from their names, descriptions and schemas.
func (o Offer) Draft() []gate.ToolLabels {
	var labels []gate.ToolLabels
	for _, def := range o.Definitions[PinTool] {
		hints, _ := def.Get("annotations").Any().(map[string]any)
		labels = append(labels, gate.Draft(gate.ToolDef{
			Server: o.Server, Name: def.Get("name").Str(), Description: def.Get("description").Str(),
			InputSchema: def.Get("inputSchema").Any(), Annotations: hints,
		}))
	}
	return labels
}
