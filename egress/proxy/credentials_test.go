package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

const (
	secretA = "s3cr3t-value-of-account-A"
	secretB = "s3cr3t-value-of-account-B"
	holder  = "PLACEHOLDER-0001"
)

// seen is what a host over TLS was asked.
type seen struct {
	mu    sync.Mutex
	list  []*http.Request
	addrs []string
}

// hosts is a world of HTTPS hosts that echo the head of each request in answer head and body, or send elsewhere.
func hosts(t *testing.T, authority *ca, s *seen) *proxy.Chain {
	cert := authority.issue(t, "api.case.localhost", "other.case.localhost")
	return outside(t, func(c net.Conn, addr string) {
		raw := bufio.NewReader(c)
		first, _ := raw.Peek(1)
		var nc net.Conn = bufConn{c, raw}
		if len(first) == 1 && first[0] == 0x16 {
			nc = tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{cert}})
		}
		in := bufio.NewReader(nc)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.list = append(s.list, req)
			s.addrs = append(s.addrs, addr)
			s.mu.Unlock()
			var echo bytes.Buffer
			_ = req.Header.Write(&echo)
			first := req.Header.Get("Authorization")
			fmt.Fprintf(nc, "HTTP/1.1 302 Found %s\r\nLocation: http://other.case.localhost/\r\nX-Echo: %s\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n", first, first)
			for _, b := range echo.Bytes() { // in pieces of one byte
				fmt.Fprintf(nc, "1\r\n%c\r\n", b)
			}
			fmt.Fprintf(nc, "0\r\nX-T: %s\r\n\r\n", first)
		}
	})
}

func (s *seen) last(t *testing.T) *http.Request {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		t.Fatal("no host was asked")
	}
	return s.list[len(s.list)-1]
}

func secret(t *testing.T, v string) broker.Secret {
	t.Helper()
	s, err := broker.NewSecret([]byte(v))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCredentials stamps secrets on what goes to their hosts, and looks for them everywhere else.
func TestCredentials(t *testing.T) {
	b, err := broker.New([]broker.Options{
		{Host: "api.case.localhost", Header: "Authorization: Bearer {secret}", Secret: secret(t, secretA), Placeholder: holder},
		{Host: "api.case.localhost", Header: "X-Api-Key", Secret: secret(t, secretB), Path: "/b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	authority := newCA(t)
	var s seen
	var log bytes.Buffer
	var records events
	records.more = make(chan struct{}, 1)
	c := client(t, "*:*")
	c.Broker = b
	u := start(t, proxy.Options{
		Chain: hosts(t, authority, &s), Roots: authority.pool, Record: records.record,
		Logger: slog.New(slog.NewTextHandler(&lockedBuffer{b: &log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, c)
	var answers strings.Builder
	get := func(url, headers string) string {
		got := u.raw(t, "GET "+url+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+headers+"\r\n")
		answers.WriteString(got)
		return got
	}
	got := get("http://api.case.localhost/v1", "Authorization: Bearer mine\r\nX-Other: a "+holder+" b\r\nAccept-Encoding: gzip\r\n")
	q := s.last(t)
	if q.Header.Get("Authorization") != "Bearer "+secretA || len(q.Header["Authorization"]) != 1 || q.Header.Get("X-Other") != "a "+secretA+" b" ||
		q.Host != "api.case.localhost" || q.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("the host got %v for %s", q.Header, q.Host)
	}
	if !strings.HasSuffix(s.addrs[0], ":443") {
		t.Errorf("dialled %s", s.addrs[0])
	}
	if !strings.Contains(got, "Bearer "+strings.Repeat("*", len(secretA))) || status(got) != "302" {
		t.Errorf("the answer is %q", got)
	}
	get("http://api.case.localhost/b/x", "X-Api-Key: mine\r\nX-Other: "+holder+"\r\n")
	if q := s.last(t); q.Header.Get("X-Api-Key") != secretB || q.Header.Get("Authorization") != "" || q.Header.Get("X-Other") != holder {
		t.Errorf("the host got %v", q.Header)
	}
	get("http://api.case.localhost/bb", "")
	if q := s.last(t); q.Header.Get("X-Api-Key") != "" || q.Header.Get("Authorization") != "Bearer "+secretA {
		t.Errorf("the host got %v", q.Header)
	}
	// A password in Basic credentials, as git sends it, under a header that is not stamped.
	get("http://api.case.localhost/", "X-Basic: Basic "+base64.StdEncoding.EncodeToString([]byte("user:"+holder))+"\r\n")
	if q := s.last(t); q.Header.Get("X-Basic") != "Basic "+base64.StdEncoding.EncodeToString([]byte("user:"+secretA)) {
		t.Errorf("the host got %v", q.Header)
	}
	// Connection may not make the stamp disappear, nor may a second header of its name survive.
	get("http://api.case.localhost/", "Connection: Authorization\r\nAuthorization: a\r\nauthorization: b\r\n")
	if q := s.last(t); fmt.Sprint(q.Header["Authorization"]) != "[Bearer "+secretA+"]" {
		t.Errorf("the host got %v", q.Header)
	}
	n := len(s.list)
	// To nobody else: where an answer sends on, other hosts, other ports, other spellings of the path.
	for _, url := range []string{"http://other.case.localhost/", "http://api.case.localhost:8080/", "http://sub.api.case.localhost/"} {
		get(url, "X-Other: "+holder+"\r\nAuthorization: Bearer "+holder+"\r\n")
	}
	for _, q := range s.list[n:] {
		if h := fmt.Sprint(q.Header); strings.Contains(h, "s3cr3t") || !strings.Contains(h, holder) {
			t.Errorf("%s got %v", q.Host, q.Header)
		}
	}
	n = len(s.list)
	for _, path := range []string{"/b/../v1", "/%62/x/%2e%2e/", "//b", "/b%2fx", "/v1/..;/b", "/v1/%c0%ae%c0%ae/b", "/v1/..%3b/b", "/v1/%0a/b"} {
		if got := get("http://api.case.localhost"+path, ""); status(got) != "400" {
			t.Errorf("%s: %q", path, got)
		}
	}
	for _, send := range []string{
		"CONNECT api.case.localhost:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"TRACE http://api.case.localhost/ HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		if got := u.raw(t, send); status(got) == "200" {
			t.Errorf("%q: %q", send, got)
		}
	}
	if got := u.raw(t, "CONNECT api.case.localhost:443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(got, "Hearsay-Reason: credential-host") || !strings.Contains(got, "http://") {
		t.Errorf("a tunnel: %q", got)
	}
	if got := u.raw(t, string(helloBytes(t, "api.case.localhost"))); !strings.HasPrefix(got, "\x15") {
		t.Errorf("bare TLS: %q", got)
	}
	if len(s.list) != n {
		t.Errorf("refused requests reached a host: %v", s.list[n:])
	}
	u.stop()
	for where, text := range map[string]string{"log": log.String(), "record": fmt.Sprintf("%+v", records.list), "answers": answers.String()} {
		for _, plant := range []string{"s3cr3t", base64.StdEncoding.EncodeToString([]byte("user:" + secretA))} {
			if strings.Contains(text, plant) {
				t.Errorf("a secret is in the %s", where)
			}
		}
	}
	if !strings.Contains(log.String(), "stamped=true") {
		t.Error("the log does not say that a credential went along")
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  *bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// TestCredentialNeedsTheRightHost: a host that cannot show its certificate gets nothing.
func TestCredentialNeedsTheRightHost(t *testing.T) {
	b, err := broker.New([]broker.Options{{Host: "wrong.case.localhost", Header: "Authorization", Secret: secret(t, secretA)}})
	if err != nil {
		t.Fatal(err)
	}
	authority := newCA(t)
	for name, roots := range map[string]*ca{"another name": authority, "another authority": newCA(t)} {
		t.Run(name, func(t *testing.T) {
			var s seen
			c := client(t, "*:*")
			c.Broker = b
			u := start(t, proxy.Options{Chain: hosts(t, authority, &s), Roots: roots.pool}, c)
			got := u.raw(t, "GET http://wrong.case.localhost/ HTTP/1.1\r\nHost: x\r\n\r\n")
			if status(got) != "502" || len(s.list) > 0 {
				t.Errorf("%q, asked %v", got, s.list)
			}
		})
	}
}

// TestCredentialsByClient: a credential of one client is not another's, and a rule against the host holds for plain HTTP too.
func TestCredentialsByClient(t *testing.T) {
	b, err := broker.New([]broker.Options{{Host: "api.case.localhost", Header: "Authorization", Secret: secret(t, secretA), Client: "somebody else", AllowEcho: true}})
	if err != nil {
		t.Fatal(err)
	}
	authority := newCA(t)
	var s seen
	chain := hosts(t, authority, &s)
	c := client(t, "*:*")
	c.Broker = b
	u := start(t, proxy.Options{Chain: chain, Roots: authority.pool}, c)
	u.raw(t, "GET http://api.case.localhost/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if q := s.last(t); q.Header.Get("Authorization") != "" || !strings.HasSuffix(s.addrs[0], ":80") {
		t.Errorf("%v at %v", q.Header, s.addrs)
	}
	c.Name = "somebody else"
	c.Dialer = &egress.Dialer{Policy: policy(t, egress.PolicyOptions{Allow: []string{"*:*"}, Deny: []string{"DELETE http://api.case.localhost/*"}})}
	other := start(t, proxy.Options{Chain: chain, Roots: authority.pool}, c)
	got := other.raw(t, "GET http://api.case.localhost/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if q := s.last(t); q.Header.Get("Authorization") != secretA || !strings.Contains(got, secretA) {
		t.Errorf("%v, answer %q", q.Header, got)
	}
	n := len(s.list)
	if got := other.raw(t, "DELETE http://api.case.localhost/ HTTP/1.1\r\nHost: x\r\n\r\n"); status(got) != "403" || len(s.list) != n {
		t.Errorf("got %q", got)
	}
}
