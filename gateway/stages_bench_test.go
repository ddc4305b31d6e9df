package gateway

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
	"github.com/seed-4e9f7b04/hearsay/screen"
)

// BenchmarkStages is a call through a session with all stages, one after the other switched on.
func BenchmarkStages(b *testing.B) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 44)
	policy, err := gate.Compile(gate.Spec{
		Permissions: gate.Permissions{Allow: []gate.Source{{Text: "srv.*"}}},
		Tools:       []gate.ToolSpec{{Labels: gate.ToolLabels{Server: "srv", Tool: "t", Effects: gate.Read}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	screens, err := screen.New(screen.Options{})
	if err != nil {
		b.Fatal(err)
	}
	log, err := audit.Open(filepath.Join(b.TempDir(), "audit"), audit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	for _, in := range []struct {
		name string
		opt  Options
	}{
		{"none", Options{}}, {"policy", Options{Policy: policy}}, {"screens", Options{Screens: screens}}, {"audit", Options{Audit: log}},
		{"all", Options{Policy: policy, Screens: screens, Audit: log}},
	} {
		for _, callers := range []int{1, 16} {
			b.Run(in.name+"/"+itoa(int64(callers)), func(b *testing.B) {
				in.opt.Launch = launcher(nil, answering(func(string, strictjson.Value) string {
					return `"result":{"content":[{"type":"text","text":"` + text + `"}]}`
				}))
				r := newRig(b, in.opt)
				r.ask(initialize)
				open := 0
				for i := 0; b.Loop(); i++ {
					r.send(`{"jsonrpc":"2.0","id":` + itoa(int64(i)) + `,"method":"tools/call","params":{"name":"t","arguments":{"text":"` + text[:200] + `"}}}`)
					if open++; open == callers {
						r.next()
						open--
					}
				}
				for ; open > 0; open-- {
					r.next()
				}
			})
		}
	}
}
