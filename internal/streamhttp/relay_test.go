package streamhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

// pump relays between a client's session and a server until one of them ends.
func pump(ctx context.Context, a, b jsonrpc.Transport) error {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	var errs [2]error
	one := func(i int, from, to jsonrpc.Transport) func() {
		return func() {
			defer cancel()
			for {
				m, err := from.Read(ctx)
				if err != nil {
					errs[i] = err
					return
				}
				if err := to.Write(ctx, m); err != nil {
					errs[i] = err
					return
				}
			}
		}
	}
	both.Go(one(0, a, b))
	both.Go(one(1, b, a))
	both.Wait()
	b.Close()
	return errors.Join(errs[0], errs[1])
}

// relay stands in front of the server at url, both sides over HTTP.
func relay(t *testing.T, opt ClientOptions) (url string, h *Handler) {
	t.Helper()
	h, err := NewHandler(HandlerOptions{
		Versions:     versions,
		Authenticate: func(r *http.Request) (string, bool) { return "p", r.Header.Get("Authorization") != "Bearer wrong" },
		Connect: func(ctx context.Context, s *Session) error {
			c, err := NewClient(opt)
			if err != nil {
				return err
			}
			return pump(ctx, s, c)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(func() { h.Close(); srv.Close() })
	return srv.URL, h
}

// sdkServer tells cancelled when its tool hang was cancelled.
func sdkServer(cancelled chan<- bool) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(ctx context.Context, req *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, req *mcp.CallToolRequest, in struct{}) (*mcp.CallToolResult, any, error) {
		r, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "name?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Action}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, req *mcp.CallToolRequest, in struct{}) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		cancelled <- true
		return nil, nil, ctx.Err()
	})
	return s
}

func textOf(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("%+v", r)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// The Go SDK's client and server meet through both ends of this package: stateful of the older era, stateless of the modern
// one, and HTTP+SSE of 2024-11-05.
func TestTheSDKMeetsItselfThroughARelay(t *testing.T) {
	cancelled := make(chan bool, 1)
	server := sdkServer(cancelled)
	getServer := func(*http.Request) *mcp.Server { return server }
	backends := map[string]http.Handler{
		"sessions":  mcp.NewStreamableHTTPHandler(getServer, nil),
		"json":      mcp.NewStreamableHTTPHandler(getServer, &mcp.StreamableHTTPOptions{JSONResponse: true}),
		"stateless": mcp.NewStreamableHTTPHandler(getServer, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}),
		"sse":       mcp.NewSSEHandler(getServer, nil),
	}
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(backend)
			// Connections of streams stay open until their sessions end, and those end with the relay, which is cleaned up later.
			t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
			url, _ := relay(t, ClientOptions{URL: srv.URL})
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "decline"}, nil
				},
			})
			session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			tools, err := session.ListTools(ctx, nil)
			if err != nil || len(tools.Tools) != 3 {
				t.Fatalf("%+v %v", tools, err)
			}
			var calls sync.WaitGroup
			for i := range 50 {
				calls.Go(func() {
					want := fmt.Sprintf("%d %s", i, strings.Repeat("é", 1000*i))
					r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": want}})
					if err != nil {
						t.Error(err)
					} else if got := textOf(t, r); got != want {
						t.Errorf("call %d got %.40q", i, got)
					}
				})
			}
			calls.Wait()
			hang, stop := context.WithTimeout(ctx, 200*time.Millisecond)
			if _, err := session.CallTool(hang, &mcp.CallToolParams{Name: "hang"}); err == nil {
				t.Error("a cancelled call came back")
			}
			stop()
			select {
			case <-cancelled:
			case <-ctx.Done():
				t.Error("the cancellation did not reach the server")
			}
			if name == "sessions" || name == "sse" {
				r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "ask"})
				if err != nil {
					t.Fatal(err)
				}
				if got := textOf(t, r); got != "decline" {
					t.Errorf("elicitation in the middle of a call: %q", got)
				}
			}
		})
	}
}
