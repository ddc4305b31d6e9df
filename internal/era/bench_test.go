package era

import (
	"context"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// looped is a server that answers each request at once with a text of 2 KB.
type looped struct{ answers chan jsonrpc.Message }

func (l looped) Read(context.Context) (jsonrpc.Message, error) { return <-l.answers, nil }

func (l looped) Write(_ context.Context, m jsonrpc.Message) error {
	switch m.Method {
	case "tools/call":
		m = result(m.ID, answer2K)
	case "initialize":
		m = result(m.ID, strictjson.Object(member("protocolVersion", str("2025-11-25")), member("capabilities", strictjson.Object())))
	case "server/discover":
		m = failure(m.ID, jsonrpc.CodeMethodNotFound, "no")
	default:
		return nil
	}
	l.answers <- m
	return nil
}

func (looped) Close() error { return nil }

var answer2K, _ = strictjson.ParseString(`{"content":[{"type":"text","text":"`+strings.Repeat("x", 2<<10)+`"}]}`, strictjson.Limits{})

// What a call costs without a bridge, with one that translates nothing, and with one that does.
func BenchmarkCall(b *testing.B) {
	for _, way := range []string{"none", "same era", "across"} {
		b.Run(way, func(b *testing.B) {
			var server jsonrpc.Transport = looped{make(chan jsonrpc.Message, 16)}
			if way != "none" {
				server = New(server, nil)
			}
			first := message(b, `{"id":"i","method":"initialize",`+oldHello+`}`)
			call := message(b, callA)
			if way == "across" {
				first = message(b, `{"id":"d","method":"server/discover","params":{`+meta+`}}`)
			}
			turn := func(m jsonrpc.Message) {
				if err := server.Write(b.Context(), m); err != nil {
					b.Fatal(err)
				}
				if _, err := server.Read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			turn(first)
			b.ReportAllocs()
			for b.Loop() {
				turn(call)
			}
		})
	}
}
