package gateway

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/era"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/streamhttp"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// fakeServer is a server inside the test: serve reads lines and writes lines until its input ends.
type fakeServer func(in *bufio.Scanner, out io.Writer)

// launcher starts the given servers one after the other, the last one again and again. started is told of each start.
func launcher(started func(Server), servers ...fakeServer) func(context.Context, Server) (*Process, error) {
	var mu sync.Mutex
	n := 0
	return func(_ context.Context, s Server) (*Process, error) {
		mu.Lock()
		serve := servers[min(n, len(servers)-1)]
		n++
		mu.Unlock()
		if started != nil {
			started(s)
		}
		inR, inW, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		outR, outW, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		errR, errW := io.Pipe()
		ended := make(chan struct{})
		var once sync.Once
		end := func() { once.Do(func() { inR.Close(); outW.Close(); errW.Close(); close(ended) }) }
		go func() {
			in := bufio.NewScanner(inR)
			in.Buffer(nil, 128<<20)
			serve(in, outW)
			end()
		}()
		return &Process{Stdin: inW, Stdout: outR, Stderr: errR, Terminate: end, Kill: end, Wait: func() string { <-ended; return "ended" }}, nil
	}
}

// rig is a session whose client the test plays by hand.
type rig struct {
	t     testing.TB
	in    io.WriteCloser
	lines *bufio.Scanner
	ended chan error
	log   *lockedBuffer
	g     *Gateway
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newRig(t testing.TB, opt Options, prepare ...func(*Gateway)) *rig {
	t.Helper()
	r := &rig{t: t, ended: make(chan error, 1), log: new(lockedBuffer)}
	if opt.Servers == nil {
		opt.Servers = []Server{{Source: Source{Server: "srv"}, Command: []string{"fake"}}}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	g, err := NewGateway(opt)
	if err != nil {
		t.Fatal(err)
	}
	r.g = g
	for _, f := range prepare {
		f(g)
	}
	toGateway, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromGateway, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.in, r.lines = in, bufio.NewScanner(out)
	r.lines.Buffer(nil, 128<<20)
	go func() {
		r.ended <- g.Serve(context.Background(), Client{Transport: jsonrpc.NewLines(toGateway, fromGateway, jsonrpc.LineOptions{})})
	}()
	t.Cleanup(func() {
		in.Close()
		if err := <-r.ended; err != nil {
			t.Errorf("the session ended with %v", err)
		}
		out.Close()
	})
	return r
}

// waiting has lists wait for so long.
func waiting(d time.Duration) func(*Gateway) { return func(g *Gateway) { g.listWait = d } }

// send writes one line.
func (r *rig) send(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

// next returns the client's next line.
func (r *rig) next() string {
	r.t.Helper()
	if !r.lines.Scan() {
		r.t.Fatalf("the client got no more lines: %v\n%s", r.lines.Err(), r.log)
	}
	return r.lines.Text()
}

// ask sends a request and returns the line that answers it; what comes before goes to also.
func (r *rig) ask(line string, also ...func(string)) strictjson.Value {
	r.t.Helper()
	id := parsed(r.t, line).Get("id")
	r.send(line)
	for {
		text := r.next()
		v := parsed(r.t, text)
		if v.Get("method").Kind() == strictjson.KindAbsent && string(v.Get("id").Append(nil)) == string(id.Append(nil)) {
			return v
		}
		for _, f := range also {
			f(text)
		}
	}
}

func parsed(t testing.TB, text string) strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse([]byte(text), strictjson.Limits{})
	if err != nil {
		t.Fatalf("%.300s: %v", text, err)
	}
	return v
}

const initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`

// answering is a server that answers by a function: the value for a request, "" for no answer.
func answering(answer func(method string, m strictjson.Value) string) fakeServer {
	return func(in *bufio.Scanner, out io.Writer) {
		for in.Scan() {
			m, err := strictjson.Parse(in.Bytes(), strictjson.Limits{})
			if err != nil {
				continue
			}
			method, id := m.Get("method").Str(), m.Get("id")
			if method == "initialize" {
				io.WriteString(out, `{"jsonrpc":"2.0","id":`+string(id.Append(nil))+`,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{},"logging":{}},"serverInfo":{"name":"fake","version":"1"}}}`+"\n")
				continue
			}
			text := answer(method, m)
			if text == "" || id.Kind() == strictjson.KindAbsent {
				continue
			}
			io.WriteString(out, `{"jsonrpc":"2.0","id":`+string(id.Append(nil))+`,`+text+"}\n")
		}
	}
}

// onHTTP serves the gateway over streamable HTTP until the test ends; every client is the principal p.
func onHTTP(t *testing.T, g *Gateway) *httptest.Server {
	t.Helper()
	h, err := streamhttp.NewHandler(streamhttp.HandlerOptions{
		Connect: func(ctx context.Context, s *streamhttp.Session) error {
			return g.Serve(ctx, Client{Transport: s, Principal: s.Principal})
		},
		Authenticate: func(*http.Request) (string, bool) { return "p", true },
		Versions:     era.Versions(),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(func() { h.Close(); srv.CloseClientConnections(); srv.Close() })
	return srv
}
