package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// rig is a peer whose other side the test plays by hand.
type rig struct {
	*Peer
	stats Stats
	other *Lines
	heard chan Message
	bad   chan *BadMessage
	ended chan error
}

func newRig(t *testing.T) *rig {
	toPeer, fromOther := io.Pipe()
	toOther, fromPeer := io.Pipe()
	r := &rig{heard: make(chan Message, 10), bad: make(chan *BadMessage, 10), ended: make(chan error, 1)}
	lines := NewLines(toPeer, fromPeer, LineOptions{})
	r.Peer = NewPeer(lines, &r.stats)
	r.other = NewLines(toOther, fromOther, LineOptions{})
	go func() {
		r.ended <- r.Run(context.Background(), func(m Message) { r.heard <- m }, func(b *BadMessage) { r.bad <- b })
	}()
	t.Cleanup(func() { lines.Close(); r.other.Close() })
	return r
}

// raw lets the other side write one line.
func (r *rig) raw(t *testing.T, text string) {
	t.Helper()
	if _, err := r.other.out.Write([]byte(text + "\n")); err != nil {
		t.Fatal(err)
	}
}

// sync waits until the peer has read everything so far.
func (r *rig) sync(t *testing.T) {
	t.Helper()
	r.raw(t, `{"jsonrpc":"2.0","method":"sync"}`)
	for m := range r.heard {
		if m.Method == "sync" {
			return
		}
	}
}

func TestPeerDropsAnswersNobodyWaitsFor(t *testing.T) {
	r := newRig(t)
	r.raw(t, `{"jsonrpc":"2.0","id":1,"result":{}}`) // before it is asked
	r.raw(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`)
	r.sync(t)
	call, err := r.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	type end struct {
		m   Message
		err error
	}
	done := make(chan end)
	go func() {
		m, err := call.Do(t.Context(), "x", strictjson.Value{})
		done <- end{m, err}
	}()
	if m, err := r.other.Read(t.Context()); err != nil || m.Method != "x" {
		t.Fatal(m, err)
	}
	own := string(call.ID.Value().Append(nil))
	for _, id := range []string{`"` + own + `"`, own + `.0`, own + `e0`, `2`, `"never"`} {
		r.raw(t, `{"jsonrpc":"2.0","id":`+id+`,"result":"wrong"}`)
	}
	r.raw(t, `{"jsonrpc":"2.0","id":`+own+`,"result":"right"}`)
	r.raw(t, `{"jsonrpc":"2.0","id":`+own+`,"result":"second"}`)
	r.sync(t)
	if e := <-done; e.err != nil || e.m.Result.Str() != "right" {
		t.Errorf("got %s, %v", e.m.Result.Append(nil), e.err)
	}
	if n := r.stats.Unsolicited.Load(); n != 8 {
		t.Errorf("%d answers dropped, want 8", n)
	}
}

func TestPeerFailsACallWhoseAnswerIsUnreadable(t *testing.T) {
	r := newRig(t)
	call, _ := r.Open(nil)
	go func() {
		r.other.Read(context.Background())
		r.other.out.Write([]byte(`{"jsonrpc":"2.0","id":` + string(call.ID.Value().Append(nil)) + `,"result":{"a":1,"a":2}}` + "\n"))
	}()
	_, err := call.Do(t.Context(), "x", strictjson.Value{})
	if bad := (*BadMessage)(nil); !errors.As(err, &bad) || !errors.Is(err, strictjson.ErrDuplicate) {
		t.Errorf("got %v", err)
	}
	r.raw(t, `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}`) // a bad request is not an answer
	if b := <-r.bad; b.ID().Key() != "1" || !b.Request {
		t.Errorf("got %v", b)
	}
}

func TestPeerForgets(t *testing.T) {
	r := newRig(t)
	call, _ := r.Open("data")
	if found, ok := r.Find(call.ID); !ok || found.Data != "data" {
		t.Error("an open call is not found")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		r.other.Read(context.Background())
		cancel()
	}()
	if _, err := call.Do(ctx, "x", strictjson.Value{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, ok := r.Find(call.ID); ok {
		t.Error("a call that was given up is still found")
	}
	r.raw(t, `{"jsonrpc":"2.0","id":`+string(call.ID.Value().Append(nil))+`,"result":"late"}`)
	r.sync(t)
	if n := r.stats.Unsolicited.Load(); n != 1 {
		t.Errorf("%d late answers counted, want 1", n)
	}
}

func TestPeerEndFailsOpenCalls(t *testing.T) {
	r := newRig(t)
	var all sync.WaitGroup
	for range 5 {
		call, _ := r.Open(nil)
		all.Go(func() {
			if _, err := call.Do(context.Background(), "x", strictjson.Value{}); !errors.Is(err, ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
	}
	for range 5 {
		r.other.Read(t.Context())
	}
	r.other.Close()
	all.Wait()
	if err := <-r.ended; err != io.EOF {
		t.Errorf("Run ended with %v", err)
	}
	if _, err := r.Open(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Open afterwards: %v", err)
	}
}

func TestPeerBoundsOpenCalls(t *testing.T) {
	p := NewPeer(nil, nil)
	for range maxOpen {
		if _, err := p.Open(nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Open(nil); !errors.Is(err, ErrTooManyOpen) {
		t.Errorf("got %v", err)
	}
}

// Whoever hears a message may wait for an answer of the same peer once another goroutine reads; messages are heard in order.
func TestReadingGoesOnWhileOneWaits(t *testing.T) {
	toPeer, fromOther := io.Pipe()
	toOther, fromPeer := io.Pipe()
	lines, other := NewLines(toPeer, fromPeer, LineOptions{}), NewLines(toOther, fromOther, LineOptions{})
	p := NewPeer(lines, nil)
	ctx := context.Background()
	heard, ended := make(chan string, 10), make(chan error, 1)
	go func() {
		ended <- p.RunOn(ctx, func(m Message, readOn func()) {
			if m.Kind == Request {
				readOn()
				readOn() // for nothing
				call, err := p.Open(nil)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := call.Do(ctx, "back", strictjson.Value{}); err != nil {
					t.Error(err)
				}
			}
			heard <- m.Method
		}, func(*BadMessage) {})
	}()
	for _, text := range []string{`{"jsonrpc":"2.0","id":1,"method":"waits"}`, `{"jsonrpc":"2.0","method":"a"}`, `{"jsonrpc":"2.0","method":"b"}`} {
		if _, err := other.out.Write([]byte(text + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := <-heard, <-heard; a != "a" || b != "b" {
		t.Errorf("heard %s, %s", a, b)
	}
	back, err := other.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Write(ctx, Message{Kind: Response, ID: back.ID, Result: strictjson.Object()}); err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "waits" {
		t.Errorf("heard %s", got)
	}
	other.Close()
	if err := <-ended; err != io.EOF {
		t.Errorf("ended with %v", err)
	}
	lines.Close()
}

func ExamplePeer() {
	toClient, fromServer := io.Pipe()
	toServer, fromClient := io.Pipe()
	client := NewPeer(NewLines(toClient, fromClient, LineOptions{}), nil)
	server := NewPeer(NewLines(toServer, fromServer, LineOptions{}), nil)
	ctx := context.Background()
	go client.Run(ctx, func(Message) {}, func(*BadMessage) {})
	go server.Run(ctx, func(m Message) {
		server.Reply(ctx, m.ID, strictjson.String(strings.ToUpper(m.Params.Get("text").Str())), strictjson.Value{})
	}, func(*BadMessage) {})

	call, err := client.Open(nil)
	if err != nil {
		panic(err)
	}
	m, err := call.Do(ctx, "shout", strictjson.Object(strictjson.Member{Name: "text", Value: strictjson.String("hello")}))
	fmt.Println(m.Result.Str(), err)
	// Output: HELLO <nil>
}

// A server that knows one id must not know the next: it could answer a question before it is asked.
func TestIDsCannotBeForetold(t *testing.T) {
	p := NewPeer(nil, nil)
	seen := map[string]bool{}
	for range 1000 {
		call, err := p.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseUint(call.ID.Value().Number(), 10, 64)
		if err != nil || n >= 1<<53 || seen[strconv.FormatUint(n-1, 10)] || seen[call.ID.Key()] {
			t.Errorf("id %s, %v", call.ID.Key(), err)
		}
		seen[call.ID.Key()] = true
	}
}
