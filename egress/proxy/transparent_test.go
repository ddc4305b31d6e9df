package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// meant is a listener whose connections were meant for another address, as a local route makes them.
type meant struct {
	net.Listener
	mu sync.Mutex
	to netip.AddrPort
}

func (m *meant) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return meantConn{c.(*net.TCPConn), m.to}, nil
}

type meantConn struct {
	*net.TCPConn
	to netip.AddrPort
}

func (c meantConn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }

// sandboxed is a proxy for a sandbox whose programs know of none.
type sandboxed struct {
	*under
	l     *meant
	dns   net.Addr
	names *proxy.Names
}

func startTransparent(t *testing.T, o proxy.Options, c proxy.Client) *sandboxed {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := start(t, o, c)
	s := &sandboxed{under: u, l: &meant{Listener: l}, dns: pc.LocalAddr(), names: &proxy.Names{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := u.ServeTransparent(ctx, s.l, c, s.names); err != nil {
			t.Errorf("ServeTransparent: %v", err)
		}
	})
	wg.Go(func() {
		if err := u.ServeDNS(ctx, pc, c, s.names); err != nil {
			t.Errorf("ServeDNS: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	u.addr = l.Addr().String()
	return s
}

// ask sends one DNS question and returns the answer.
func (s *sandboxed) ask(t *testing.T, name string, typ dnsmessage.Type) (dnsmessage.RCode, []netip.Addr) {
	t.Helper()
	q := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: typ, Class: dnsmessage.ClassINET}},
	}
	b, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(s.exchange(t, b)); err != nil || m.ID != 7 || !m.Response {
		t.Fatalf("%+v, %v", m, err)
	}
	var addrs []netip.Addr
	for _, a := range m.Answers {
		if r, ok := a.Body.(*dnsmessage.AResource); ok {
			addrs = append(addrs, netip.AddrFrom4(r.A))
		}
	}
	return m.RCode, addrs
}

func (s *sandboxed) exchange(t *testing.T, query []byte) []byte {
	t.Helper()
	c, err := net.Dial("udp", s.dns.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 1500)
	for range 20 { // a datagram may be lost
		if _, err := c.Write(query); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(3 * time.Second))
		if n, err := c.Read(b); err == nil {
			return b[:n]
		}
	}
	t.Fatal("no answer")
	return nil
}

// TestNames: only names that the rules let through have an address, and no question leaves the process.
func TestNames(t *testing.T) {
	c := client(t, "ok.test", "*.deep.test:*", "GET http://paths.test/v1/*", "93.184.215.14")
	resolver, err := egress.NewResolver(egress.ResolverOptions{Servers: []string{"127.0.0.1:1"}}) // nobody is there
	if err != nil {
		t.Fatal(err)
	}
	c.Dialer.Resolver = resolver
	s := startTransparent(t, proxy.Options{}, c)
	for _, q := range []struct {
		name  string
		typ   dnsmessage.Type
		code  dnsmessage.RCode
		addrs int
	}{
		{"ok.test.", dnsmessage.TypeA, 0, 1},
		{"OK.Test.", dnsmessage.TypeA, 0, 1},
		{"ok.test.", dnsmessage.TypeAAAA, 0, 0},
		{"ok.test.", dnsmessage.TypeHTTPS, 0, 0},
		{"ok.test.", dnsmessage.TypeTXT, 0, 0},
		{"a.b.deep.test.", dnsmessage.TypeA, 0, 1},
		{"deep.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"paths.test.", dnsmessage.TypeA, 0, 1},
		{"evil.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"secret-data.evil.test.", dnsmessage.TypeTXT, dnsmessage.RCodeNameError, 0},
		{"ok.test.evil.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"93.184.215.14.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"localhost.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{".", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"a b.ok.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
	} {
		code, addrs := s.ask(t, q.name, q.typ)
		if code != q.code || len(addrs) != q.addrs {
			t.Errorf("%s %s: %s %v", q.name, q.typ, code, addrs)
		}
		for _, a := range addrs {
			if !netip.MustParsePrefix("198.18.0.0/16").Contains(a) {
				t.Errorf("%s: %s", q.name, a)
			}
		}
	}
	_, one := s.ask(t, "ok.test.", dnsmessage.TypeA)
	_, two := s.ask(t, "ok.test.", dnsmessage.TypeA)
	_, other := s.ask(t, "a.deep.test.", dnsmessage.TypeA)
	if one[0] != two[0] || one[0] == other[0] {
		t.Errorf("%v, %v, %v", one, two, other)
	}
	// What is no question gets no answer, or a refusal, and costs nothing.
	if b := s.exchange(t, []byte("\x00\x07\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")); b[3]&0xf != byte(dnsmessage.RCodeFormatError) {
		t.Errorf("a query without a question: %x", b)
	}
	if code, _ := s.ask(t, "ok.test.", dnsmessage.TypeA); code != 0 {
		t.Error("no answer after it")
	}
}

// TestTransparent: what a program sends to the address it was given goes to the host the address stands for, or nowhere.
func TestTransparent(t *testing.T) {
	serve := func(c net.Conn, addr string) {
		if strings.HasSuffix(addr, ":22") {
			_, _ = io.WriteString(c, "SSH-2.0-far")
		}
		b := bufio.NewReader(c)
		first, _ := b.Peek(1)
		if len(first) == 1 && first[0] == 0x16 {
			_, _ = io.WriteString(c, "dialled "+addr)
			_, _ = io.Copy(io.Discard, b)
			return
		}
		req, err := http.ReadRequest(b)
		if err == nil {
			_, _ = io.WriteString(c, ok+" "+req.Host)
		}
	}
	s := startTransparent(t, proxy.Options{Chain: outside(t, serve)}, client(t, "ok.case.localhost", "ok.case.localhost:22",
		"two.case.localhost", "two.case.localhost:8443", "93.184.215.14", "93.184.215.14:22", "GET http://ok.case.localhost:8080/v1/*"))
	_, addrs := s.ask(t, "ok.case.localhost.", dnsmessage.TypeA)
	given := addrs[0]
	get := func(host string) string { return "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n" }
	public, other := netip.MustParseAddr("93.184.215.14"), netip.MustParseAddr("93.184.215.15")
	greeting := netip.AddrPortFrom(given, 22)
	for _, c := range []struct {
		name string
		to   netip.AddrPort
		send string
		want string
	}{
		{"HTTP to its name", netip.AddrPortFrom(given, 80), get("ok.case.localhost"), "HTTP/1.1 200"},
		{"HTTP to another allowed name", netip.AddrPortFrom(given, 80), get("two.case.localhost"), "HTTP/1.1 421"},
		{"HTTP to a refused name", netip.AddrPortFrom(given, 80), get("evil.case.localhost"), "HTTP/1.1 421"},
		{"HTTP on another port", netip.AddrPortFrom(given, 80), get("ok.case.localhost:81"), "HTTP/1.1 421"},
		{"HTTP with a tunnel in it", netip.AddrPortFrom(given, 80), "CONNECT ok.case.localhost:443 HTTP/1.1\r\nHost: ok.case.localhost\r\n\r\n", "HTTP/1.1 400"},
		{"TLS to its name", netip.AddrPortFrom(given, 443), string(helloBytes(t, "ok.case.localhost")), "dialled "},
		{"TLS to another allowed name", netip.AddrPortFrom(given, 443), string(helloBytes(t, "two.case.localhost")), "\x15"},
		{"TLS without a name", netip.AddrPortFrom(given, 443), string(helloBytes(t, "")), "\x15"},
		{"HTTP to an address, by name", netip.AddrPortFrom(other, 80), get("ok.case.localhost"), "HTTP/1.1 200"},
		{"HTTP to an allowed address", netip.AddrPortFrom(public, 80), get("93.184.215.14"), "HTTP/1.1 200"},
		{"HTTP to another address than said", netip.AddrPortFrom(other, 80), get("93.184.215.14"), "HTTP/1.1 421"},
		{"HTTP to metadata", netip.MustParseAddrPort("169.254.169.254:80"), get("169.254.169.254"), "HTTP/1.1 403"},
		{"TLS to an address, by name", netip.AddrPortFrom(other, 443), string(helloBytes(t, "two.case.localhost")), "dialled "},
		{"TLS to an allowed address", netip.AddrPortFrom(public, 443), string(helloBytes(t, "")), "dialled 93.184.215.14:443"},
		{"TLS to another address", netip.AddrPortFrom(other, 443), string(helloBytes(t, "")), "\x15"},
		{"an address that was not given out", netip.MustParseAddrPort("198.18.200.1:443"), string(helloBytes(t, "")), "\x15"},
		{"a far side that speaks first", greeting, "", "SSH-2.0-far"},
		{"the same at an address", netip.AddrPortFrom(public, 22), "", "SSH-2.0-far"},
		{"TLS to another name there", greeting, string(helloBytes(t, "two.case.localhost")), "\x15"},
		{"a port that no rule names", netip.AddrPortFrom(given, 23), "", ""},
		{"TLS by name on another port", netip.AddrPortFrom(other, 8443), string(helloBytes(t, "two.case.localhost")), "dialled "},
		{"a rule for requests there", netip.AddrPortFrom(given, 8080), "GET /v1/a HTTP/1.1\r\nHost: ok.case.localhost:8080\r\nConnection: close\r\n\r\n", "HTTP/1.1 200"},
		{"what it does not cover", netip.AddrPortFrom(given, 8080), "GET /v2/a HTTP/1.1\r\nHost: ok.case.localhost:8080\r\nConnection: close\r\n\r\n", "HTTP/1.1 403"},
		{"something else", netip.AddrPortFrom(given, 443), "SSH-2.0-x\r\n\r\n", "HTTP/1.1 400"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.l.mu.Lock()
			s.l.to = c.to
			s.l.mu.Unlock()
			got := s.raw(t, c.send)
			if c.to == greeting && c.send != "" { // the far side's greeting may come before the refusal
				got = strings.TrimPrefix(got, "SSH-2.0-far")
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
