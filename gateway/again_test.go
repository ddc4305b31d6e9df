package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/streamhttp"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// mirroring is a server over HTTP whose tool t has its argument repeated in a header, which it checks.
type mirroring struct {
	mu     sync.Mutex
	header string // the name in the tool's schema
	strict bool   // no header is right
	seen   []string
}

func (v *mirroring) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, err := strictjson.Parse(body, strictjson.Limits{})
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	method := m.Get("method").Str()
	if method != "server/discover" {
		v.seen = append(v.seen, method)
	}
	answer := func(status int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.Get("id").Append(nil), text)
	}
	switch method {
	case "tools/list":
		answer(200, `"result":{"resultType":"complete","ttlMs":60000,"cacheScope":"public","tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"`+v.header+`"}}}}]}`)
	case "tools/call":
		if r.Header.Get("Mcp-Name") != "t" {
			answer(400, `"error":{"code":-32020,"message":"the name"}`)
			return
		}
		if r.Header.Get("Mcp-Param-"+v.header) != "value" || v.strict {
			answer(400, `"error":{"code":-32020,"message":"the header `+v.header+`"}`)
			return
		}
		token, _ := json.Marshal(r.Header.Get("Mcp-Param-" + v.header))
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":1}}\n\n", m.Get("params").Get("_meta").Get("progressToken").Append(nil))
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":%s}]}}\n\n", m.Get("id").Append(nil), token)
	case "server/discover":
		answer(200, `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`)
	default:
		answer(404, `"error":{"code":-32601,"message":"no"}`)
	}
}

func (v *mirroring) got() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := v.seen
	v.seen = nil
	return seen
}

// A server that refuses a call since its headers lack what the tool's schema wants there is asked for its tools, and then called
// once more: before anybody listed them, and after they changed.
func TestACallWhoseHeadersAreRefusedIsMadeAgainOnce(t *testing.T) {
	for _, several := range []bool{false, true} {
		for _, trust := range []Trust{FirstParty, Untrusted} {
			t.Run(fmt.Sprintf("several=%t/%v", several, trust), func(t *testing.T) {
				v := &mirroring{header: "One"}
				srv := httptest.NewServer(v)
				t.Cleanup(srv.Close)
				r := newRig(t, Options{Joined: several, Servers: []Server{{Source: Source{Server: "far", Trust: trust}, URL: srv.URL, Connect: func(context.Context) (jsonrpc.Transport, error) {
					return streamhttp.NewClient(streamhttp.ClientOptions{URL: srv.URL})
				}}}})
				name := "t"
				if several {
					name = "far__t"
				}
				call := func() (answer string, progress int) {
					t.Helper()
					meta := strings.TrimSuffix(modernMeta, "}") + `,"progressToken":"mine"}`
					got := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":{"a":"value"},"_meta":`+meta+`}}`, func(line string) {
						progress += strings.Count(line, `"progressToken":"mine"`)
					})
					return string(got.Append(nil)), progress
				}
				expect := func(what, want string, seen ...string) {
					t.Helper()
					answer, progress := call()
					if !strings.Contains(answer, want) || (progress == 1) != (want == "value") {
						t.Errorf("%s: %d of progress, %s", what, progress, answer)
					}
					if got := v.got(); !slices.Equal(got, seen) {
						t.Errorf("%s: the server got %q, want %q", what, got, seen)
					}
				}
				expect("before a list", "value", "tools/call", "tools/list", "tools/call")
				expect("with what is known", "value", "tools/call")
				v.mu.Lock()
				v.strict = true
				v.mu.Unlock()
				expect("a server that is never content", "-32020", "tools/call", "tools/list", "tools/call")
				v.mu.Lock()
				v.strict, v.header = false, "Two"
				v.mu.Unlock()
				if trust == FirstParty {
					expect("after a change", "value", "tools/call", "tools/list", "tools/call")
					return
				}
				expect("after a change that nobody approved", "withheld", "tools/call", "tools/list")
				expect("and from then on", "withheld")
			})
		}
	}
}

// Over HTTP a client of several servers repeats in headers what it was told: joined names, and the arguments that the schema
// names. Both are checked, and the server gets its own.
func TestHeadersOfSeveralServers(t *testing.T) {
	v := &mirroring{header: "One"}
	far := httptest.NewServer(v)
	t.Cleanup(far.Close)
	g, err := NewGateway(Options{Joined: true, Servers: []Server{{Source: Source{Server: "far"}, URL: far.URL, Connect: func(context.Context) (jsonrpc.Transport, error) {
		return streamhttp.NewClient(streamhttp.ClientOptions{URL: far.URL})
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	srv := onHTTP(t, g)
	post := func(method, params string, header ...string) string {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader(modernRequest(method, params)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("MCP-Protocol-Version", modernVersion)
		req.Header.Set("Mcp-Method", method)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := post("tools/list", `"x":1`); !strings.Contains(got, `"far__t"`) {
		t.Fatalf("tools: %s", got)
	}
	call := `"name":"far__t","arguments":{"a":"value"}`
	for _, tt := range []struct{ name, param, want string }{
		{"far__t", "value", `\n\nvalue\n`}, {"t", "value", "-32020"}, {"far__t", "another", "-32020"}, {"far__t", "", "-32020"},
	} {
		header := []string{"Mcp-Name", tt.name}
		if tt.param != "" {
			header = append(header, "Mcp-Param-One", tt.param)
		}
		if got := post("tools/call", call, header...); !strings.Contains(got, tt.want) {
			t.Errorf("Mcp-Name %q, Mcp-Param-One %q: %s", tt.name, tt.param, got)
		}
	}
	if got := v.got(); !slices.Equal(got, []string{"tools/list", "tools/call"}) {
		t.Errorf("the server got %q", got)
	}
}

// Before a call is made again only so many pages are read: somebody waits for it, and a server can have any number.
func TestACallMadeAgainReadsAFewPagesOnly(t *testing.T) {
	var lists, calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := strictjson.Parse(body, strictjson.Limits{})
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		status, answer := http.StatusOK, `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}`
		switch m.Get("method").Str() {
		case "tools/list":
			answer = fmt.Sprintf(`"result":{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[],"nextCursor":"%d"}`, lists.Add(1))
		case "tools/call":
			calls.Add(1)
			status, answer = http.StatusBadRequest, `"error":{"code":-32020,"message":"the header"}`
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.Get("id").Append(nil), answer)
	}))
	t.Cleanup(srv.Close)
	r := newRig(t, Options{Servers: []Server{{Source: Source{Server: "far"}, URL: srv.URL, Connect: func(context.Context) (jsonrpc.Transport, error) {
		return streamhttp.NewClient(streamhttp.ClientOptions{URL: srv.URL})
	}}}})
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":` + modernMeta + `}}`)
	if lists.Load() != againPages || calls.Load() != 2 {
		t.Errorf("%d pages, %d calls", lists.Load(), calls.Load())
	}
}
