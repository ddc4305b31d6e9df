package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// TestHTTPOnOtherPorts: what looks like HTTP is held to the tunnel's host and judged request by request on every port, over
// CONNECT and SOCKS5, however its bytes come.
func TestHTTPOnOtherPorts(t *testing.T) {
	serve := func(c net.Conn, conns *atomic.Int32) {
		conns.Add(1)
		in := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body := req.Host + req.URL.Path
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	}
	rules := egress.PolicyOptions{
		Allow: []string{"ok.case.localhost:*", "GET http://paths.case.localhost:8080/v1/*", "part.case.localhost:8080", "93.184.215.14:8080"},
		Deny:  []string{"DELETE http://part.case.localhost:8080/*"},
	}
	const okay, paths, part, addr = "ok.case.localhost:8080", "paths.case.localhost:8080", "part.case.localhost:8080", "93.184.215.14:8080"
	const good = "GET /a HTTP/1.1\r\nHost: ok.case.localhost:8080\r\n\r\n"
	for _, c := range []struct{ name, target, send, want string }{
		{"its host", okay, good, "200"},
		{"its host without the port", okay, "GET /a HTTP/1.1\r\nHost: ok.case.localhost\r\n\r\n", "200"},
		{"two of them", okay, good + good, "200 200"},
		{"another host", okay, "GET /a HTTP/1.1\r\nHost: evil.case.localhost:8080\r\n\r\n", "421"},
		{"another host behind its own", okay, good + "GET /a HTTP/1.1\r\nHost: evil.case.localhost:8080\r\n\r\n", "200 421"},
		{"another port", okay, "GET /a HTTP/1.1\r\nHost: ok.case.localhost:8081\r\n\r\n", "421"},
		{"absolute form of another host", okay, "GET http://evil.case.localhost:8080/a HTTP/1.1\r\nHost: ok.case.localhost:8080\r\n\r\n", "421"},
		{"two hosts", okay, "GET /a HTTP/1.1\r\nHost: ok.case.localhost:8080\r\nHost: evil.case.localhost\r\n\r\n", "400"},
		{"empty line first", okay, "\r\n" + "GET /a HTTP/1.1\r\nHost: evil.case.localhost\r\n\r\n", "400"},
		{"space first", okay, " \t" + good, "400"},
		{"small letters", okay, "get /a http/1.1\r\nHost: evil.case.localhost\r\n\r\n", "400"},
		{"a tab for the space", okay, "GET\t/a\tHTTP/1.1\r\nHost: evil.case.localhost\r\n\r\n", "400"},
		{"a bare CR for the space", okay, "GET\r/a HTTP/1.1\r\nHost: evil.case.localhost\r\n\r\n", "400"},
		{"lines that end in LF", okay, "GET /a HTTP/1.1\nHost: evil.case.localhost\n\n", "400"},
		{"a NUL in the line", okay, "GET /\x00 HTTP/1.1\r\nHost: evil.case.localhost\r\n\r\n", "400"},
		{"a method of its own", okay, "X-Y /a HTTP/1.1\r\nHost: evil.case.localhost\r\n\r\n", "421"},
		{"both framings", okay, "POST /a HTTP/1.1\r\nHost: ok.case.localhost:8080\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"a tunnel in it", okay, "CONNECT evil.case.localhost:443 HTTP/1.1\r\nHost: ok.case.localhost:8080\r\n\r\n", "400"},
		{"the path of a rule", paths, "GET /v1/a HTTP/1.1\r\nHost: paths.case.localhost:8080\r\n\r\n", "200"},
		{"another path", paths, "GET /v2/a HTTP/1.1\r\nHost: paths.case.localhost:8080\r\n\r\n", "403"},
		{"another method", paths, "PUT /v1/a HTTP/1.1\r\nHost: paths.case.localhost:8080\r\n\r\n", "403"},
		{"no HTTP where the rules let requests through", paths, "\x00\x01\r\n\r\n", "400"},
		{"what no deny entry covers", part, "GET /a HTTP/1.1\r\nHost: part.case.localhost:8080\r\n\r\n", "200"},
		{"what one covers", part, "DELETE /a HTTP/1.1\r\nHost: part.case.localhost:8080\r\n\r\n", "403"},
		{"an address", addr, "GET /a HTTP/1.1\r\nHost: 93.184.215.14:8080\r\n\r\n", "200"},
		{"an address, by a name that is allowed", addr, "GET /a HTTP/1.1\r\nHost: ok.case.localhost:8080\r\n\r\n", "200"},
		{"an address, by a name that is not", addr, "GET /a HTTP/1.1\r\nHost: evil.case.localhost:8080\r\n\r\n", "421"},
	} {
		for _, way := range []string{"whole", "in pieces"} {
			t.Run(c.name+" "+way, func(t *testing.T) {
				var conns atomic.Int32
				cl := proxy.Client{Name: "test", Dialer: &egress.Dialer{Policy: policy(t, rules)}}
				u := start(t, proxy.Options{Chain: outside(t, func(c net.Conn, _ string) { serve(c, &conns) })}, cl)
				nc, r, resp := u.connect(t, c.target)
				if resp.StatusCode != 200 {
					t.Fatal(resp.Status)
				}
				if way == "whole" {
					_, _ = io.WriteString(nc, c.send)
				} else {
					_ = nc.(*net.TCPConn).SetNoDelay(true)
					for i := range c.send {
						_, _ = io.WriteString(nc, c.send[i:i+1])
					}
				}
				_ = nc.(*net.TCPConn).CloseWrite()
				var got []string
				for {
					resp, err := http.ReadResponse(r, nil)
					if err != nil {
						break
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					got = append(got, fmt.Sprint(resp.StatusCode))
				}
				// In pieces what comes before a request may have reached the host, which may hang up on it.
				if g := strings.Join(got, " "); g != c.want && (c.want != "400" || g != "" || way == "whole") {
					t.Errorf("got %s, want %s", g, c.want)
				}
				if n := conns.Load(); n > 1 && way == "whole" {
					t.Errorf("%d connections to the host; the one of the tunnel was to be used", n)
				}
			})
		}
	}
}

// TestTunnelOfRequestsNeedsARule: a tunnel that could only carry requests is not opened where none could pass.
func TestTunnelOfRequestsNeedsARule(t *testing.T) {
	u := start(t, proxy.Options{}, client(t, "ok.case.localhost", "GET http://ok.case.localhost:8080/"))
	for target, want := range map[string]int{"ok.case.localhost:8080": 200, "ok.case.localhost:8081": 403, "evil.case.localhost:8080": 403} {
		if _, _, resp := u.connect(t, target); resp.StatusCode != want {
			t.Errorf("%s: %s", target, resp.Status)
		}
	}
}

// TestOpaqueWords: what is neither TLS nor HTTP passes at once, byte for byte, also where nothing more comes than a few letters.
func TestOpaqueWords(t *testing.T) {
	echo := echoServer(t)
	u := start(t, proxy.Options{}, client(t, "*:*"))
	for _, say := range []string{
		"p", "ping", "PING\r\n", "*1\r\n$4\r\nPING\r\n", "\x00\x00\x00\x08\x04\xd2\x16\x2f", "SSH-2.0-client\r\n", "EHLO there\r\n", "\r\n", "GET key\r\n", "GET ",
		"0 \x02\x01\x01\x00", "0\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00", "PRI", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x02\x00\x00", "\x15\x00", "\x17\x03\x03\x00\x00", "\x16\x00\x00\x00\x10\x01\x00\x00\x00", "{\"a\": 1}", strings.Repeat("a", 300_000), "GET " + strings.Repeat("a", 300_000),
	} {
		nc, r, _ := u.connect(t, echo)
		for range 2 {
			go func() { _, _ = io.WriteString(nc, say) }()
			b := make([]byte, len(say))
			if _, err := io.ReadFull(r, b); err != nil || string(b) != say {
				t.Errorf("%.40q: %v", say, err)
			}
		}
		nc.Close()
	}
}

// TestRequestLineTooLong: a request line that outgrows what is kept of it is refused, not passed.
func TestRequestLineTooLong(t *testing.T) {
	var got atomic.Bool
	u := start(t, proxy.Options{Chain: outside(t, func(c net.Conn, _ string) {
		b, _ := io.ReadAll(c)
		got.Store(strings.Contains(string(b), "HTTP/1.1"))
	})}, client(t, "*:*"))
	nc, r, _ := u.connect(t, "ok.case.localhost:8080")
	go func() {
		_, _ = io.WriteString(nc, "GET /"+strings.Repeat("a", 100_000)+" HTTP/1.1\r\nHost: evil\r\n\r\n")
	}()
	_, _ = io.ReadAll(r)
	u.events.wait(t, func(e proxy.Event) bool { return e.Reason == proxy.ReasonTooLarge && e.Kind == proxy.KindDecision })
	u.stop()
	if got.Load() {
		t.Error("the request line reached the host")
	}
}

// TestGreetingBeforeHTTP: where the far side has spoken first, a request cannot be matched with its answer any more.
func TestGreetingBeforeHTTP(t *testing.T) {
	var got atomic.Bool
	u := start(t, proxy.Options{Chain: outside(t, func(c net.Conn, _ string) {
		_, _ = io.WriteString(c, "220 hello\r\n")
		b, _ := io.ReadAll(c)
		got.Store(len(b) > 0)
	})}, client(t, "*:*"))
	nc, r, _ := u.connect(t, "ok.case.localhost:25")
	if line, err := r.ReadString('\n'); err != nil || line != "220 hello\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = io.WriteString(nc, "GET / HTTP/1.1\r\nHost: evil.case.localhost\r\n\r\n")
	if b, _ := io.ReadAll(r); len(b) > 0 {
		t.Errorf("got %q", b)
	}
	u.events.wait(t, func(e proxy.Event) bool { return e.Reason == proxy.ReasonBadAnswer && e.Kind == proxy.KindDecision })
	u.stop()
	if got.Load() {
		t.Error("the request reached the host")
	}
}

// TestSilentAddress: a connection in a sandbox to an address that no rule names is refused at once where no word of the client
// could change that, and soon where one could.
func TestSilentAddress(t *testing.T) {
	for to, headTime := range map[string]time.Duration{
		"93.184.215.14:22": -1, "93.184.215.14:443": time.Second, "93.184.215.14:80": time.Second, "169.254.169.254:80": time.Second,
	} {
		s := startTransparent(t, proxy.Options{Limits: proxy.Limits{HeadTime: headTime}}, client(t, "ok.case.localhost"))
		s.l.mu.Lock()
		s.l.to = netip.MustParseAddrPort(to)
		s.l.mu.Unlock()
		c := s.dial(t)
		if b, err := io.ReadAll(c); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: got %q, %v", to, b, err)
		}
		s.events.wait(t, func(e proxy.Event) bool {
			return e.Kind == proxy.KindDecision && e.Target.String() == to && !e.Allowed && e.Reason == egress.ReasonNotAllowed
		})
	}
}
