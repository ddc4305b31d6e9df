package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// loopback exempts this host's loopback addresses for every name, since that is where tests can listen. Names under localhost
// resolve to it without a question.
var loopback = map[string][]string{".case.localhost:*": {"127.0.0.0/8", "::1"}, "127.0.0.1:*": {"127.0.0.0/8"}, "[::1]:*": {"::1"}}

func policy(t testing.TB, o egress.PolicyOptions) *egress.Policy {
	t.Helper()
	if o.Inward == nil {
		o.Inward = loopback
	}
	p, err := egress.NewPolicy(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func client(t testing.TB, allow ...string) proxy.Client {
	return proxy.Client{Name: "test", Dialer: &egress.Dialer{Policy: policy(t, egress.PolicyOptions{Allow: allow})}}
}

// events keeps what a server records.
type events struct {
	mu   sync.Mutex
	list []proxy.Event
	more chan struct{}
}

func (e *events) record(ev proxy.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
	select {
	case e.more <- struct{}{}:
	default:
	}
	return nil
}

// wait returns the first event that is wanted, waiting for it.
func (e *events) wait(t testing.TB, want func(proxy.Event) bool) proxy.Event {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		e.mu.Lock()
		for _, ev := range e.list {
			if want(ev) {
				e.mu.Unlock()
				return ev
			}
		}
		e.mu.Unlock()
		select {
		case <-e.more:
		case <-deadline:
			t.Fatalf("no such event in %+v", e.list)
		}
	}
}

func (e *events) decisions() (allowed, refused int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.list {
		switch {
		case ev.Kind != proxy.KindDecision:
		case ev.Allowed:
			allowed++
		default:
			refused++
		}
	}
	return allowed, refused
}

// under is a running proxy.
type under struct {
	*proxy.Server
	addr   string
	events *events
	stop   func()
}

func start(t testing.TB, o proxy.Options, c proxy.Client) *under {
	t.Helper()
	l, err := (&net.ListenConfig{KeepAlive: -1}).Listen(context.Background(), "tcp", "127.0.0.1:0") // as the command does
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, l, o, c)
}

func startOn(t testing.TB, l net.Listener, o proxy.Options, c proxy.Client) *under {
	t.Helper()
	u := &under{addr: l.Addr().String(), events: &events{more: make(chan struct{}, 1)}}
	if o.Record == nil {
		o.Record = u.events.record
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if u.Server, err = proxy.New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- u.Serve(ctx, l, c) }()
	u.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(u.stop)
	return u
}

// dial connects to the proxy, for tests that write their own bytes.
func (u *under) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", u.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// raw sends bytes and reads to the end what comes back.
func (u *under) raw(t testing.TB, send string) string {
	t.Helper()
	c := u.dial(t)
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	b, _ := io.ReadAll(c)
	return string(b)
}

func (u *under) httpClient() *http.Client {
	proxyURL, _ := url.Parse("http://" + u.addr)
	return &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{Proxy: http.ProxyURL(proxyURL), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
}

// connect opens a tunnel and returns it behind the proxy's answer.
func (u *under) connect(t testing.TB, target string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	c := u.dial(t)
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
	if err != nil {
		t.Fatal(err)
	}
	return c, r, resp
}

// port is the port of an address, with its colon.
func port(addr string) string { return addr[strings.LastIndexByte(addr, ':'):] }

func TestPlainHTTP(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Host", r.Host)
		fmt.Fprintf(w, "%s %s %s %d %v", r.Method, r.URL, r.Proto, len(body), r.TransferEncoding)
	}))
	defer origin.Close()
	u := start(t, proxy.Options{}, client(t, "*:*"))
	host := "ok.case.localhost" + port(origin.Listener.Addr().String())
	hc := u.httpClient()
	for i := range 3 {
		for _, size := range []int{0, 10, 5000, 1 << 20} {
			for _, sized := range []bool{true, false} {
				var body io.Reader
				if size > 0 {
					body = strings.NewReader(strings.Repeat("x", size))
					if !sized {
						body = io.MultiReader(body)
					}
				}
				resp, err := hc.Post("http://"+host+"/a?b=c", "text/plain", body)
				if err != nil {
					t.Fatal(err)
				}
				got, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				want := fmt.Sprintf("POST /a?b=c HTTP/1.1 %d ", size)
				if !strings.HasPrefix(string(got), want) || resp.Header.Get("X-Host") != host || resp.StatusCode != 200 {
					t.Fatalf("round %d: got %d %q, host %q", i, resp.StatusCode, got, resp.Header.Get("X-Host"))
				}
			}
		}
	}
}

func TestConnect(t *testing.T) {
	origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	defer origin.Close()
	u := start(t, proxy.Options{}, client(t, "*:*"))
	resp, err := u.httpClient().Get("https://ok.case.localhost" + port(origin.Listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(resp.Body)
	if string(got) != "HTTP/1.1" {
		t.Fatalf("got %q", got)
	}
}
