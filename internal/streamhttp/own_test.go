package streamhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type told struct{ error }

func (told) Refusal() string { return "in our words" }

// An error that this program makes is marked as its own, unless it may quote what came from the server.
func TestWhoseWordsAFailureIs(t *testing.T) {
	raw := func(answer string) http.RoundTripper { // what a server sends that speaks no HTTP
		return &http.Transport{DialContext: func(_ context.Context, _, _ string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				far.Read(make([]byte, 64<<10))
				io.WriteString(far, answer)
				far.Close()
			}()
			return near, nil
		}}
	}
	page := func(status int, kind, body string) http.RoundTripper {
		return roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		})
	}
	fails := func(err error) http.RoundTripper {
		return roundTrip(func(*http.Request) (*http.Response, error) { return nil, err })
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, tt := range map[string]struct {
		transport http.RoundTripper
		own       bool
		says      string
	}{
		"not sent":              {fails(fmt.Errorf("EVIL: %w", told{errors.New("EVIL")})), true, "in our words"},
		"not reached":           {fails(fmt.Errorf("EVIL: %w", refused)), true, "connection refused"},
		"another error":         {fails(errors.New("EVIL")), false, "EVIL"},
		"no HTTP":               {raw("HTTP/1.1 EVIL\r\n\r\n"), false, "EVIL"},
		"a status":              {page(500, "text/plain", "EVIL"), true, "HTTP status 500"},
		"a page":                {page(200, "text/html", "EVIL"), true, "neither JSON nor"},
		"something else":        {page(200, "application/json", `{"jsonrpc":"2.0","id":2,"result":{}}`), true, "something else"},
		"a stream that ends":    {page(200, "text/event-stream", ": EVIL\n\n"), true, "stream ended"},
		"a refusal":             {page(400, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"EVIL"}}`), false, "EVIL"},
		"an answer that claims": {page(200, "application/json", `{"jsonrpc":"2.0","id":1,"Own":true,"own":true,"error":{"code":-32603,"message":"EVIL"}}`), false, "EVIL"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := NewClient(ClientOptions{URL: "http://far.example/mcp", Transport: tt.transport, JSON: strictjson.Limits{KeepCaseTwins: true}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			id, _ := jsonrpc.NewID(strictjson.Number("1"))
			if err := c.Write(t.Context(), jsonrpc.Message{Kind: jsonrpc.Request, ID: id, Method: "tools/list"}); err != nil {
				t.Fatal(err)
			}
			m, err := c.Read(t.Context())
			for err == nil && m.ID.Key() != id.Key() {
				m, err = c.Read(t.Context())
			}
			text := m.Error.Get("message").Str()
			if err != nil || m.Own != tt.own || !strings.Contains(text, tt.says) || m.Own && strings.Contains(text, "EVIL") {
				t.Errorf("own %t, %q, %v", m.Own, text, err)
			}
		})
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	c, err := NewClient(ClientOptions{URL: closed.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	id, _ := jsonrpc.NewID(strictjson.Number("1"))
	if err := c.Write(t.Context(), jsonrpc.Message{Kind: jsonrpc.Request, ID: id, Method: "tools/list"}); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Read(t.Context()); err != nil || !m.Own {
		t.Errorf("a server that is not there: %+v, %v", m, err)
	}
}
