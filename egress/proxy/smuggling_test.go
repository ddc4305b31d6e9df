package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// recorder is an origin that keeps every byte it is sent and answers each request that net/http can read in it.
type recorder struct {
	addr string
	mu   sync.Mutex
	got  strings.Builder
}

func newRecorder(t testing.TB, answer string) *recorder {
	r := &recorder{}
	r.addr = listen(t, func(c net.Conn) {
		in := bufio.NewReader(io.TeeReader(c, r))
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	})
	return r
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(p)
}

func (r *recorder) bytes() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// status is the status code of the first response in raw, "" if there is none.
func status(raw string) string {
	if !strings.HasPrefix(raw, "HTTP/1.1 ") || len(raw) < 12 {
		return ""
	}
	return raw[9:12]
}

// TestSmuggling holds the shapes of requests that two readers can read as two different messages. None of them may reach the
// far side, in whole or in part. In each, {} is the far side's host.
func TestSmuggling(t *testing.T) {
	const head = "GET http://{}/ HTTP/1.1\r\nHost: {}\r\n"
	const post = "POST http://{}/ HTTP/1.1\r\nHost: {}\r\n"
	for _, c := range []struct{ name, send, want string }{
		// framing
		{"length beside chunked", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"chunked beside length", post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "400"},
		{"chunked beside length 0", post + "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", "400"},
		{"two lengths that differ", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400"},
		{"two lengths that agree", post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "400"},
		{"list of lengths", post + "Content-Length: 5, 5\r\n\r\nhello", "400"},
		{"signed length", post + "Content-Length: +5\r\n\r\nhello", "400"},
		{"negative length", post + "Content-Length: -1\r\n\r\n", "400"},
		{"hexadecimal length", post + "Content-Length: 0x5\r\n\r\nhello", "400"},
		{"length with a space inside", post + "Content-Length: 1 0\r\n\r\nhello", "400"},
		{"empty length", post + "Content-Length:\r\n\r\n", "400"},
		{"length with an underscore", post + "Content-Length: 1_0\r\n\r\nhello", "400"},
		{"length beyond 63 bits", post + "Content-Length: 99999999999999999999\r\n\r\n", "400"},
		{"length in other digits", post + "Content-Length: \u0665\r\n\r\nhello", "400"},
		{"coding other than chunked", post + "Transfer-Encoding: gzip\r\n\r\n", "400"},
		{"chunked not alone", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "400"},
		{"chunked twice in one", post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "400"},
		{"chunked twice in two", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"chunked then identity", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "400"},
		{"identity", post + "Transfer-Encoding: identity\r\n\r\n", "400"},
		{"xchunked", post + "Transfer-Encoding: xchunked\r\n\r\n", "400"},
		{"quoted chunked", post + "Transfer-Encoding: \"chunked\"\r\n\r\n", "400"},
		{"chunked behind a vertical tab", post + "Transfer-Encoding: \vchunked\r\n\r\n", "400"},
		{"chunked with a comma", post + "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n", "400"},
		{"chunked in HTTP/1.0", "POST http://{}/ HTTP/1.0\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"empty coding", post + "Transfer-Encoding:\r\n\r\n", "400"},
		// header lines
		{"space before the colon", head + "Content-Length : 5\r\n\r\nhello", "400"},
		{"tab before the colon", head + "Transfer-Encoding\t: chunked\r\n\r\n", "400"},
		{"folded line", head + "X-A: b\r\n c\r\n\r\n", "400"},
		{"folded length", post + "Content-Length:\r\n 5\r\n\r\nhello", "400"},
		{"first line folded", "GET http://{}/ HTTP/1.1\r\n Host: {}\r\n\r\n", "400"},
		{"line without a colon", head + "Content-Length\r\n\r\n", "400"},
		{"empty name", head + ": x\r\n\r\n", "400"},
		{"NUL in a value", head + "X-A: a\x00b\r\n\r\n", "400"},
		{"NUL in a name", head + "X\x00A: b\r\n\r\n", "400"},
		{"control in a value", head + "X-A: a\x01b\r\n\r\n", "400"},
		{"DEL in a value", head + "X-A: a\x7fb\r\n\r\n", "400"},
		{"bytes over 127 in a name", head + "Content-Length\u00a0: 5\r\n\r\n", "400"},
		{"parentheses in a name", head + "X(A): b\r\n\r\n", "400"},
		{"space in a name", head + "X A: b\r\n\r\n", "400"},
		// line ends
		{"LF alone behind a header", head + "X-A: b\nContent-Length: 5\r\n\r\nhello", "400"},
		{"LF alone behind the request line", "GET http://{}/ HTTP/1.1\nHost: {}\r\n\r\n", "400"},
		{"LF alone for the empty line", head + "\n", "400"},
		{"LF LF", "GET http://{}/ HTTP/1.1\nHost: {}\n\n", "400"},
		{"CR alone in a value", head + "X-A: b\rContent-Length: 5\r\n\r\nhello", "400"},
		{"CR CR LF", head + "X-A: b\r\r\n\r\n", "400"},
		{"CR alone in the request line", "GET http://{}/\rHTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"CR LF before the request", "\r\n" + head + "\r\n", ""},
		// request line
		{"two spaces", "GET  http://{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"tab for a space", "GET\thttp://{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"space behind the version", "GET http://{}/ HTTP/1.1 \r\nHost: {}\r\n\r\n", "400"},
		{"space in the target", "GET http://{}/a b HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"no version", "GET http://{}/\r\nHost: {}\r\n\r\n", "400"},
		{"version in lower case", "GET http://{}/ http/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"version 1.2", "GET http://{}/ HTTP/1.2\r\nHost: {}\r\n\r\n", "400"},
		{"version 2.0", "GET http://{}/ HTTP/2.0\r\nHost: {}\r\n\r\n", "400"},
		{"version with zeros", "GET http://{}/ HTTP/01.1\r\nHost: {}\r\n\r\n", "400"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"},
		{"method that is no token", "G(T http://{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"NUL in the target", "GET http://{}/\x00 HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"raw byte over 127 in the target", "GET http://{}/\xff HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"fragment", "GET http://{}/#a HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"backslash", "GET http://{}\\@evil.case.localhost/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"user in the target", "GET http://a@{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"host as the user", "GET http://{}@evil.case.localhost/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"network path", "GET //{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"other scheme", "GET ftp://{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"https in absolute form", "GET https://{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"no scheme", "GET {}/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		{"TRACE", "TRACE http://{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", "400"},
		// Host
		{"no Host", "GET http://{}/ HTTP/1.1\r\n\r\n", "400"},
		{"two Hosts", head + "Host: {}\r\n\r\n", "400"},
		{"two Hosts that differ", head + "Host: evil.case.localhost\r\n\r\n", "400"},
		{"Host with a path", "GET / HTTP/1.1\r\nHost: {}/a\r\n\r\n", "400"},
		{"Host with a user", "GET / HTTP/1.1\r\nHost: a@{}\r\n\r\n", "400"},
		{"Host with a comma", "GET / HTTP/1.1\r\nHost: {}, evil.case.localhost\r\n\r\n", "400"},
		{"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "400"},
		// others
		{"unknown expectation", post + "Expect: 200-ok\r\nContent-Length: 2\r\n\r\nhi", "400"},
		{"body on CONNECT", "CONNECT {} HTTP/1.1\r\nHost: {}\r\nContent-Length: 5\r\n\r\nhello", "400"},
		{"chunked CONNECT", "CONNECT {} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"too many headers", head + strings.Repeat("a: b\r\n", 257) + "\r\n", "400"},
		{"head too large", head + "X-A: " + strings.Repeat("a", 70<<10) + "\r\n\r\n", "431"},
		{"control bytes", "\x01\x02\x03", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			origin := newRecorder(t, ok)
			u := start(t, proxy.Options{}, client(t, "*:*"))
			got := u.raw(t, strings.ReplaceAll(c.send, "{}", "ok.case.localhost"+port(origin.addr)))
			if status(got) != c.want {
				t.Errorf("answer %q, want status %q", got, c.want)
			}
			if c.want != "" && !strings.Contains(got, "\r\nHearsay-Reason: ") {
				t.Errorf("no reason in %q", got)
			}
			if b := origin.bytes(); b != "" {
				t.Errorf("the far side got %q", b)
			}
			if allowed, refused := u.events.decisions(); allowed != 0 || refused != 1 {
				t.Errorf("%d allowed, %d refused decisions, want one refused", allowed, refused)
			}
		})
	}
}

// TestBadChunks holds bodies that go wrong after their head was let through: the far side must never take them for whole.
func TestBadChunks(t *testing.T) {
	for name, body := range map[string]string{
		"size is no number":         "zz\r\n",
		"size is signed":            "+2\r\nok\r\n0\r\n\r\n",
		"size has a prefix":         "0x2\r\nok\r\n0\r\n\r\n",
		"size is too large":         "ffffffffffffffff\r\nok\r\n0\r\n\r\n",
		"size is empty":             "\r\nok\r\n0\r\n\r\n",
		"size ends in LF":           "2\nok\r\n0\r\n\r\n",
		"space behind the size":     "2 \r\nok\r\n0\r\n\r\n",
		"space before the size":     " 2\r\nok\r\n0\r\n\r\n",
		"CR in an extension":        "2;a\rb\r\nok\r\n0\r\n\r\n",
		"control in an extension":   "2;a=\x01\r\nok\r\n0\r\n\r\n",
		"extension without end":     "2;" + strings.Repeat("a", 600) + "\r\nok\r\n0\r\n\r\n",
		"data is longer":            "2\r\nokay\r\n0\r\n\r\n",
		"data ends in no line end":  "2\r\nokXX0\r\n\r\n",
		"data ends in LF":           "2\r\nok\n0\r\n\r\n",
		"trailer is folded":         "2\r\nok\r\n0\r\nX-A: b\r\n c\r\n\r\n",
		"trailer without a colon":   "2\r\nok\r\n0\r\nX-A\r\n\r\n",
		"trailer's name has spaces": "2\r\nok\r\n0\r\nX-A : b\r\n\r\n",
		"end without CR LF":         "2\r\nok\r\n0\r\n\n",
		"cut in the data":           "5\r\nok",
		"cut before the end":        "2\r\nok\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			whole := make(chan error, 1)
			addr := listen(t, func(c net.Conn) {
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err == nil {
					_, err = io.Copy(io.Discard, req.Body)
				}
				whole <- err
			})
			u := start(t, proxy.Options{}, client(t, "*:*"))
			host := "ok.case.localhost" + port(addr)
			got := u.raw(t, fmt.Sprintf("POST http://%s/ HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n%s", host, host, body))
			if err := <-whole; err == nil {
				t.Error("the far side took the body for whole")
			}
			if s := status(got); s == "200" {
				t.Errorf("answer %q", got)
			}
		})
	}
}

// TestBadAnswers holds what a hostile far side may answer. The client must never read a message of its own making out of it.
func TestBadAnswers(t *testing.T) {
	for _, c := range []struct{ name, answer, want string }{
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!", "502"},
		{"length beside chunked", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "502"},
		{"other coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "502"},
		{"LF alone", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "502"},
		{"folded", "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nok", "502"},
		{"space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok", "502"},
		{"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n", "502"},
		{"HTTP/0.9", "hello there, no head\r\n\r\n", "502"},
		{"status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "502"},
		{"status 99", "HTTP/1.1 099 OK\r\n\r\n", "502"},
		{"status 600", "HTTP/1.1 600 OK\r\n\r\n", "502"},
		{"control in the reason", "HTTP/1.1 200 O\x1bK\r\nContent-Length: 0\r\n\r\n", "502"},
		{"switch that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "502"},
		{"endless interim answers", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n", 40), "103"},
		{"chunked 204", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "502"},
		{"nothing", "", "502"},
		{"reason is empty", "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", "200"},
		{"no space behind the status", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := listen(t, func(nc net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(nc)); err == nil {
					_, _ = io.WriteString(nc, c.answer)
				}
			})
			u := start(t, proxy.Options{}, client(t, "*:*"))
			host := "ok.case.localhost" + port(addr)
			got := u.raw(t, fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host, host))
			if status(got) != c.want || strings.Contains(got, "established") {
				t.Errorf("answer %q, want status %s", got, c.want)
			}
		})
	}
}

// TestPoisonedConnection has a far side say more than was asked: none of it may answer the next request.
func TestPoisonedConnection(t *testing.T) {
	extra := ok + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	for name, pause := range map[string]bool{"with the answer": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			said, read := make(chan struct{}, 4), make(chan struct{}, 4)
			addr := listen(t, func(nc net.Conn) {
				in := bufio.NewReader(nc)
				for {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					first := extra
					if pause {
						first = ok
					}
					_, _ = io.WriteString(nc, first)
					if pause {
						<-read
						_, _ = io.WriteString(nc, extra[len(ok):])
					}
					said <- struct{}{}
				}
			})
			u := start(t, proxy.Options{}, client(t, "*:*"))
			host := "ok.case.localhost" + port(addr)
			c := u.dial(t)
			r := bufio.NewReader(c)
			for i := range 3 {
				fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n", host, host)
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if b, _ := io.ReadAll(resp.Body); string(b) != "ok" {
					t.Fatalf("request %d was answered %q", i, b)
				}
				read <- struct{}{}
				<-said
			}
		})
	}
}

// TestForwardedHead shows what a far side sees of a request, and a client of an answer.
func TestForwardedHead(t *testing.T) {
	origin := newRecorder(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"+
		"Proxy-Authenticate: Basic realm=\"steal\"\r\nSet-Cookie: a=b\r\nUpgrade: h2c\r\nX-Kept: 1\r\n\r\nok")
	u := start(t, proxy.Options{}, client(t, "*:*"))
	host := "ok.case.localhost" + port(origin.addr)
	got := u.raw(t, "GET HTTP://OK.Case.localhost."+port(origin.addr)+"?q=1 HTTP/1.1\r\nHost: evil.case.localhost\r\n"+
		"Proxy-Authorization: Basic c2Vzc2lvbg==\r\nProxy-Connection: keep-alive\r\nProxy-Whatever: 1\r\nConnection: x-SECRET, close\r\nX-Secret: 1\r\n"+
		"TE: trailers\r\nTrailer: X-T\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nKeep-Alive: 300\r\nAccept: */*\r\nX-Kept:  b c \r\n\r\n")
	via := u.via(t, origin.bytes())
	want := "GET /?q=1 HTTP/1.1\r\nHost: " + host + "\r\nAccept: */*\r\nX-Kept: b c\r\nVia: " + via + "\r\n\r\n"
	if origin.bytes() != want {
		t.Errorf("the far side got\n%q, want\n%q", origin.bytes(), want)
	}
	want = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nX-Kept: 1\r\nContent-Length: 2\r\nConnection: close\r\nVia: " + via + "\r\n\r\nok"
	if got != want {
		t.Errorf("the client got\n%q, want\n%q", got, want)
	}
}

// via cuts the value of the Via line out of a head.
func (u *under) via(t *testing.T, head string) string {
	t.Helper()
	_, rest, found := strings.Cut(head, "\r\nVia: ")
	v, _, _ := strings.Cut(rest, "\r\n")
	if !found || !strings.HasPrefix(v, "1.1 hearsay-") {
		t.Fatalf("no Via of its own in %q", head)
	}
	return v
}

// TestKeptConnectionIsJudgedAnew sends to an allowed host, then to another on the same connection.
func TestKeptConnectionIsJudgedAnew(t *testing.T) {
	origin := newRecorder(t, ok)
	p := port(origin.addr)
	u := start(t, proxy.Options{}, client(t, "GET http://ok.case.localhost"+p+"/a/*"))
	c := u.dial(t)
	r := bufio.NewReader(c)
	for _, q := range []struct{ method, host, path, want string }{
		{"GET", "ok.case.localhost", "/a/1", "200"},
		{"GET", "evil.case.localhost", "/a/1", "403"},
		{"GET", "ok.case.localhost", "/a/2", "200"},
		{"GET", "ok.case.localhost", "/b", "403"},
		{"DELETE", "ok.case.localhost", "/a/1", "403"},
		{"GET", "ok.case.localhost", "/a/%2e%2e/b", "403"},
		{"GET", "ok.case.localhost", "/a/3", "200"},
	} {
		fmt.Fprintf(c, "%s http://%s%s%s HTTP/1.1\r\nHost: x\r\n\r\n", q.method, q.host, p, q.path)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%v: %v", q, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if got := fmt.Sprint(resp.StatusCode); got != q.want {
			t.Errorf("%v: status %s", q, got)
		}
	}
	if n := strings.Count(origin.bytes(), "HTTP/1.1\r\n"); n != 3 {
		t.Errorf("the far side got %d requests", n)
	}
	if allowed, refused := u.events.decisions(); allowed != 3 || refused != 4 {
		t.Errorf("%d allowed, %d refused", allowed, refused)
	}
}

// TestEveryWayInIsDecided asks for a host that no rule allows in every protocol and form: one decision each, and no connection.
func TestEveryWayInIsDecided(t *testing.T) {
	origin := newRecorder(t, ok)
	p := port(origin.addr)
	socks := func(host string, port int) string {
		return "\x05\x01\x00" + "\x05\x01\x00\x03" + string(rune(len(host))) + host + string([]byte{byte(port >> 8), byte(port)})
	}
	var n int
	fmt.Sscanf(p, ":%d", &n)
	for name, send := range map[string]string{
		"GET":           "GET http://evil.case.localhost" + p + "/?q=secret HTTP/1.1\r\nHost: ok.case.localhost\r\n\r\n",
		"POST":          "POST http://evil.case.localhost" + p + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi",
		"origin form":   "GET / HTTP/1.1\r\nHost: evil.case.localhost" + p + "\r\n\r\n",
		"OPTIONS *":     "OPTIONS * HTTP/1.1\r\nHost: evil.case.localhost" + p + "\r\n\r\n",
		"CONNECT":       "CONNECT evil.case.localhost" + p + " HTTP/1.1\r\n\r\n",
		"CONNECT 80":    "CONNECT evil.case.localhost:80 HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT 443":   "CONNECT evil.case.localhost:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"SOCKS5":        socks("evil.case.localhost", n),
		"SOCKS5 80":     socks("evil.case.localhost", 80),
		"SOCKS4a":       "\x04\x01\x00\x50\x00\x00\x00\x01\x00evil.case.localhost\x00",
		"TLS":           string(helloBytes(t, "evil.case.localhost")),
		"ws upgrade":    "GET http://evil.case.localhost" + p + "/ HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
		"the proxy":     "GET / HTTP/1.1\r\nHost: {self}\r\n\r\n",
		"CONNECT proxy": "CONNECT {self} HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			u := start(t, proxy.Options{}, client(t, "ok.case.localhost"+p, "127.0.0.1:*"))
			got := u.raw(t, strings.ReplaceAll(send, "{self}", u.addr))
			if allowed, refused := u.events.decisions(); allowed != 0 || refused != 1 {
				t.Errorf("%d allowed and %d refused decisions; answer %q", allowed, refused, got)
			}
			if b := origin.bytes(); b != "" {
				t.Errorf("the far side got %q", b)
			}
			if strings.Contains(got, "evil") || strings.Contains(got, "secret") {
				t.Errorf("the refusal carries what was asked: %q", got)
			}
		})
	}
}

// TestOwnPortsAreRefused: an exemption for loopback must not open the proxy itself or another listener of the program.
func TestOwnPortsAreRefused(t *testing.T) {
	other := newRecorder(t, ok)
	var n uint16
	fmt.Sscanf(port(other.addr), ":%d", &n)
	u := start(t, proxy.Options{OwnPorts: func() []uint16 { return []uint16{n} }}, client(t, "*:*"))
	for _, target := range []string{u.addr, "ok.case.localhost" + port(u.addr), "127.9.9.9" + port(u.addr), other.addr, "[::ffff:127.0.0.1]" + port(u.addr)} {
		_, _, resp := u.connect(t, target)
		if resp.StatusCode != 403 {
			t.Errorf("CONNECT %s: %s", target, resp.Status)
		}
	}
	ev := u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindDecision && e.Reason == egress.ReasonOwnPort })
	if ev.Allowed {
		t.Error("allowed")
	}
}

// TestLoop: what has been through the proxy once is not served again.
func TestLoop(t *testing.T) {
	origin := newRecorder(t, ok)
	u := start(t, proxy.Options{}, client(t, "*:*"))
	host := "ok.case.localhost" + port(origin.addr)
	u.raw(t, fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", host))
	via := u.via(t, origin.bytes())
	got := u.raw(t, fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: x\r\nVia: 1.0 other\r\nVia: 1.1 another, %s\r\n\r\n", host, via))
	if status(got) != "508" {
		t.Errorf("answer %q", got)
	}
	got = u.raw(t, fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: x\r\nVia: %s\r\n\r\n", host, via))
	if status(got) != "508" {
		t.Errorf("answer %q", got)
	}
}

// TestRefusalIsReadable: the words of a refusal arrive even when the client is still sending.
func TestRefusalIsReadable(t *testing.T) {
	u := start(t, proxy.Options{}, client(t))
	got := u.raw(t, "POST http://evil.case.localhost/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("x", 100000))
	for _, want := range []string{"403", "Hearsay-Reason: not-allowed\r\n", "operator's egress policy", "Do not retry"} {
		if !strings.Contains(got, want) {
			t.Errorf("refusal %q lacks %q", got, want)
		}
	}
}
