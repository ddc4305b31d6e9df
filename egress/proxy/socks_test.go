package proxy_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"

	xproxy "golang.org/x/net/proxy"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// TestSOCKS5 holds the messages of a SOCKS5 client and what is answered, byte for byte.
func TestSOCKS5(t *testing.T) {
	echo := echoServer(t)
	var p int
	fmt.Sscanf(port(echo), ":%d", &p)
	pp := string([]byte{byte(p >> 8), byte(p)})
	name := func(s string) string { return "\x03" + string([]byte{byte(len(s))}) + s }
	const hi, granted = "\x05\x01\x00", "\x05\x00"
	reply := func(code byte) string { return string([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0}) }
	for _, c := range []struct{ name, send, want string }{
		{"name", hi + "\x05\x01\x00" + name("ok.case.localhost") + pp + "ping", granted + reply(0) + "ping"},
		{"name in capitals, with a dot", hi + "\x05\x01\x00" + name("OK.case.localhost.") + pp + "ping", granted + reply(0) + "ping"},
		{"IPv4", hi + "\x05\x01\x00\x01\x7f\x00\x00\x01" + pp + "ping", granted + reply(0) + "ping"},
		{"IPv4 in IPv6", hi + "\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x01" + pp + "ping", granted + reply(0) + "ping"},
		{"address as a name", hi + "\x05\x01\x00" + name("127.0.0.1") + pp + "ping", granted + reply(0) + "ping"},
		{"several methods", "\x05\x03\x01\x00\x02" + "\x05\x01\x00" + name("ok.case.localhost") + pp + "ping", granted + reply(0) + "ping"},
		{"a name that no rule allows", hi + "\x05\x01\x00" + name("evil.case.localhost") + pp, granted + reply(2)},
		{"metadata", hi + "\x05\x01\x00\x01\xa9\xfe\xa9\xfe\x00\x50", granted + reply(2)},
		{"private", hi + "\x05\x01\x00\x01\x0a\x00\x00\x01\x00\x50", granted + reply(2)},
		{"NUL in a name", hi + "\x05\x01\x00" + name("ok.case.localhost\x00.evil.test") + pp, granted + reply(2)},
		{"empty name", hi + "\x05\x01\x00" + name("") + pp, granted + reply(2)},
		{"decimal spelling", hi + "\x05\x01\x00" + name("2130706433") + pp, granted + reply(2)},
		{"zone", hi + "\x05\x01\x00" + name("fe80::1%lo") + pp, granted + reply(2)},
		{"port 0", hi + "\x05\x01\x00" + name("ok.case.localhost") + "\x00\x00", granted + reply(2)},
		{"nobody listens", hi + "\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x01", granted + reply(4)},
		{"BIND", hi + "\x05\x02\x00\x01\x7f\x00\x00\x01" + pp, granted + reply(7)},
		{"UDP ASSOCIATE", hi + "\x05\x03\x00\x01\x7f\x00\x00\x01" + pp, granted + reply(7)},
		{"unknown command", hi + "\x05\x09\x00\x01\x7f\x00\x00\x01" + pp, granted + reply(7)},
		{"unknown address type", hi + "\x05\x01\x00\x02\x7f\x00\x00\x01" + pp, granted + reply(8)},
		{"reserved byte set", hi + "\x05\x01\x01\x01\x7f\x00\x00\x01" + pp, granted + reply(1)},
		{"request of version 4", hi + "\x04\x01\x00\x01\x7f\x00\x00\x01" + pp, granted + reply(1)},
		{"only methods unknown here", "\x05\x02\x01\x02", "\x05\xff"},
		{"no methods", "\x05\x00", reply(1)},
		{"SOCKS4", "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", "\x00\x5b\x00\x00\x00\x00\x00\x00"},
		{"SOCKS4a", "\x04\x01\x00\x50\x00\x00\x00\x01\x00ok.case.localhost\x00", "\x00\x5b\x00\x00\x00\x00\x00\x00"},
		{"cut short", hi + "\x05\x01\x00\x03\x40ok", granted},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := start(t, proxy.Options{}, client(t, "ok.case.localhost:*", "127.0.0.1:*"))
			if got := u.raw(t, c.send); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestLogin tells clients apart by user and password, in HTTP and SOCKS5: each has rules of its own.
func TestLogin(t *testing.T) {
	echo := echoServer(t)
	origin := newRecorder(t, ok)
	listener := proxy.Client{Name: "listener", Login: func(user, password string) (string, bool) {
		return user, user == "ann" && password == "pass:ann" || user == "bob" && password == "pass:bob" || user == "gone" && password == "x"
	}}
	u := start(t, proxy.Options{}, listener)
	ann, bob := client(t, "*:*"), client(t)
	ann.Name, bob.Name = "ann", "bob"
	u.Update(ann, bob)
	for _, c := range []struct{ user, password, want string }{
		{"ann", "pass:ann", "200"}, {"bob", "pass:bob", "403"}, {"ann", "wrong", "407"}, {"gone", "x", "407"}, {"", "", "407"},
	} {
		auth := ""
		if c.user != "" {
			auth = "Proxy-Authorization: Basic " + basic(c.user, c.password) + "\r\n"
		}
		got := u.raw(t, "GET http://ok.case.localhost"+port(origin.addr)+"/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+auth+"\r\n")
		if status(got) != c.want {
			t.Errorf("GET as %s: %q, want %s", c.user, got, c.want)
		}
		got = u.raw(t, "CONNECT "+echo+" HTTP/1.1\r\nHost: x\r\n"+auth+"\r\n")
		if status(got) != c.want {
			t.Errorf("CONNECT as %s: %q, want %s", c.user, got, c.want)
		}
		d, _ := xproxy.SOCKS5("tcp", u.addr, nil, nil)
		if c.user != "" {
			d, _ = xproxy.SOCKS5("tcp", u.addr, &xproxy.Auth{User: c.user, Password: c.password}, nil)
		}
		nc, err := d.Dial("tcp", echo)
		if (err == nil) != (c.want == "200") {
			t.Errorf("SOCKS5 as %s: %v", c.user, err)
		}
		if err == nil {
			nc.Close()
		}
	}
	if got := u.raw(t, string(helloBytes(t, "ok.case.localhost"))); !strings.HasPrefix(got, "\x15") {
		t.Errorf("TLS without a login: %q", got)
	}
	if strings.Contains(origin.bytes(), "Proxy-") {
		t.Errorf("the far side got %q", origin.bytes())
	}
	ev := u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindDecision && e.Client == "bob" })
	if ev.Reason != egress.ReasonNotAllowed {
		t.Errorf("%+v", ev)
	}
	// One connection stays one client's.
	c := u.dial(t)
	for _, who := range []string{"ann", "bob"} {
		fmt.Fprintf(c, "GET http://ok.case.localhost%s/ HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic %s\r\n\r\n", port(origin.addr), basic(who, "pass:"+who))
	}
	b, _ := io.ReadAll(c)
	if status(string(b)) != "200" || !strings.Contains(string(b), "HTTP/1.1 407 ") {
		t.Errorf("got %q", b)
	}
}

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// TestSOCKS5Client uses the SOCKS5 client that Go programs use.
func TestSOCKS5Client(t *testing.T) {
	echo := echoServer(t)
	u := start(t, proxy.Options{}, client(t, "*:*"))
	d, err := xproxy.SOCKS5("tcp", u.addr, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Dial("tcp", "ok.case.localhost"+port(echo))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "ping")
	b := make([]byte, 4)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "ping" {
		t.Errorf("%q, %v", b, err)
	}
}
