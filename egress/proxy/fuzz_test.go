package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

var discard = slog.New(slog.DiscardHandler)

// memory is a connection that holds what there is to read and takes what is written.
type memory struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (m *memory) Read(p []byte) (int, error)  { return m.in.Read(p) }
func (m *memory) Write(p []byte) (int, error) { return m.out.Write(p) }

func over(data []byte, bytewise bool) *stream {
	var r io.Reader = bytes.NewReader(data)
	if bytewise {
		r = iotest.OneByteReader(r)
	}
	return &stream{Conn: &memory{in: r}}
}

// realHello is a ClientHello of crypto/tls.
func realHello(t testing.TB, name string) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _ = tls.Client(a, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake() }()
	_ = b.SetReadDeadline(time.Now().Add(time.Minute))
	buf := make([]byte, maxHello)
	n, err := io.ReadAtLeast(b, buf, 300)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

// FuzzClientHello: what is accepted is what crypto/tls reads in the same bytes, however they are cut, and what is no hello is none
// to it either.
func FuzzClientHello(f *testing.F) {
	hello := realHello(f, "ok.example.com")
	f.Add(hello, uint16(1))
	f.Add(hello, uint16(100))
	f.Add(realHello(f, ""), uint16(16384))
	f.Add([]byte{0x16, 3, 1, 0, 4, 1, 0, 0, 0}, uint16(7))
	f.Add(append([]byte{0x15, 3, 1, 0, 2, 1, 100}, hello...), uint16(7))
	f.Add(append([]byte{0x16, 3, 1, 0, 0}, hello...), uint16(7))
	f.Add(append([]byte{0x16, 4, 1}, hello[3:]...), uint16(7))
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		whole, err := over(data, false).readHello(nil)
		slow, slowErr := over(data, true).readHello(nil)
		if whole != slow || (err == nil) != (slowErr == nil) {
			t.Fatalf("in one piece %+v, %v; in many %+v, %v", whole, err, slow, slowErr)
		}
		// crypto/tls must not see another name.
		var seen *string
		server := tls.Server(&memory{in: bytes.NewReader(data)}, &tls.Config{GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
			seen = &i.ServerName
			return nil, io.EOF
		}})
		_ = server.Handshake()
		if seen != nil && err != errOddHello && (err != nil || !strings.EqualFold(strings.TrimSuffix(whole.name, "."), strings.TrimSuffix(*seen, "."))) {
			t.Fatalf("read %q, %v, crypto/tls reads %q", whole.name, err, *seen)
		}
		if err != nil {
			return
		}
		// The same message in records of another size says the same.
		var msg, again []byte
		for rest := data; len(rest) >= 5; {
			n := int(rest[3])<<8 | int(rest[4])
			if rest[0] != 0x16 || len(rest) < 5+n {
				break
			}
			msg = append(msg, rest[5:5+n]...)
			rest = rest[5+n:]
		}
		msg = msg[:4+int(msg[1])<<16+int(msg[2])<<8+int(msg[3])]
		for k := max(1, int(size)%(1<<14)); len(msg) > 0; {
			n := min(k, len(msg))
			again = append(again, 0x16, 3, 1, byte(n>>8), byte(n))
			again = append(again, msg[:n]...)
			msg = msg[n:]
		}
		if len(again) <= maxHello {
			if h, err := new(helloReader).read(again); err != nil || h.name != whole.name || h.encrypted != whole.encrypted {
				t.Fatalf("in other records %+v, %v; before %+v", h, err, whole)
			}
		}
	})
}

// FuzzSOCKS: no bytes make the reader fail or wait for more than a message holds, however they are cut.
func FuzzSOCKS(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x0bexample.com\x01\xbb"))
	f.Add([]byte("\x05\x02\x00\x02\x01\x01a\x01b\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x05\x01\x00\x05\x03\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x01\x00\x50"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var results [2]string
		for i, bytewise := range []bool{false, true} {
			s := over(data, bytewise)
			if _, err := s.readMethods(socksNoAuth); err != nil {
				continue
			}
			target, err := s.readSOCKSRequest()
			if err == nil && !target.IsValid() {
				t.Fatal("no error and no target")
			}
			results[i] = target.String()
			rest, _ := io.ReadAll(s)
			results[i] += string(rest)
			s = over(data, bytewise)
			_, _, _ = s.readPassword()
		}
		if results[0] != results[1] {
			t.Fatalf("%q in one piece, %q in many", results[0], results[1])
		}
	})
}

// FuzzRequest: what is accepted is one request to net/http as well, with the same method, host, length and body; and what is
// sent on is the same again.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\nnext",
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: close, x\r\nX: 1\r\nExpect: 100-continue\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := over(data, false)
		var h head
		raw, err := s.readHead(DefaultMaxHead)
		if err == nil {
			err = h.parseRequest(raw)
		}
		if err != nil {
			return
		}
		method, host := string(h.method), string(h.host)
		var body bytes.Buffer
		w := &bodyWriter{dst: &body}
		bodyErr := copyBody(w, s, h.requestFraming())
		rest, _ := io.ReadAll(s)
		in := bufio.NewReader(bytes.NewReader(data))
		req, err := http.ReadRequest(in)
		if err != nil {
			return // stricter than this reader
		}
		if req.Method != method || req.URL.Host == "" && req.Host != host {
			t.Fatalf("read %s %q, net/http %s %q", method, host, req.Method, req.Host)
		}
		theirs, err := io.ReadAll(req.Body)
		if (bodyErr == nil) && (err != nil || !bytes.Equal(theirs, body.Bytes())) {
			t.Fatalf("body %q, net/http %q, %v", body.Bytes(), theirs, err)
		}
		if bodyErr == nil {
			if theirRest, _ := io.ReadAll(in); !bytes.Equal(rest, theirRest) {
				t.Fatalf("left %q, net/http %q", rest, theirRest)
			}
		}
	})
}

// FuzzFirstBytes: whatever comes first costs its own connection, and no decision is made without being written down.
func FuzzFirstBytes(f *testing.F) {
	for _, s := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\x05\x01\x00", "\x04\x01", "\x16\x03\x01\x00\x05", "\x00", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		allowed := 0
		var panicked bool
		s, err := New(Options{Logger: discard, Record: func(e Event) error {
			if e.Kind == KindDecision && e.Allowed {
				allowed++
			}
			panicked = panicked || e.Reason == ReasonPanic
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		m := &memory{in: bytes.NewReader(data)}
		m.Conn, _ = net.Pipe()
		s.handle(t.Context(), m, s.room("test"), nil, nil)
		if allowed > 0 || panicked {
			t.Fatalf("%d allowed, panic %v, under no policy; answer %q", allowed, panicked, m.out.Bytes())
		}
		if out := m.out.String(); strings.HasPrefix(out, "HTTP/1.1 2") {
			t.Fatalf("answer %q", out)
		}
	})
}

// FuzzFirstLine: what net/http reads as a request is taken for one, and how the bytes come makes no difference.
func FuzzFirstLine(f *testing.F) {
	for _, s := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\nget\t/ hTTp/1.0\n\n", "PING\r\n", "HTTHTTP/", "SSH-2.0-x\r\n", "\x00\x00", "GET /\x00 HTTP/1.1\r\n"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var whole, pieces firstLine
		got := whole.read(b)
		if cut >= 0 && cut <= len(b) {
			said := pieces.read(b[:cut])
			if said == wordsUnknown {
				said = pieces.read(b[cut:])
			}
			if said != got {
				t.Errorf("%q: %d, cut at %d %d", b, got, cut, said)
			}
		}
		if _, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b))); err == nil && got != wordsHTTP {
			t.Errorf("%q is a request, not %d", b, got)
		}
	})
}

// FuzzFrames: what comes through is frames again, and a message that is one frame never holds the secret.
func FuzzFrames(f *testing.F) {
	const secret = "secret-0123"
	b, err := broker.New([]broker.Options{{Host: "a.example", Header: "X", Secret: must(broker.NewSecret([]byte(secret)))}})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"\x81\x0bsecret-0123", "\x01\x03sec\x89\x01p\x80\x08ret-0123", "\x82\x7e\x00\x02hi", "\x81\x7f\x00\x00\x00\x00\x00\x00\x00\x01x", "\xc1\x00"} {
		f.Add([]byte(s))
	}
	srv, err := New(Options{Logger: discard})
	if err != nil {
		f.Fatal(err)
	}
	_, cred, _ := b.For("", must(egress.ParseTarget("a.example:443", 0)), "/")
	f.Fuzz(func(t *testing.T, in []byte) {
		out := &memory{in: strings.NewReader("")}
		c := &conn{srv: srv, room: srv.room("fuzz"), in: stream{Conn: out}}
		c.movedDn = func(n int) error { return c.moved(&c.down, n) }
		if (&frames{c: c, in: &stream{Conn: &memory{in: bytes.NewReader(in)}}, mask: cred.Mask()}).run() != nil {
			return
		}
		again := &memory{in: strings.NewReader("")}
		c.in.Conn = again
		got := out.out.Bytes()
		if err := (&frames{c: c, in: &stream{Conn: &memory{in: bytes.NewReader(got)}}, mask: cred.Mask()}).run(); err != nil {
			t.Errorf("%q became %q: %v", in, got, err)
		}
		if len(got) > len(secret)+2 && got[0] == 0x81 && int(got[1]) == len(got)-2 && bytes.Contains(got, []byte(secret)) {
			t.Errorf("%q became %q", in, got)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
