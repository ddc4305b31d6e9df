package proxy_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// TestReload puts new rules in force: for the next request on an open connection, and for open tunnels.
func TestReload(t *testing.T) {
	echo := echoServer(t)
	origin := newRecorder(t, ok)
	for name, keep := range map[string]bool{"tunnels end": false, "tunnels are kept": true} {
		t.Run(name, func(t *testing.T) {
			u := start(t, proxy.Options{KeepRefusedTunnels: keep}, client(t, "*:*"))
			tunnel, other := u.tunnel(t, "ok.case.localhost"+port(echo)), u.tunnel(t, "still.case.localhost"+port(echo))
			ping := func(c net.Conn) error {
				_, _ = io.WriteString(c, "ping")
				_, err := io.ReadFull(c, make([]byte, 4))
				return err
			}
			web := u.dial(t)
			r := bufio.NewReader(web)
			get := func() int {
				fmt.Fprintf(web, "GET http://ok.case.localhost%s/ HTTP/1.1\r\nHost: x\r\n\r\n", port(origin.addr))
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				return resp.StatusCode
			}
			if err := errors.Join(ping(tunnel), ping(other)); err != nil || get() != 200 {
				t.Fatal(err)
			}
			u.Update(client(t, "still.case.localhost:*"))
			if got := get(); got != 403 {
				t.Errorf("the next request: %d", got)
			}
			if err := ping(tunnel); (err == nil) != keep {
				t.Errorf("the tunnel: %v", err)
			}
			if err := ping(other); err != nil {
				t.Errorf("a tunnel that is still allowed: %v", err)
			}
			if !keep {
				u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindClosed && e.Reason == proxy.ReasonReloaded })
			}
			u.Update(client(t, "*:*"))
			if got := get(); got != 200 {
				t.Errorf("allowed again: %d", got)
			}
			// The name is still allowed, the address it is connected with is not.
			u.Update(proxy.Client{Name: "test", Dialer: &egress.Dialer{Policy: policy(t, egress.PolicyOptions{Allow: []string{"*:*"}, Deny: []string{"127.0.0.0/8", "::1"}})}})
			if got := get(); got != 403 {
				t.Errorf("a kept connection to an address that is refused now: %d", got)
			}
			if err := ping(other); (err == nil) != keep {
				t.Errorf("a tunnel to an address that is refused now: %v", err)
			}
		})
	}
}

// TestNotRecorded: what cannot be written down is not done.
func TestNotRecorded(t *testing.T) {
	origin := newRecorder(t, ok)
	u := start(t, proxy.Options{Record: func(e proxy.Event) error { return errors.New("disk full") }}, client(t, "*:*"))
	host := "ok.case.localhost" + port(origin.addr)
	for name, send := range map[string]string{
		"GET":     "GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT": "CONNECT " + host + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if got := u.raw(t, send); status(got) != "403" || !strings.Contains(got, "Hearsay-Reason: not-recorded") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if b := origin.bytes(); b != "" {
		t.Errorf("the far side got %q", b)
	}
}

// TestPanicCostsOneConnection has the proxy fail in the middle of one connection.
func TestPanicCostsOneConnection(t *testing.T) {
	echo := echoServer(t)
	var events events
	events.more = make(chan struct{}, 1)
	u := start(t, proxy.Options{Record: func(e proxy.Event) error {
		if e.Kind == proxy.KindDecision && e.Target.Host() == "panic.case.localhost" {
			panic("planted " + e.Target.Host())
		}
		return events.record(e)
	}}, client(t, "*:*"))
	open := u.tunnel(t, echo)
	if got := u.raw(t, "CONNECT panic.case.localhost:1 HTTP/1.1\r\nHost: x\r\n\r\n"); got != "" {
		t.Errorf("got %q", got)
	}
	events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindClosed && e.Reason == proxy.ReasonPanic })
	_, _ = io.WriteString(open, "ping")
	if _, err := io.ReadFull(open, make([]byte, 4)); err != nil {
		t.Errorf("another tunnel: %v", err)
	}
	u.tunnel(t, echo)
}

// TestConnectionLimit: one client uses its connections up. It is told so, and another is served.
func TestConnectionLimit(t *testing.T) {
	echo := echoServer(t)
	u := start(t, proxy.Options{Limits: proxy.Limits{Connections: 3}}, client(t, "*:*"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		c := client(t, "*:*")
		c.Name = "other"
		_ = u.Serve(ctx, l, c)
	}()
	defer func() { cancel(); <-served }()
	var open []net.Conn
	for range 3 {
		open = append(open, u.tunnel(t, echo))
	}
	if got := u.raw(t, "CONNECT "+echo+" HTTP/1.1\r\nHost: x\r\n\r\n"); status(got) != "429" || !strings.Contains(got, "Hearsay-Reason: limit") {
		t.Errorf("CONNECT over the limit: %q", got)
	}
	if got := u.raw(t, "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x01"); got != "\x05\x00\x05\x01\x00\x01\x00\x00\x00\x00\x00\x00" {
		t.Errorf("SOCKS5 over the limit: %q", got)
	}
	other, _, err := connectTo(l.Addr().String(), echo)
	if err != nil {
		t.Fatalf("another client: %v", err)
	}
	other.Close()
	for _, c := range open {
		c.Close()
	}
	for range 3 {
		u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindClosed && e.Reason == proxy.ReasonDone })
	}
	deadline := time.Now().Add(time.Minute)
	for status(u.raw(t, "CONNECT "+echo+" HTTP/1.1\r\nHost: x\r\n\r\n")) != "200" {
		if time.Now().After(deadline) {
			t.Fatal("the limit stands although connections were closed")
		}
	}
}

// TestByteLimit ends what goes over it, and refuses what comes after.
func TestByteLimit(t *testing.T) {
	echo := echoServer(t)
	u := start(t, proxy.Options{Limits: proxy.Limits{Bytes: 1 << 20}}, client(t, "*:*"))
	c := u.tunnel(t, echo)
	go func() { _, _ = io.Copy(c, neverending('x')) }()
	n, _ := io.Copy(io.Discard, c)
	if n > 1<<20 {
		t.Errorf("%d bytes came back", n)
	}
	u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindClosed && e.Reason == proxy.ReasonLimit })
	if got := u.raw(t, "CONNECT "+echo+" HTTP/1.1\r\nHost: x\r\n\r\n"); status(got) != "429" {
		t.Errorf("got %q", got)
	}
}

// TestSlowHead: a head that does not come to its end costs no more than the time for one.
func TestSlowHead(t *testing.T) {
	u := start(t, proxy.Options{Limits: proxy.Limits{HeadTime: 50 * time.Millisecond}}, client(t, "*:*"))
	for _, begin := range []string{"", "GET http://ok.case.localhost/ HTTP/1.1\r\nHost:", "\x05", "\x05\x01\x00\x05\x01", "\x16\x03\x01\x02\x00\x01"} {
		c := u.dial(t)
		_, _ = io.WriteString(c, begin)
		if _, err := io.ReadAll(c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%q: %v", begin, err)
		}
	}
	u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindClosed && e.Reason == proxy.ReasonIdle })
}

// TestTotalTime ends a connection that never rests.
func TestTotalTime(t *testing.T) {
	echo := echoServer(t)
	u := start(t, proxy.Options{Limits: proxy.Limits{Total: 200 * time.Millisecond}}, client(t, "*:*"))
	c := u.tunnel(t, echo)
	go func() { _, _ = io.Copy(c, neverending('x')) }()
	_, _ = io.Copy(io.Discard, c)
	u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindClosed && e.Reason == proxy.ReasonTotal })
}

// TestPeer tells clients apart by their certificates.
func TestPeer(t *testing.T) {
	echo := echoServer(t)
	ca := newCA(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tl := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "proxy")}, ClientCAs: ca.pool, ClientAuth: tls.RequireAndVerifyClientCert})
	u := startOn(t, tl, proxy.Options{}, proxy.Client{Name: "listener", Peer: func(s tls.ConnectionState) (string, bool) {
		return s.PeerCertificates[0].Subject.CommonName, true
	}})
	ann, bob := client(t, "*:*"), client(t)
	ann.Name, bob.Name = "ann", "bob"
	u.Update(ann, bob)
	stranger := newCA(t)
	for _, c := range []struct {
		who  string
		cert tls.Certificate
		want string
	}{{"ann", ca.issue(t, "ann"), "200"}, {"bob", ca.issue(t, "bob"), "403"}, {"carl", ca.issue(t, "carl"), ""}, {"ann", stranger.issue(t, "ann"), ""}} {
		raw := u.dial(t)
		nc := tls.Client(raw, &tls.Config{RootCAs: ca.pool, ServerName: "proxy", Certificates: []tls.Certificate{c.cert}})
		fmt.Fprintf(nc, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", echo)
		b := make([]byte, 12)
		n, _ := io.ReadFull(nc, b)
		if got := status(string(b[:n])); got != c.want {
			t.Errorf("%s: %q, want %s", c.who, b[:n], c.want)
		}
		if c.want == "200" { // the tunnel itself, over TLS, with an end of its own in each direction
			r := bufio.NewReader(nc)
			for l := "-"; l != "\r\n"; {
				if l, err = r.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = io.WriteString(nc, "ping")
			_ = nc.CloseWrite()
			if b, err := io.ReadAll(r); string(b) != "ping" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
		}
	}
}

type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newCA(t testing.TB) *ca {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	c := &ca{key: key, pool: x509.NewCertPool()}
	if c.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	c.pool.AddCert(c.cert)
	return c
}

var serial atomic.Int64

func (c *ca) issue(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2 + serial.Add(1)), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, c.cert, &key.PublicKey, c.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestChain goes on through another proxy, which is asked for judged addresses and never for a name.
func TestChain(t *testing.T) {
	for _, scheme := range []string{"socks5", "http"} {
		t.Run(scheme, func(t *testing.T) {
			asked := make(chan string, 8)
			chain := outside(t, func(c net.Conn, addr string) {
				asked <- addr
				greet(c, addr)
			})
			if scheme == "http" {
				chain = &proxy.Chain{Scheme: "http", User: "me", Addr: listen(t, func(c net.Conn) {
					in := bufio.NewReader(c)
					req, err := http.ReadRequest(in)
					if err != nil || req.Method != "CONNECT" {
						return
					}
					if req.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("me:")) {
						_, _ = io.WriteString(c, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
						return
					}
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
					asked <- req.Host
					greet(bufConn{c, in}, req.Host)
				})}
			}
			u := start(t, proxy.Options{Chain: chain}, client(t, "*:*"))
			for target, want := range map[string]string{"93.184.215.14:22": "93.184.215.14:22", "ok.case.localhost:22": ":22", "[2606:2800:21f::1]:22": "[2606:2800:21f::1]:22"} {
				c, r, resp := u.connect(t, target)
				if resp.StatusCode != 200 {
					t.Fatalf("%s: %s", target, resp.Status)
				}
				_, _ = io.WriteString(c, "x")
				_ = c.(*net.TCPConn).CloseWrite()
				b, _ := io.ReadAll(r)
				addr := <-asked
				if !strings.HasSuffix(addr, want) || strings.Contains(addr, "localhost") || string(b) != "dialled "+addr {
					t.Errorf("%s: asked for %s, got %q", target, addr, b)
				}
			}
			_, _, resp := u.connect(t, "10.0.0.1:22")
			if resp.StatusCode != 403 || len(asked) > 0 {
				t.Errorf("an inward address: %s", resp.Status)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		refusing := listen(t, func(c net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, "HTTP/1.1 403 No\r\nX-Secret: from the next proxy\r\n\r\n")
		})
		u := start(t, proxy.Options{Chain: &proxy.Chain{Scheme: "http", Addr: refusing}}, client(t, "*:*"))
		got := u.raw(t, "CONNECT 93.184.215.14:22 HTTP/1.1\r\nHost: x\r\n\r\n")
		if status(got) != "502" || strings.Contains(got, "Secret") {
			t.Errorf("got %q", got)
		}
	})
	if _, err := proxy.New(proxy.Options{Chain: &proxy.Chain{Scheme: "ftp", Addr: "a:1"}}); err == nil {
		t.Error("a chain of another scheme is taken")
	}
}

type bufConn struct {
	net.Conn
	r *bufio.Reader
}

func (b bufConn) Read(p []byte) (int, error) { return b.r.Read(p) }

// TestDecisionIsRecordedBeforeDialling has the far side wait for the record.
func TestDecisionComesFirst(t *testing.T) {
	var recorded atomic.Bool
	early := make(chan bool, 1)
	addr := listen(t, func(c net.Conn) { early <- !recorded.Load() })
	u := start(t, proxy.Options{Record: func(e proxy.Event) error {
		if e.Kind == proxy.KindDecision {
			time.Sleep(20 * time.Millisecond) // long enough for a connection that did not wait
			recorded.Store(true)
		}
		return nil
	}}, client(t, "*:*"))
	u.tunnel(t, addr)
	if <-early {
		t.Error("dialled before the decision was written down")
	}
}

// TestReportOnly lets through what no rule covers, and says so.
func TestReportOnly(t *testing.T) {
	origin := newRecorder(t, ok)
	c := proxy.Client{Name: "test", Dialer: &egress.Dialer{Policy: policy(t, egress.PolicyOptions{ReportOnly: true})}}
	u := start(t, proxy.Options{}, c)
	got := u.raw(t, "GET http://ok.case.localhost"+port(origin.addr)+"/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	ev := u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindDecision })
	if status(got) != "200" || !ev.Allowed || !ev.Report || ev.Reason != egress.ReasonNotAllowed {
		t.Errorf("%q, %+v", got, ev)
	}
}

// TestListenerFails: without its listener a server does not go on, and leaves nothing open.
func TestListenerFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, err := proxy.New(proxy.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	done, cl := make(chan error, 1), client(t, "*:*")
	go func() { done <- srv.Serve(context.Background(), l, cl) }()
	c, r, err := connectTo(l.Addr().String(), echoServer(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l.Close()
	if err := <-done; err == nil {
		t.Error("no error")
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("the tunnel is open")
	}
}
