package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// quickServer asks the client twice with one id: the second time while the answer to the first is being handed to it.
type quickServer struct {
	says    chan jsonrpc.Message
	heard   chan struct{} // the second question has reached the client
	refused atomic.Bool
	asked   bool
	over    sync.Once
	free    sync.Once
}

func (q *quickServer) hear() { q.free.Do(func() { close(q.heard) }) }

func (q *quickServer) ask() {
	id, _ := jsonrpc.NewID(strictjson.String("q"))
	q.says <- jsonrpc.Message{Kind: jsonrpc.Request, ID: id, Method: "roots/list"}
}

func (q *quickServer) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m, open := <-q.says:
		if !open {
			return m, io.EOF
		}
		return m, nil
	case <-ctx.Done():
		return jsonrpc.Message{}, ctx.Err()
	}
}

func (q *quickServer) Write(_ context.Context, m jsonrpc.Message) error {
	switch {
	case m.Method == "initialize":
		v, err := strictjson.Parse([]byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"q","version":"1"}}`), strictjson.Limits{})
		if err != nil {
			return err
		}
		q.says <- jsonrpc.Message{Kind: jsonrpc.Response, ID: m.ID, Result: v}
	case m.Method == "notifications/initialized":
		q.ask()
	case m.Kind == jsonrpc.Response && m.Error.Kind() != strictjson.KindAbsent:
		q.refused.Store(true) // or, after the test, nobody is left to answer
		q.hear()
	case m.Kind == jsonrpc.Response && !q.asked:
		q.asked = true
		q.ask()
		<-q.heard
	}
	return nil
}

func (q *quickServer) Close() error { q.over.Do(func() { close(q.says) }); return nil }

// An id is free when its answer is on its way: a server that asks again at once must not be told that the id is in use.
func TestAServerMayUseAnIdAgainAtOnce(t *testing.T) {
	q := &quickServer{says: make(chan jsonrpc.Message, 4), heard: make(chan struct{})}
	r := newRig(t, Options{Servers: []Server{{Source: Source{Server: "srv"}, Connect: func(context.Context) (jsonrpc.Transport, error) { return q, nil }}}})
	r.ask(initialize)
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	first := parsed(t, r.next())
	r.send(`{"jsonrpc":"2.0","id":` + string(first.Get("id").Append(nil)) + `,"result":{"roots":[]}}`)
	again := make(chan strictjson.Value, 1)
	go func() {
		if r.lines.Scan() {
			v, _ := strictjson.ParseString(r.lines.Text(), strictjson.Limits{})
			again <- v
		}
	}()
	select {
	case v := <-again:
		if v.Get("method").Str() != "roots/list" {
			t.Errorf("the client got %s", v.Append(nil))
		}
		q.hear()
	case <-q.heard:
		t.Error("the second question was refused")
	}
	if q.refused.Load() {
		t.Error("an id that was answered counts as open")
	}
}

// What a server asks of a client that does not answer is bounded in bytes, not only in messages.
func TestLargeRequestsOfAServer(t *testing.T) {
	refused := make(chan int, 1)
	r := world(t, map[string]fakeServer{"srv": func(in *bufio.Scanner, out io.Writer) {
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			if id := parsed(t, in.Text()).Get("id"); id.Kind() != strictjson.KindAbsent {
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`+"\n", id.Append(nil))
				continue
			}
			break
		}
		large := strings.Repeat("x", maxAskedIn/3)
		for n := range 5 {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"%s"}}],"maxTokens":1}}`+"\n", n, large)
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"last","method":"elicitation/create","params":{"mode":"url"}}`+"\n") // which the client does not take
		n := 0
		for in.Scan() {
			v := parsed(t, in.Text())
			if v.Get("id").Str() == "last" {
				break
			}
			if v.Get("error").Kind() != strictjson.KindAbsent {
				n++
			}
		}
		refused <- n
	}})
	r.ask(initialize)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__t"}}`)
	if n := <-refused; n != 3 {
		t.Errorf("%d of 5 refused", n)
	}
}

// Sampling with tools goes to a client that declared it, and to no other: the schema has such a client refuse.
func TestSamplingWithToolsNeedsTheClientsWord(t *testing.T) {
	for _, tt := range []struct {
		capabilities, with string
		passes             bool
	}{
		{`{"sampling":{}}`, ``, true},
		{`{"sampling":{}}`, `,"tools":[]`, false},
		{`{"sampling":{}}`, `,"toolChoice":{"mode":"none"}`, false},
		{`{"sampling":{"tools":true}}`, `,"tools":[]`, false},
		{`{"sampling":{"tools":{}}}`, `,"tools":[],"toolChoice":{"mode":"auto"}`, true},
		{`{}`, ``, false},
	} {
		server := func(in *bufio.Scanner, out io.Writer) { // what came of its question is the answer to the client's
			var list string
			var came strictjson.Value
			for in.Scan() {
				m := parsed(t, in.Text())
				switch id := string(m.Get("id").Append(nil)); m.Get("method").Str() {
				case "tools/list":
					list = id
				case "initialize":
					fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`+"\n", id)
				case "notifications/initialized":
					fmt.Fprintf(out, `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[]%s}}`+"\n", tt.with)
				case "":
					came = m
				}
				if list != "" && came.Kind() != strictjson.KindAbsent {
					fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[],"nextCursor":%q}}`+"\n", list, came.Append(nil))
					list = ""
				}
			}
		}
		r := newRig(t, Options{Servers: []Server{{Source: Source{Server: "srv", SamplingTools: true}, Command: []string{"fake"}}}, Launch: launcher(nil, server)})
		r.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + tt.capabilities + `,"clientInfo":{"name":"c","version":"1"}}}`)
		r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		list := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, func(line string) {
			r.send(`{"jsonrpc":"2.0","id":` + string(parsed(t, line).Get("id").Append(nil)) + `,"result":{"role":"assistant","model":"m","content":{"type":"text","text":"yes"}}}`)
		})
		if got := list.Get("result").Get("nextCursor").Str(); strings.Contains(got, `"text":"yes"`) != tt.passes || strings.Contains(got, "does not take") == tt.passes {
			t.Errorf("%s, %q: %s", tt.capabilities, tt.with, got)
		}
	}
}
