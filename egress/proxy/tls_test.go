package proxy_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// outside is a SOCKS5 proxy that stands for the whole world: it serves every address itself and says which one it was. With it
// a test can use ports and addresses that it could not listen on.
func outside(t testing.TB, serve func(c net.Conn, addr string)) *proxy.Chain {
	t.Helper()
	addr := listen(t, func(c net.Conn) {
		b := make([]byte, 22)
		if _, err := io.ReadFull(c, b[:3]); err != nil {
			return
		}
		_, _ = c.Write([]byte{5, 0})
		if _, err := io.ReadFull(c, b[:4]); err != nil {
			return
		}
		n := 4
		if b[3] == 4 {
			n = 16
		}
		if _, err := io.ReadFull(c, b[4:4+n+2]); err != nil {
			return
		}
		_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		host := net.IP(b[4 : 4+n]).String()
		serve(c, net.JoinHostPort(host, fmt.Sprint(int(b[4+n])<<8|int(b[5+n]))))
	})
	return &proxy.Chain{Scheme: "socks5", Addr: addr}
}

// greet answers whoever comes with the address that was dialled, once it has said something.
func greet(c net.Conn, addr string) {
	b := make([]byte, 1)
	if _, err := io.ReadFull(c, b); err == nil {
		_, _ = io.WriteString(c, "dialled "+addr)
	}
	_, _ = io.Copy(io.Discard, c)
}

// helloBytes are those of a real ClientHello for a name; "" leaves the name out.
func helloBytes(t testing.TB, name string) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _ = tls.Client(a, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake() }()
	_ = b.SetReadDeadline(time.Now().Add(time.Minute))
	head := make([]byte, 5)
	if _, err := io.ReadFull(b, head); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(b, rest); err != nil {
		t.Fatal(err)
	}
	return append(head, rest...)
}

// split writes b in n pieces, each on its own.
func split(t testing.TB, c net.Conn, b []byte, n int) {
	t.Helper()
	_ = c.(*net.TCPConn).SetNoDelay(true)
	for i := range n {
		from, to := len(b)*i/n, len(b)*(i+1)/n
		if _, err := c.Write(b[from:to]); err != nil {
			t.Fatal(err)
		}
	}
}

// records spreads the handshake message of a hello over records of n bytes each.
func records(hello []byte, n int) []byte {
	var out []byte
	for msg := hello[5:]; len(msg) > 0; {
		k := min(n, len(msg))
		out = append(out, 0x16, 3, 1, byte(k>>8), byte(k))
		out = append(out, msg[:k]...)
		msg = msg[k:]
	}
	return out
}

// withExtension adds one to a hello in a single record.
func withExtension(hello []byte, typ uint16, data []byte) []byte {
	out := bytes.Clone(hello)
	out = append(out, byte(typ>>8), byte(typ), byte(len(data)>>8), byte(len(data)))
	out = append(out, data...)
	add := 4 + len(data)
	// The lengths of the record, the message and the extensions stand before them.
	at := 5 + 4 + 2 + 32
	at += 1 + int(out[at])
	at += 2 + int(out[at])<<8 + int(out[at+1])
	at += 1 + int(out[at])
	bump := func(i, size int) {
		n := 0
		for k := range size {
			n = n<<8 | int(out[i+k])
		}
		n += add
		for k := size - 1; k >= 0; k-- {
			out[i+k] = byte(n)
			n >>= 8
		}
	}
	bump(3, 2)
	bump(6, 3)
	bump(at, 2)
	return out
}

// TestServerName holds what a ClientHello in a tunnel to a name on port 443 may say. What is refused reaches nobody: nothing is
// dialled before the hello was read whole.
func TestServerName(t *testing.T) {
	right := helloBytes(t, "ok.case.localhost")
	for _, c := range []struct {
		name   string
		hello  []byte
		reason egress.Reason // "" passes
		o      proxy.Options
	}{
		{name: "the target's", hello: right},
		{name: "in capitals", hello: helloBytes(t, "OK.CASE.localhost")},
		{name: "in records of one byte", hello: records(right, 1)},
		{name: "in records of 100 bytes", hello: records(right, 100)},
		{name: "with early data behind it", hello: append(bytes.Clone(right), 0x17, 3, 3, 0, 3, 'a', 'b', 'c')},
		{name: "another", hello: helloBytes(t, "evil.case.localhost"), reason: proxy.ReasonName},
		{name: "a name below it", hello: helloBytes(t, "a.ok.case.localhost"), reason: proxy.ReasonName},
		{name: "the name above it", hello: helloBytes(t, "case.localhost"), reason: proxy.ReasonName},
		{name: "another, allowed without a name", hello: helloBytes(t, "evil.case.localhost"), reason: proxy.ReasonName, o: proxy.Options{AllowNoServerName: true, AllowEncryptedHello: true}},
		{name: "none", hello: helloBytes(t, ""), reason: proxy.ReasonNoName},
		{name: "none, allowed", hello: helloBytes(t, ""), o: proxy.Options{AllowNoServerName: true}},
		{name: "encrypted beside the right one", hello: withExtension(right, 0xfe0d, []byte{0, 0, 1, 0, 1}), reason: proxy.ReasonEncrypted},
		{name: "encrypted, allowed", hello: withExtension(right, 0xfe0d, []byte{0, 0, 1, 0, 1}), o: proxy.Options{AllowEncryptedHello: true}},
		{name: "encrypted draft ESNI", hello: withExtension(right, 0xffce, nil), reason: proxy.ReasonEncrypted},
		{name: "a second name", hello: withExtension(right, 0, []byte{0, 7, 0, 0, 4, 'e', 'v', 'i', 'l'}), reason: proxy.ReasonNotTLS},
		{name: "a NUL in it", hello: bytes.Replace(helloBytes(t, "okxcase.localhost"), []byte("okx"), []byte("ok\x00"), 1), reason: proxy.ReasonName},
		{name: "not TLS", hello: []byte("GET / HTTP/1.1\r\nHost: ok.case.localhost\r\n\r\n"), reason: proxy.ReasonNotTLS},
		{name: "not TLS, allowed", hello: []byte("SSH-2.0-x\r\n"), o: proxy.Options{AllowNoServerName: true}},
		{name: "SSLv2", hello: []byte{0x80, 0x2e, 1, 3, 1, 0, 0x15}, reason: proxy.ReasonNotTLS},
		{name: "another handshake message", hello: []byte{0x16, 3, 1, 0, 4, 2, 0, 0, 0}, reason: proxy.ReasonNotTLS},
		{name: "an empty record", hello: []byte{0x16, 3, 1, 0, 0}, reason: proxy.ReasonNotTLS},
		{name: "longer than any", hello: []byte{0x16, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff}, reason: proxy.ReasonNotTLS},
	} {
		for _, pieces := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", c.name, pieces), func(t *testing.T) {
				dialled := make(chan string, 4)
				c.o.Chain = outside(t, func(nc net.Conn, addr string) {
					dialled <- addr
					greet(nc, addr)
				})
				u := start(t, c.o, client(t, "*:*"))
				nc, r, resp := u.connect(t, "ok.case.localhost:443")
				if resp.StatusCode != 200 {
					t.Fatal(resp.Status)
				}
				split(t, nc, c.hello, pieces)
				_ = nc.(*net.TCPConn).CloseWrite()
				got, _ := io.ReadAll(r)
				if c.reason == "" {
					if !strings.HasPrefix(string(got), "dialled ") {
						t.Errorf("got %q", got)
					}
					return
				}
				u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindDecision && e.Reason == c.reason && !e.Allowed })
				u.stop()
				if len(dialled) > 0 && !c.o.AllowNoServerName { // there the far side may have to speak first
					t.Error("it was dialled")
				}
				if c.reason != proxy.ReasonNotTLS && (len(got) != 7 || got[0] != 0x15 || got[5] != 2) {
					t.Errorf("the client got %x, want a fatal alert", got)
				}
			})
		}
	}
}

// TestServerNameOfAddress: a tunnel to an address has no name to compare with. A name inside must be one the rules allow.
func TestServerNameOfAddress(t *testing.T) {
	for _, c := range []struct {
		name   string
		hello  []byte
		reason egress.Reason
	}{
		{"none", helloBytes(t, ""), ""},
		{"a listed name", helloBytes(t, "ok.case.localhost"), ""},
		{"another name", helloBytes(t, "evil.case.localhost"), proxy.ReasonName},
		{"encrypted", withExtension(helloBytes(t, "ok.case.localhost"), 0xfe0d, nil), proxy.ReasonEncrypted},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := start(t, proxy.Options{Chain: outside(t, greet)}, client(t, "93.184.215.14", "ok.case.localhost"))
			nc, r, resp := u.connect(t, "93.184.215.14:443")
			if resp.StatusCode != 200 {
				t.Fatal(resp.Status)
			}
			split(t, nc, c.hello, 2)
			_ = nc.(*net.TCPConn).CloseWrite()
			got, _ := io.ReadAll(r)
			if passed := string(got) == "dialled 93.184.215.14:443"; passed != (c.reason == "") {
				t.Errorf("got %q", got)
			}
			if c.reason != "" {
				u.events.wait(t, func(e proxy.Event) bool { return e.Reason == c.reason })
			}
		})
	}
}

// TestServerNameOnOtherPorts: TLS is held to its name wherever it is spoken.
func TestServerNameOnOtherPorts(t *testing.T) {
	origin := httptest.NewTLSServer(nil)
	defer origin.Close()
	u := start(t, proxy.Options{}, client(t, "*:*"))
	for name, pass := range map[string]bool{"ok.case.localhost": true, "": true, "evil.case.localhost": false} {
		nc, _, resp := u.connect(t, "ok.case.localhost"+port(origin.Listener.Addr().String()))
		if resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
		err := tls.Client(nc, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		if pass != (err == nil) {
			t.Errorf("server name %q: %v", name, err)
		}
		if !pass && !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("the client is told %v", err)
		}
	}
}

// TestOddHello: on a port where anything may be spoken, what a lenient server could take for a hello with another name does not
// pass for something else. crypto/tls takes all but the last two.
func TestOddHello(t *testing.T) {
	evil := helloBytes(t, "evil.case.localhost")
	version := bytes.Clone(evil)
	version[1], version[2] = 4, 1
	entry := func(typ byte, name string) []byte {
		return append([]byte{typ, byte(len(name) >> 8), byte(len(name))}, name...)
	}
	names := slices.Concat(entry(1, "ok.case.localhost"), entry(0, "evil.case.localhost"))
	twoNames := withExtension(helloBytes(t, ""), 0, slices.Concat([]byte{0, byte(len(names))}, names))
	long := withExtension(evil, 0xffff, make([]byte, 12<<10))
	for name, said := range map[string][]byte{
		"behind a warning":         slices.Concat([]byte{0x15, 3, 1, 0, 2, 1, 100}, evil),
		"around a warning":         slices.Concat(records(evil[:5+20], 20), []byte{0x15, 3, 1, 0, 2, 1, 100}, records(slices.Concat(evil[:5], evil[5+20:]), 1<<14)),
		"version of another time":  version,
		"a name of another kind":   twoNames,
		"records of one byte":      records(long, 1),
		"behind an empty record":   slices.Concat([]byte{0x16, 3, 1, 0, 0}, evil),
		"the same extension twice": withExtension(evil, 0, evil[:0]),
	} {
		t.Run(name, func(t *testing.T) {
			far := listen(t, func(c net.Conn) {
				_ = tls.Server(c, &tls.Config{GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
					t.Errorf("the far side reads a hello for %q", i.ServerName)
					return nil, io.EOF
				}}).Handshake()
			})
			u := start(t, proxy.Options{}, client(t, "*:*"))
			nc, r, resp := u.connect(t, "ok.case.localhost"+port(far))
			if resp.StatusCode != 200 {
				t.Fatal(resp.Status)
			}
			_, _ = nc.Write(said)
			_ = nc.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, r)
			if e := u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindClosed }); e.Reason != proxy.ReasonNotTLS {
				t.Errorf("ended with %q", e.Reason)
			}
		})
	}
}

// TestBareTLS sends TLS without a tunnel: its server name is the target.
func TestBareTLS(t *testing.T) {
	u := start(t, proxy.Options{Chain: outside(t, greet)}, client(t, "ok.case.localhost"))
	for name, want := range map[string]string{"ok.case.localhost": "dialled ", "evil.case.localhost": "\x15\x03\x03\x00\x02\x02\x31", "": "\x15\x03\x03\x00\x02\x02\x70"} {
		if got := u.raw(t, string(helloBytes(t, name))); !strings.HasPrefix(got, want) {
			t.Errorf("server name %q: got %q", name, got)
		}
	}
}

// TestSecondHello: a server asks for a second ClientHello, which is held to the name of the first.
func TestSecondHello(t *testing.T) {
	authority := newCA(t)
	cert := authority.issue(t, "ok.case.localhost")
	t.Run("of a real client", func(t *testing.T) {
		u := start(t, proxy.Options{Chain: outside(t, func(c net.Conn, _ string) {
			s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}, CurvePreferences: []tls.CurveID{tls.CurveP521}})
			b, _ := io.ReadAll(s)
			_, _ = s.Write(b)
			_ = s.CloseWrite()
		})}, client(t, "ok.case.localhost"))
		nc, _, _ := u.connect(t, "ok.case.localhost:443")
		c := tls.Client(nc, &tls.Config{ServerName: "ok.case.localhost", RootCAs: authority.pool, CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP521}})
		_, _ = io.WriteString(c, "hello")
		_ = c.CloseWrite()
		b, err := io.ReadAll(c)
		if s := c.ConnectionState(); string(b) != "hello" || err != nil || !s.HelloRetryRequest {
			t.Errorf("%q, %v, retried %v", b, err, s.HelloRetryRequest)
		}
	})
	retry := append([]byte{0x16, 3, 3, 0, 44, 2, 0, 0, 40, 3, 3}, retryRandom...)
	retry = append(retry, 0, 0x13, 1, 0, 0, 0)
	right, wrong := helloBytes(t, "ok.case.localhost"), helloBytes(t, "evil.case.localhost")
	ccs, early := []byte{20, 3, 3, 0, 1, 1}, []byte{23, 3, 3, 0, 2, 'h', 'i'}
	for _, c := range []struct {
		name   string
		answer []byte
		second []byte // with what comes before it
		reason egress.Reason
	}{
		{"the same name", retry, right, ""},
		{"behind what middleboxes like", retry, slicesOf(ccs, right), ""},
		{"behind early data", retry, slicesOf(early, early, ccs, right), ""},
		{"another name", retry, wrong, proxy.ReasonName},
		{"another name behind others", retry, slicesOf(early, ccs, wrong), proxy.ReasonName},
		{"another name in records of 10 bytes", retry, records(wrong, 10), proxy.ReasonName},
		{"no name", retry, helloBytes(t, ""), proxy.ReasonNoName},
		{"an encrypted one", retry, withExtension(right, 0xfe0d, nil), proxy.ReasonEncrypted},
		{"another name behind a warning", retry, slicesOf([]byte{21, 3, 3, 0, 2, 1, 90}, wrong), proxy.ReasonName},
		{"another name behind an empty record", retry, slicesOf([]byte{22, 3, 3, 0, 0}, wrong), proxy.ReasonNotTLS},
		{"no hello", retry, []byte{0x16, 3, 3, 0, 4, 11, 0, 0, 0}, proxy.ReasonNotTLS},
		{"no record", retry, []byte("hello"), proxy.ReasonNotTLS},
		{"without being asked for", append([]byte{0x16, 3, 3, 0, 44, 2, 0, 0, 40, 3, 3}, make([]byte, 38)...), wrong, ""},
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/at once %v", c.name, early), func(t *testing.T) {
				got := make(chan []byte, 1)
				u := start(t, proxy.Options{Chain: outside(t, func(nc net.Conn, _ string) {
					_, _ = io.ReadFull(nc, make([]byte, len(right)))
					_, _ = nc.Write(c.answer)
					b, _ := io.ReadAll(nc)
					got <- b
				})}, client(t, "ok.case.localhost"))
				nc, r, _ := u.connect(t, "ok.case.localhost:443")
				if early { // the client knows what it will be asked
					_, _ = nc.Write(slicesOf(right, c.second))
				} else {
					_, _ = nc.Write(right)
				}
				if _, err := io.ReadFull(r, make([]byte, len(c.answer))); err != nil {
					t.Fatal(err)
				}
				if !early {
					_, _ = nc.Write(c.second)
				}
				_ = nc.(*net.TCPConn).CloseWrite()
				_, _ = io.ReadAll(r)
				b := <-got
				if c.reason == "" {
					if !bytes.Equal(b, c.second) {
						t.Errorf("the far side got %d bytes, want %d", len(b), len(c.second))
					}
					return
				}
				if bytes.Contains(b, []byte{1, 0}) && len(b) > 60 || bytes.Contains(b, []byte("evil")) {
					t.Errorf("the far side got %q", b)
				}
				u.events.wait(t, func(e proxy.Event) bool { return e.Reason == c.reason && !e.Allowed })
			})
		}
	}
}

var retryRandom = []byte("\xCF\x21\xAD\x74\xE5\x9A\x61\x11\xBE\x1D\x8C\x02\x1E\x65\xB8\x91\xC2\xA2\x11\x16\x7A\xBB\x8C\x5E\x07\x9E\x09\xE2\xC8\xA8\x33\x9C")

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
