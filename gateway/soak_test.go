package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// TestSoak lets 16 clients call three servers each that die at random moments: every call gets its own answer or an error,
// nothing is mixed, and nothing piles up. HEARSAY_SOAK=100000 plays as many calls; by default it is a short one.
func TestSoak(t *testing.T) {
	calls := 4000
	if s := os.Getenv("HEARSAY_SOAK"); s != "" {
		var err error
		if calls, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	mortal := func(in *bufio.Scanner, out io.Writer) {
		for left := 50 + rand.IntN(200); left > 0 && in.Scan(); left-- { // messages it lives for
			m, err := strictjson.Parse(in.Bytes(), strictjson.Limits{})
			if err != nil {
				return
			}
			result := `{"content":[{"type":"text","text":` + string(m.Get("params").Get("arguments").Get("text").Append(nil)) + `}]}`
			if m.Get("method").Str() == "initialize" {
				result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}`
			}
			if id := m.Get("id"); id.Kind() != strictjson.KindAbsent && left > 1 {
				io.WriteString(out, `{"jsonrpc":"2.0","id":`+string(id.Append(nil))+`,"result":`+result+"}\n")
			}
		}
	}
	opt := Options{Joined: true, Version: "1", Launch: launcher(nil, mortal)}
	for _, name := range []string{"a", "b", "c"} {
		opt.Servers = append(opt.Servers, Server{Source: Source{Server: name}, Command: []string{"fake"}})
	}
	g, err := NewGateway(opt)
	if err != nil {
		t.Fatal(err)
	}
	const clients, width = 16, 8
	var all sync.WaitGroup
	var mu sync.Mutex
	answered, failed := 0, 0
	for c := range clients {
		near, far := memoryTransport()
		all.Go(func() {
			if err := g.Serve(context.Background(), Client{Transport: far}); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			defer near.Close()
			peer := jsonrpc.NewPeer(near, nil)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				peer.Run(context.Background(), func(jsonrpc.Message) {}, func(*jsonrpc.BadMessage) {})
			}()
			ask := func(method, params string) jsonrpc.Message {
				call, err := peer.Open(nil)
				if err != nil {
					t.Error(err)
					return jsonrpc.Message{}
				}
				m, err := call.Do(context.Background(), method, parsed(t, params))
				if err != nil {
					t.Errorf("client %d: %v", c, err)
				}
				return m
			}
			ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
			var workers sync.WaitGroup
			for w := range width {
				workers.Go(func() {
					for i := range calls / clients / width {
						text := fmt.Sprintf("client %d worker %d call %d.", c, w, i)
						m := ask("tools/call", fmt.Sprintf(`{"name":"%c__echo","arguments":{"text":%q}}`, "abc"[i%3], text))
						mu.Lock()
						if m.Error.Kind() != strictjson.KindAbsent {
							failed++
						} else {
							answered++
						}
						mu.Unlock()
						if m.Error.Kind() == strictjson.KindAbsent && !strings.Contains(string(m.Result.Append(nil)), text) {
							t.Errorf("%s was answered %s", text, m.Result.Append(nil))
						}
					}
				})
			}
			workers.Wait()
			near.Close()
			<-ended
		})
	}
	all.Wait()
	if want := calls / clients / width * clients * width; answered+failed != want {
		t.Errorf("%d answers and %d errors for %d calls", answered, failed, want)
	}
	if answered < calls/2 { // a few are owed by each server that dies
		t.Errorf("only %d of %d calls were answered", answered, calls)
	}
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	t.Logf("%d answered, %d failed with servers that died; %d goroutines, %d MB live afterwards", answered, failed, runtime.NumGoroutine(), stats.HeapAlloc>>20)
	if stats.HeapAlloc > 64<<20 {
		t.Errorf("%d MB live afterwards", stats.HeapAlloc>>20)
	}
}
