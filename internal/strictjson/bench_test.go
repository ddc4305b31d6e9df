package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	. "github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// A message is read and written again; beside it, what a check by jsontext and a decoding by encoding/json cost.
func BenchmarkReadWrite(b *testing.B) {
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{` +
		`"query":"` + strings.Repeat("lorem ipsum dolor ", 100) + `","limit":10,"tags":["a","b","c"]}}}`
	text := `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + strings.Repeat(`lorem ipsum\n`, 1<<20/13) + `"}]}}`
	var rows []string
	for i := range 10000 {
		rows = append(rows, fmt.Sprintf(`{"name":"row %d","size":%d,"tags":["x","y"],"open":true,"note":"h\u00e9 %d"}`, i, i, i))
	}
	for _, in := range []struct{ name, text string }{
		{"call-2KB", call}, {"text-1MB", text}, {"rows-1MB", `{"rows":[` + strings.Join(rows, ",") + `]}`},
	} {
		data := []byte(in.text)
		var out []byte
		b.Run(in.name+"/strictjson", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				v, err := Parse(data, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				out = v.Append(out[:0])
			}
		})
		b.Run(in.name+"/jsontext-valid", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if !jsontext.Value(data).IsValid() {
					b.Fatal("invalid")
				}
			}
		})
		b.Run(in.name+"/encoding-json", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				var v any
				if err := json.Unmarshal(data, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
