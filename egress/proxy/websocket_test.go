package proxy_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// frame is a WebSocket frame as a host sends it.
func frame(first byte, payload string) string {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return string(b) + payload
}

// messages reads what a client gets, each as its opcode and payload; "cut" stands for an end inside one.
func messages(r *bufio.Reader) (got []string) {
	var open string
	for {
		var h [10]byte
		if _, err := io.ReadFull(r, h[:2]); err != nil {
			if open != "" {
				got = append(got, "cut")
			}
			return got
		}
		n := uint64(h[1])
		switch h[1] {
		case 126:
			_, _ = io.ReadFull(r, h[2:4])
			n = uint64(binary.BigEndian.Uint16(h[2:]))
		case 127:
			_, _ = io.ReadFull(r, h[2:10])
			n = binary.BigEndian.Uint64(h[2:])
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(r, payload); err != nil {
			return append(got, "cut")
		}
		op := h[0] & 0xf
		switch {
		case op >= 8:
			got = append(got, fmt.Sprintf("%d %s", op, payload))
			continue
		case op > 0:
			open = fmt.Sprintf("%d ", op)
		}
		open += string(payload)
		if h[0]&0x80 != 0 {
			got = append(got, open)
			open = ""
		}
	}
}

// TestWebSocketMask: a host that a credential goes to may speak WebSocket, and what it echoes of the secret is masked.
func TestWebSocketMask(t *testing.T) {
	stars := strings.Repeat("*", len(secretA))
	big := strings.Repeat("x", 32<<10-5) + secretA + strings.Repeat("y", 70_000) + secretA
	for _, c := range []struct {
		name, head, send string
		echo, broken     bool
		want             []string
	}{
		{name: "text", send: frame(0x81, "a "+secretA+" b"), want: []string{"1 a " + stars + " b"}},
		{name: "binary", send: frame(0x82, secretA), want: []string{"2 " + stars}},
		{name: "nothing", send: frame(0x81, "") + frame(0x81, "x"), want: []string{"1 ", "1 x"}},
		{name: "an end like a start of it", send: frame(0x81, "x"+secretA[:9]) + frame(0x81, secretA[9:]), want: []string{"1 x" + secretA[:9], "1 " + secretA[9:]}},
		{name: "200 bytes", send: frame(0x81, strings.Repeat("z", 175)+secretA), want: []string{"1 " + strings.Repeat("z", 175) + stars}},
		{name: "over several pieces", send: frame(0x82, big), want: []string{"2 " + strings.ReplaceAll(big, secretA, stars)}},
		{name: "over frames, with a ping between", send: frame(0x01, secretA[:3]) + frame(0x89, "hi") + frame(0x00, secretA[3:20]) + frame(0x80, secretA[20:]+"!"),
			want: []string{"9 hi", "1 " + stars + "!"}},
		{name: "in a ping", send: frame(0x89, secretA), want: []string{"9 " + stars}},
		{name: "in a close", send: frame(0x88, "\x03\xe8"+secretA), want: []string{"8 \x03\xe8" + stars}},
		{name: "behind the head in the same packet", head: "X: 1\r\n", send: frame(0x81, secretA), want: []string{"1 " + stars}},
		{name: "a bit of an extension", broken: true, send: frame(0x81, "x") + frame(0xc1, secretA), want: []string{"1 x"}},
		{name: "a masked frame", send: "\x81\x84aaaaaaaa", want: nil},
		{name: "more of no message", send: frame(0x80, "x"), want: nil},
		{name: "a message in a message", send: frame(0x01, "x") + frame(0x81, "y"), want: []string{"cut"}},
		{name: "an unknown opcode", send: frame(0x83, "x"), want: nil},
		{name: "a ping in parts", send: frame(0x09, "x"), want: nil},
		{name: "a long ping", send: frame(0x89, strings.Repeat("x", 126)), want: nil},
		{name: "cut off", send: frame(0x01, "a") + frame(0x80, "b"+secretA)[:12], want: []string{"cut"}},
		{name: "an extension", head: "Sec-WebSocket-Extensions: permessage-deflate\r\n", want: []string{"502"}},
		{name: "echo allowed", head: "Sec-WebSocket-Extensions: permessage-deflate\r\n", send: frame(0xc1, secretA), echo: true, want: []string{"1 " + secretA}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := broker.New([]broker.Options{{Host: "api.case.localhost", Header: "Authorization: Bearer {secret}", Secret: secret(t, secretA), AllowEcho: c.echo}})
			if err != nil {
				t.Fatal(err)
			}
			authority := newCA(t)
			cert := authority.issue(t, "api.case.localhost")
			upgrade := make(chan http.Header, 1)
			said := make(chan string, 1)
			chain := outside(t, func(raw net.Conn, _ string) {
				nc := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}})
				in := bufio.NewReader(nc)
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				upgrade <- req.Header
				_, _ = io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+c.head+"\r\n"+c.send)
				_ = nc.CloseWrite()
				b, _ := io.ReadAll(in)
				said <- string(b)
			})
			cl := client(t, "*:*")
			cl.Broker = b
			u := start(t, proxy.Options{Chain: chain, Roots: authority.pool}, cl)
			nc := u.dial(t)
			_, _ = io.WriteString(nc, "GET http://api.case.localhost/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
				"Sec-WebSocket-Key: k\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\nmine")
			_ = nc.(*net.TCPConn).CloseWrite()
			r := bufio.NewReader(nc)
			resp, err := http.ReadResponse(r, &http.Request{Method: "GET"})
			if err != nil {
				t.Fatal(err)
			}
			if h := <-upgrade; h.Get("Authorization") != "Bearer "+secretA || (h.Get("Sec-Websocket-Extensions") != "") != c.echo {
				t.Errorf("the host got %v", h)
			}
			if resp.StatusCode != 101 {
				if got := fmt.Sprint(resp.StatusCode); len(c.want) != 1 || got != c.want[0] {
					t.Errorf("got %s, want %q", got, c.want)
				}
				return
			}
			got := messages(r)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("got %.300q, want %.300q", got, c.want)
			}
			if s := <-said; s != "mine" && len(c.want) > 0 && c.want[len(c.want)-1] != "cut" && !c.broken {
				t.Errorf("the host was told %q", s)
			}
		})
	}
}
