package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// web starts an origin with a handler and a proxy, and returns the proxy, a client through it and the URL.
func web(t testing.TB, h http.HandlerFunc) (*under, *http.Client, string) {
	t.Helper()
	origin := httptest.NewServer(h)
	t.Cleanup(origin.Close)
	u := start(t, proxy.Options{}, client(t, "*:*"))
	return u, u.httpClient(), "http://ok.case.localhost" + port(origin.Listener.Addr().String())
}

// TestContinue: the client sends its body only after the far side has said so.
func TestContinue(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		u, _, url := web(t, func(w http.ResponseWriter, r *http.Request) {
			if !wanted {
				http.Error(w, "no", http.StatusExpectationFailed)
				return
			}
			b, _ := io.ReadAll(r.Body) // sends 100 Continue
			_, _ = w.Write(b)
		})
		host := strings.TrimPrefix(url, "http://")
		c := u.dial(t)
		fmt.Fprintf(c, "POST %s/ HTTP/1.1\r\nHost: %s\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", url, host)
		r := bufio.NewReader(c)
		l, err := textproto.NewReader(r).ReadLine()
		if err != nil {
			t.Fatal(err)
		}
		if !wanted {
			if !strings.HasPrefix(l, "HTTP/1.1 417 ") {
				t.Errorf("got %q", l)
			}
			continue
		}
		if l != "HTTP/1.1 100 Continue" {
			t.Fatalf("got %q", l)
		}
		for l != "" {
			l, _ = textproto.NewReader(r).ReadLine()
		}
		_, _ = io.WriteString(c, "hello")
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != "hello" {
			t.Errorf("got %q", b)
		}
	}
}

// TestTrailers pass in both directions, but none that changes a message's meaning.
func TestTrailers(t *testing.T) {
	_, hc, url := web(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "body")
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"X-Got", fmt.Sprint(r.Trailer))
		w.Header().Set(http.TrailerPrefix+"Set-Cookie", "a=b")
	})
	req, _ := http.NewRequest("POST", url, io.MultiReader(strings.NewReader("x")))
	req.Trailer = http.Header{"X-Sum": {"1"}}
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	if got := fmt.Sprint(resp.Trailer); got != "map[X-Got:[map[X-Sum:[1]]]]" {
		t.Errorf("trailers %s", got)
	}
}

// TestStreaming: what either side says arrives before it has said all.
func TestStreaming(t *testing.T) {
	_, hc, url := web(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		w.WriteHeader(200)
		_ = rc.Flush()
		in := bufio.NewReader(r.Body)
		for {
			l, err := in.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, "got "+l)
			_ = rc.Flush()
		}
	})
	pr, pw := io.Pipe()
	req, _ := http.NewRequest("POST", url, pr)
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(resp.Body)
	for i := range 5 {
		fmt.Fprintf(pw, "line %d\n", i)
		if l, err := r.ReadString('\n'); l != fmt.Sprintf("got line %d\n", i) {
			t.Fatalf("%q, %v", l, err)
		}
	}
	pw.Close()
	if b, err := io.ReadAll(r); len(b) > 0 || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// TestCutAnswer: an answer that breaks off must not look whole.
func TestCutAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"sized":       "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
		"chunked":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"large sized": "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 500000),
	} {
		t.Run(name, func(t *testing.T) {
			addr := listen(t, func(c net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, answer)
				}
			})
			u := start(t, proxy.Options{}, client(t, "*:*"))
			resp, err := u.httpClient().Get("http://ok.case.localhost" + port(addr))
			if err != nil {
				return // reset before the head was read: not whole either
			}
			if b, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("%d bytes taken for whole", len(b))
			}
		})
	}
}

// TestCutAnswerWithoutLength: where only the end of the connection ends the answer, a reset must arrive as one.
func TestCutAnswerWithoutLength(t *testing.T) {
	read := make(chan struct{})
	addr := listen(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nhalf")
			<-read
			_ = c.(*net.TCPConn).SetLinger(0)
		}
	})
	u := start(t, proxy.Options{}, client(t, "*:*"))
	resp, err := u.httpClient().Get("http://ok.case.localhost" + port(addr))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	close(read)
	if b, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("an orderly end behind %q", b)
	}
}

// TestClosedKeptConnection: the far side closes a kept connection. The next request must not fail for it.
func TestClosedKeptConnection(t *testing.T) {
	addr := listen(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, ok)
		}
	})
	u := start(t, proxy.Options{}, client(t, "*:*"))
	hc := u.httpClient()
	reused := 0
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}})
	for range 20 {
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://ok.case.localhost"+port(addr), nil)
		resp, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(b) != "ok" {
			t.Fatalf("%s %q", resp.Status, b)
		}
		resp.Body.Close()
	}
	if reused != 19 {
		t.Errorf("the client's connection was used again %d times, want 19", reused)
	}
}

// TestAnswerBeforeBody: the far side has heard enough, and the client must hear so although it is still sending.
func TestAnswerBeforeBody(t *testing.T) {
	_, hc, url := web(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "enough", http.StatusRequestEntityTooLarge)
	})
	resp, err := hc.Post(url, "", io.LimitReader(neverending('x'), 50<<20))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 413 || string(b) != "enough\n" {
		t.Errorf("%s %q", resp.Status, b)
	}
}

type neverending byte

func (b neverending) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// TestWebSocket upgrades, and finds bytes that came early on either side.
func TestWebSocket(t *testing.T) {
	u, _, url := web(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || !strings.HasSuffix(strings.ToLower(r.Header.Get("Connection")), "upgrade") || r.Header.Get("Sec-WebSocket-Key") != "k" {
			http.Error(w, fmt.Sprint(r.Header), 400)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\nhello ")
		_, _ = io.Copy(c, rw)
	})
	for _, inTunnel := range []bool{false, true} {
		host := strings.TrimPrefix(url, "http://")
		c := u.dial(t)
		target := url
		if inTunnel {
			fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", host)
			if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))); err != nil {
				t.Fatal(err)
			}
			target = ""
		}
		fmt.Fprintf(c, "GET %s/ws HTTP/1.1\r\nHost: %s\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\nearly ", target, host)
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, &http.Request{Method: "GET"})
		if err != nil || resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "a" || !strings.EqualFold(resp.Header.Get("Upgrade"), "websocket") {
			b, _ := io.ReadAll(r)
			t.Fatalf("%v, %v %q", resp, err, b)
		}
		_, _ = io.WriteString(c, "late")
		_ = c.(*net.TCPConn).CloseWrite()
		if b, err := io.ReadAll(r); string(b) != "hello early late" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	}
}

// TestHTTP2InTunnel: the proxy carries HTTP/2, and many streams at once on one tunnel.
func TestHTTP2InTunnel(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d", r.Proto, len(b))
	}))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()
	u := start(t, proxy.Options{}, client(t, "*:*"))
	hc := u.httpClient()
	tr := hc.Transport.(*http.Transport)
	tr.ForceAttemptHTTP2 = true
	tr.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	errs := make(chan error, 50)
	for range 50 {
		go func() {
			resp, err := hc.Post("https://ok.case.localhost"+port(origin.Listener.Addr().String()), "", bytes.NewReader(make([]byte, 100_000)))
			if err == nil {
				var b []byte
				b, err = io.ReadAll(resp.Body)
				resp.Body.Close()
				if err == nil && string(b) != "HTTP/2.0 100000" {
					err = fmt.Errorf("got %q", b)
				}
			}
			errs <- err
		}()
	}
	for range 50 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestHTTPInTunnel: on port 80 a tunnel carries HTTP, and each request in it is held to the tunnel's host and judged.
func TestHTTPInTunnel(t *testing.T) {
	serve := func(c net.Conn, addr string) {
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
	allow := []string{"ok.case.localhost", "GET http://paths.case.localhost/v1/*", "93.184.215.14", "DELETE http://93.184.215.14/never"}
	const connectOK, connectPaths, connectAddr = "ok.case.localhost:80", "paths.case.localhost:80", "93.184.215.14:80"
	for _, c := range []struct{ target, request, want string }{
		{connectOK, "GET /a HTTP/1.1\r\nHost: ok.case.localhost", "200"},
		{connectOK, "GET /a HTTP/1.1\r\nHost: OK.case.localhost.:80", "200"},
		{connectOK, "GET http://ok.case.localhost/a HTTP/1.1\r\nHost: ok.case.localhost", "200"},
		{connectOK, "GET /a HTTP/1.1\r\nHost: evil.case.localhost", "421"},
		{connectOK, "GET /a HTTP/1.1\r\nHost: localhost", "421"},
		{connectOK, "GET /a HTTP/1.1\r\nHost: ok.case.localhost:81", "421"},
		{connectOK, "GET http://evil.case.localhost/ HTTP/1.1\r\nHost: ok.case.localhost", "421"},
		{connectOK, "GET http://ok.case.localhost:81/ HTTP/1.1\r\nHost: ok.case.localhost", "421"},
		{connectOK, "GET /a HTTP/1.1\r\nHost: ok.case.localhost\r\nHost: evil.case.localhost", "400"},
		{connectOK, "CONNECT ok.case.localhost:80 HTTP/1.1\r\nHost: ok.case.localhost", "400"},
		{connectOK, "PRI * HTTP/2.0", "400"},
		{connectOK, "SSH-2.0-OpenSSH", "400"},
		{connectPaths, "GET /v1/a HTTP/1.1\r\nHost: paths.case.localhost", "200"},
		{connectPaths, "GET /v2/a HTTP/1.1\r\nHost: paths.case.localhost", "403"},
		{connectPaths, "POST /v1/a HTTP/1.1\r\nHost: paths.case.localhost", "403"},
		{connectAddr, "GET /a HTTP/1.1\r\nHost: 93.184.215.14", "200"},
		{connectAddr, "GET /a HTTP/1.1\r\nHost: ok.case.localhost", "200"},
		{connectAddr, "GET /a HTTP/1.1\r\nHost: evil.case.localhost", "421"},
		{connectAddr, "GET /a HTTP/1.1\r\nHost: 93.184.215.15", "421"},
	} {
		t.Run(c.target+" "+c.request, func(t *testing.T) {
			u := start(t, proxy.Options{Chain: outside(t, serve)}, client(t, allow...))
			nc, r, resp := u.connect(t, c.target)
			if resp.StatusCode != 200 {
				t.Fatal(resp.Status)
			}
			// The first request is the one in question, the next shows whether the connection goes on as it should.
			_, _ = io.WriteString(nc, c.request+"\r\n\r\n")
			_ = nc.(*net.TCPConn).CloseWrite()
			b, _ := io.ReadAll(r)
			if status(string(b)) != c.want {
				t.Errorf("got %q, want %s", b, c.want)
			}
		})
	}
}

// TestOriginForm: origin form without a tunnel is judged by Host.
func TestOriginForm(t *testing.T) {
	u, _, url := web(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) })
	host := strings.TrimPrefix(url, "http://")
	if got := u.raw(t, "GET /a HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); !strings.HasSuffix(got, "\r\n\r\n"+host) {
		t.Errorf("got %q", got)
	}
	if got := u.raw(t, "GET /latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n"); status(got) != "403" {
		t.Errorf("got %q", got)
	}
}

// TestHTTP10 clients get what they can read.
func TestHTTP10(t *testing.T) {
	u, _, url := web(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "one ")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "two")
	})
	got := u.raw(t, "GET "+url+"/ HTTP/1.0\r\n\r\n")
	if !strings.HasSuffix(got, "\r\n\r\none two") || strings.Contains(got, "chunked") || !strings.Contains(got, "Connection: close\r\n") {
		t.Errorf("got %q", got)
	}
}

// TestNoBodies: what has no body keeps the connection in step.
func TestNoBodies(t *testing.T) {
	u, _, url := web(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.WriteHeader(304)
		default:
			_, _ = io.WriteString(w, "1234567")
		}
	})
	c := u.dial(t)
	r := bufio.NewReader(c)
	for _, q := range []string{"HEAD /", "GET /204", "GET /304", "HEAD /304", "GET /", "OPTIONS *"} {
		method, path, _ := strings.Cut(q, " ")
		target := url + path
		if path == "*" {
			target = "*"
		}
		fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", method, target, strings.TrimPrefix(url, "http://"))
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || (len(b) > 0) != (q == "GET /") {
			t.Errorf("%s: %q, %v", q, b, err)
		}
		if q == "HEAD /" && resp.Header.Get("Content-Length") != "7" {
			t.Errorf("%s: %v", q, resp.Header)
		}
	}
}
