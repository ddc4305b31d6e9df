package realtest

//lint:file-ignore SA1019 what the newest protocol deprecates still has to pass

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/era"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/streamhttp"
)

// soon is for a machine that does much else: nothing waits so long for anything but its failure.
const soon = 30 * time.Second

// way is one way to put the gateway between the Go SDK's client and its server. The server is untrusted, so all it writes is framed.
type way struct {
	transport string // stdio: lines; http: streamable HTTP; on both sides
	version   string
	several   bool // another server stands beside it
}

var ways = func() (all []way) {
	for _, transport := range []string{"stdio", "http"} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			for _, several := range []bool{false, true} {
				all = append(all, way{transport, version, several})
			}
		}
	}
	return all
}()

func (w way) String() string {
	if w.several {
		return w.transport + "/" + w.version + "/several"
	}
	return w.transport + "/" + w.version + "/one"
}

func (w way) modern() bool { return w.version >= "2026" }

// called is what a client calls a tool or prompt of the server.
func (w way) called(name string) string {
	if w.several {
		return "srv__" + name
	}
	return name
}

// peers are a client and a server that talk through the gateway.
type peers struct {
	way
	t      *testing.T
	ctx    context.Context
	client *mcp.Client
	*mcp.ClientSession
}

// eachWay runs a test in every way. The server gets its tools from prepare, which may be called before the client connects only.
func eachWay(t *testing.T, serverOpt mcp.ServerOptions, clientOpt func() *mcp.ClientOptions, prepare func(*mcp.Server, way), test func(*peers)) {
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			t.Cleanup(cancel)
			server := w.server("srv", serverOpt, prepare)
			opt := gateway.Options{Log: slog.New(slog.NewTextHandler(logTo{t}, &slog.HandlerOptions{Level: slog.LevelDebug})), Version: "1"}
			backends := map[string]*mcp.Server{"srv": server}
			if w.several {
				backends["other"] = w.server("other", mcp.ServerOptions{}, func(s *mcp.Server, _ way) {
					mcp.AddTool(s, &mcp.Tool{Name: "nothing"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
						return say("nothing"), nil, nil
					})
				})
			}
			for _, name := range []string{"srv", "other"} {
				if backend := backends[name]; backend != nil {
					opt.Servers = append(opt.Servers, w.behind(t, name, backend))
				}
			}
			opt.Launch = func(_ context.Context, s gateway.Server) (*gateway.Process, error) { return launch(backends[s.Server]) }
			g, err := gateway.NewGateway(opt)
			if err != nil {
				t.Fatal(err)
			}
			client := mcp.NewClient(&mcp.Implementation{Name: "realtest", Version: "1"}, clientOpt())
			client.AddRoots(&mcp.Root{URI: "file:///a", Name: "a"})
			session, err := client.Connect(ctx, w.front(t, g), &mcp.ClientSessionOptions{ProtocolVersion: w.version})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { session.Close() })
			if got := session.InitializeResult().ProtocolVersion; got != w.version {
				t.Fatalf("spoken: %s", got)
			}
			test(&peers{w, t, ctx, client, session})
		})
	}
}

func (w way) server(name string, opt mcp.ServerOptions, prepare func(*mcp.Server, way)) *mcp.Server {
	if !w.modern() {
		opt.SupportedProtocolVersions = []string{"2025-11-25"}
	}
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &opt)
	prepare(s, w)
	return s
}

// behind is the gateway's side of a server.
func (w way) behind(t *testing.T, name string, server *mcp.Server) gateway.Server {
	s := gateway.Server{Source: gateway.Source{Server: name, SamplingTools: true}, Command: []string{"in this process"}}
	if w.transport == "http" {
		srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
			&mcp.StreamableHTTPOptions{Stateless: w.modern(), PropagateRequestCancellation: true}))
		t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
		s.Command, s.URL = nil, srv.URL
		s.Connect = func(context.Context) (jsonrpc.Transport, error) {
			return streamhttp.NewClient(streamhttp.ClientOptions{URL: srv.URL})
		}
	}
	return s
}

// launch runs a server on lines through pipes, as a process has them.
func launch(server *mcp.Server) (*gateway.Process, error) {
	in, toServer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromServer, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
		in.Close()
		out.Close()
	}()
	return &gateway.Process{Stdin: toServer, Stdout: fromServer, Stderr: io.NopCloser(strings.NewReader("")), Terminate: cancel, Kill: cancel,
		Wait: func() string { <-ended; return "ended" }}, nil
}

// front is the client's side of the gateway.
func (w way) front(t *testing.T, g *gateway.Gateway) mcp.Transport {
	if w.transport == "http" {
		h, err := streamhttp.NewHandler(streamhttp.HandlerOptions{
			Connect: func(ctx context.Context, s *streamhttp.Session) error {
				return g.Serve(ctx, gateway.Client{Transport: s, Principal: s.Principal})
			},
			Authenticate: func(*http.Request) (string, bool) { return "p", true },
			Versions:     era.Versions(),
		})
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(h)
		t.Cleanup(func() { h.Close(); srv.CloseClientConnections(); srv.Close() })
		return &mcp.StreamableClientTransport{Endpoint: srv.URL}
	}
	toGateway, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromGateway, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.Serve(context.Background(), gateway.Client{Transport: jsonrpc.NewLines(toGateway, fromGateway, jsonrpc.LineOptions{})})
		toGateway.Close()
		fromGateway.Close()
	}()
	t.Cleanup(func() { in.Close(); <-ended })
	return &mcp.IOTransport{Reader: out, Writer: in}
}

// logTo shows the gateway's log where a test fails.
type logTo struct{ t *testing.T }

func (l logTo) Write(p []byte) (int, error) {
	logs.Lock()
	defer logs.Unlock()
	if l.t.Context().Err() == nil { // a test that is over takes no more
		l.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

var logs sync.Mutex

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// call calls a tool and gives what it said, out of its frame.
func (p *peers) call(name string, meta mcp.Meta) string {
	p.t.Helper()
	r, err := p.CallTool(p.ctx, &mcp.CallToolParams{Name: p.called(name), Meta: meta})
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	return p.said(r)
}

func (p *peers) said(r *mcp.CallToolResult) string {
	p.t.Helper()
	var all []string
	for _, c := range r.Content {
		all = append(all, unframed(p.t, c.(*mcp.TextContent).Text))
	}
	if r.IsError {
		p.t.Errorf("the call failed: %q", all)
	}
	return strings.Join(all, "\n")
}

// unframed gives the body of a frame; a text without one is a failure.
func unframed(t *testing.T, text string) string {
	t.Helper()
	body, ok := envelope.Body(text)
	if !ok {
		t.Errorf("not framed: %.300q", text)
	}
	return body
}

// got waits for a value.
func got[T any](p *peers, what string, from <-chan T) (v T) {
	p.t.Helper()
	select {
	case v = <-from:
	case <-p.ctx.Done():
		p.t.Fatalf("%s: nothing came", what)
	}
	return v
}

// none fails if there is a value.
func none[T any](p *peers, what string, from <-chan T) {
	p.t.Helper()
	select {
	case v := <-from:
		p.t.Errorf("%s: %s", what, fmt.Sprint(v))
	default:
	}
}
