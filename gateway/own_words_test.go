package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/streamhttp"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// signedOut says that a request was not sent, in words of ours.
type signedOut struct{}

func (signedOut) Error() string { return "no token" }
func (signedOut) Refusal() string {
	return "nobody is signed in; a person has to run: hearsay login srv"
}

// protected is the way to a server over HTTP, both eras, that needs a sign-in for each request while out.
type protected struct{ out atomic.Bool }

func (p *protected) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.out.Load() {
		return nil, signedOut{}
	}
	answer := func(status int, text string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
	}
	if r.Method != http.MethodPost {
		return answer(http.StatusMethodNotAllowed, "")
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m, err := jsonrpc.DecodeText(string(body), strictjson.Limits{})
	if err != nil || m.Kind != jsonrpc.Request {
		return answer(http.StatusAccepted, "")
	}
	reply := `"error":{"code":-32601,"message":"no"}`
	switch m.Method {
	case "initialize":
		reply = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"m","version":"1"}}`
	case "tools/list":
		reply = `"result":{"tools":[{"name":"read","inputSchema":{"type":"object"}},{"name":"send","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		reply = `"result":{"content":[{"type":"text","text":"done"}]}`
	}
	return answer(http.StatusOK, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID.Value().Append(nil), reply))
}

// What this program says where the server was not even asked is no text of the server's: it is not framed, and costs the session nothing.
func TestOurOwnWordsAreNotTheServers(t *testing.T) {
	for _, several := range []bool{false, true} {
		for era, greeting := range map[string]string{
			"2025-11-25": sayHello,
			"2026-07-28": `{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":` + modernMeta + `}}`,
		} {
			t.Run(fmt.Sprintf("several=%t/%s", several, era), func(t *testing.T) {
				way := new(protected)
				r := newRig(t, Options{Joined: several, Policy: mailPolicy(t), Servers: []Server{{Source: Source{Server: "srv"}, URL: "https://far.example/mcp", Connect: func(context.Context) (jsonrpc.Transport, error) {
					return streamhttp.NewClient(streamhttp.ClientOptions{URL: "https://far.example/mcp", Transport: way})
				}}}})
				id, prefix, meta := 0, "", ""
				if several {
					prefix = "srv__"
				}
				if era == "2026-07-28" {
					meta = `,"_meta":` + modernMeta
				}
				call := func(tool, args string) string {
					t.Helper()
					id++
					return string(r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s%s}}`, id, prefix+tool, args, meta)).Append(nil))
				}
				r.ask(greeting)
				way.out.Store(true)
				got := call("read", "{}")
				if !strings.Contains(got, `hearsay: server srv: nobody is signed in; a person has to run: hearsay login srv"`) || strings.Contains(got, "namzu") {
					t.Errorf("signed out: %s", got)
				}
				way.out.Store(false)
				if got := call("send", `{"to":"x@evil.example"}`); !strings.Contains(got, "done") {
					t.Errorf("after the failure: %s", got)
				}
				call("read", "{}")
				if got := call("send", `{"to":"y@evil.example"}`); strings.Contains(got, "done") {
					t.Errorf("after the server has spoken: %s", got)
				}
			})
		}
	}
}

// A sign-in that was lacking when a pinned server's tools were to be read is not taken for a server without tools.
func TestAPinnedServerIsReadOnceItCanBe(t *testing.T) {
	way := new(protected)
	connect := func(context.Context) (jsonrpc.Transport, error) {
		return streamhttp.NewClient(streamhttp.ClientOptions{URL: "https://far.example/mcp", Transport: way})
	}
	server := Server{Source: Source{Server: "srv"}, URL: "https://far.example/mcp", Connect: connect}
	offer, err := Describe(t.Context(), server, nil)
	if err != nil {
		t.Fatal(err)
	}
	approved, err := offer.Approve()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, Options{Pins: Pins{Lock: &Lock{Servers: map[string]*ServerPins{"srv": approved}}}, Servers: []Server{server}})
	r.ask(sayHello)
	way.out.Store(true)
	if got := string(r.ask(fmt.Sprintf(readMail, 1)).Append(nil)); !strings.Contains(got, "nobody is signed in") {
		t.Errorf("signed out: %s", got)
	}
	way.out.Store(false)
	if got := string(r.ask(fmt.Sprintf(readMail, 2)).Append(nil)); !strings.Contains(got, "done") {
		t.Errorf("signed in: %s", got)
	}
}

// Whether a server is of the client's era is found out when it answers: one that could not be asked, since nobody was signed in, is asked
// again.
func TestTheEraIsFoundOnceTheServerCanBeAsked(t *testing.T) {
	for _, first := range []string{"initialize", "server/discover", "tools/list", "tools/call"} {
		t.Run(first, func(t *testing.T) {
			way := new(protected)
			way.out.Store(true)
			r := newRig(t, Options{Servers: []Server{{Source: Source{Server: "srv"}, URL: "https://far.example/mcp", Connect: func(context.Context) (jsonrpc.Transport, error) {
				return streamhttp.NewClient(streamhttp.ClientOptions{URL: "https://far.example/mcp", Transport: way})
			}}}})
			ask := func(id int, method string) string {
				t.Helper()
				if method == "initialize" {
					return string(r.ask(sayHello).Append(nil))
				}
				meta := ""
				if first != "initialize" {
					meta = `,"_meta":` + modernMeta
				}
				return string(r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"name":"read","arguments":{}%s}}`, id, method, meta)).Append(nil))
			}
			for id := range 3 {
				if got := ask(id, first); !strings.Contains(got, "nobody is signed in") {
					t.Errorf("signed out: %s", got)
				}
			}
			way.out.Store(false)
			if first == "initialize" {
				ask(8, first)
			}
			if got := ask(9, "tools/call"); !strings.Contains(got, "done") || strings.Contains(got, `"resultType":"complete"`) == (first == "initialize") {
				t.Errorf("signed in: %s", got)
			}
		})
	}
}
