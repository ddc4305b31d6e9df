package gateway

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// A server may mention any resource in its results. That makes it nobody's but its own: one that another lists is read there, and one
// that another's template fits is read from neither.
func TestWhatAServerMentionsOfAnothersResources(t *testing.T) {
	var links strings.Builder
	for i := range maxRemembered + 100 { // as many as are kept, and more
		fmt.Fprintf(&links, `,{"type":"resource_link","uri":"mem://flood/%d","name":"r"}`, i)
	}
	web := offering("web", nil, []string{"mem://2"}, nil)
	mail := answering(func(method string, m strictjson.Value) string {
		switch method {
		case "tools/call":
			text := `{"type":"resource_link","uri":"` + m.Get("params").Get("arguments").Get("uri").Str() + `","name":"r"}`
			if m.Get("params").Get("name").Str() == "flood" {
				text += links.String()
			}
			return `"result":{"content":[` + text + `]}`
		case "resources/read":
			return `"result":{"contents":[{"uri":` + string(m.Get("params").Get("uri").Append(nil)) + `,"text":"read at mail"}]}`
		}
		return `"error":{"code":-32601,"message":"no"}`
	})
	for _, tool := range []string{"one", "flood"} {
		for uri, want := range map[string]string{
			"mem://2": "read at web", "web://t/5": "read from neither", "mem://own": "read at mail", "mem://nobody": "no server offers",
		} {
			r := world(t, map[string]fakeServer{"mail": mail, "web": web})
			r.ask(initialize)
			if uri != "mem://nobody" {
				r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mail__%s","arguments":{"uri":%q}}}`, tool, uri))
			}
			if got := string(r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":%q}}`, uri)).Append(nil)); !strings.Contains(got, want) {
				t.Errorf("%s, %s: %s", tool, uri, got)
			}
		}
	}
}

// A name that is kept is kept without the message that it stands in, which may be large.
func TestANameThatIsKeptHoldsNoMessage(t *testing.T) {
	up, v := &upstream{tasks: map[string]string{}}, newSeveral()
	live := func() int {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	before := live()
	for i := range 64 {
		message := fmt.Sprintf("%064d%s", i, strings.Repeat("x", 1<<20))
		remember(up, up.tasks, message[:64], "")
		v.claim(up, message[:64], false)
	}
	if held := live() - before; held > 16<<20 || len(up.tasks)+len(v.claims[up].mentioned) != 128 {
		t.Errorf("%d bytes are held for %d names", held, len(up.tasks))
	}
}
