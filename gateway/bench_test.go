package gateway

import (
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// BenchmarkCall is one call through a whole session, with the server in the same process: what the gateway itself costs.
// The figures beside a direct call and a bare relay come from internal/realtest/bench.
func BenchmarkCall(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. \\n", 1<<20/46)
	for _, in := range []struct{ name, result string }{
		{"2KB", `"result":{"content":[{"type":"text","text":"` + text[:1974] + `"}]}`},
		{"1MB", `"result":{"content":[{"type":"text","text":"` + text + `"}]}`},
		{"1MB-structured", `"result":{"content":[{"type":"text","text":"` + text + `"}],"structuredContent":{"content":"` + text + `"}}`},
	} {
		b.Run(in.name, func(b *testing.B) {
			r := newRig(b, Options{Launch: launcher(nil, answering(func(string, strictjson.Value) string { return in.result }))})
			r.ask(initialize)
			call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"text":"` + text[:1974] + `"}}}`
			b.SetBytes(int64(len(in.result)))
			b.ReportAllocs()
			for b.Loop() {
				r.send(call)
				r.next()
			}
		})
	}
}
