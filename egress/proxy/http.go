package proxy

import (
	"bytes"
	"encoding/base64"
	"net/netip"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// session speaks plain HTTP/1 with one client: on its own, in a tunnel, or where a program believes it speaks to the host.
type session struct {
	c *conn
	// fixed is the only host that may be asked for: a tunnel's target, or what an address that was given out stands for. The
	// zero Target leaves the host to each request.
	fixed egress.Target
	// original is where a transparent connection was made to; invalid otherwise.
	original netip.AddrPort

	req, resp head
	up, down  bodyWriter
	kept      []*upstream
	login     []byte // the Proxy-Authorization that was accepted
	toHEAD    bool   // the request was HEAD, or none could be read
}

// plan is one request after it was read and judged.
type plan struct {
	target  egress.Target // where it goes
	tls     bool          // as HTTPS, since a credential goes with it
	host    egress.Target // what Host says
	method  string
	request *egress.Request
	rest    []byte // path and query as sent on
	cred    *broker.Credential

	framing    framing
	upgrade    bool // to WebSocket
	keep       bool // the client may send another request
	old        bool // the client speaks HTTP/1.0
	expects    bool
	toHEAD     bool
	repeatable bool // sending it twice does what sending it once does
}

func (h *session) run() {
	h.up.moved, h.down.moved = h.c.movedUp, h.c.movedDn
	h.down.dst = h.c.in.Conn
	defer func() {
		for _, u := range h.kept {
			u.Close()
		}
	}()
	for h.one() {
	}
}

// one serves one request and reports whether another may follow.
func (h *session) one() bool {
	c := h.c
	raw, err := h.readRequest()
	if err == nil {
		err = h.req.parseRequest(raw)
	}
	switch {
	case err == nil:
	case err == errTooLarge:
		return h.refuse(c.decide(question{reason: ReasonTooLarge}), true)
	case isMalformed(err):
		return h.refuse(c.decide(question{reason: ReasonMalformed}), true)
	default:
		c.lost(err)
		return false
	}
	method := methodName(h.req.method)
	h.toHEAD = method == "HEAD"
	if c.rules().Login != nil || h.login != nil {
		if !h.loggedIn() {
			return h.refuse(c.decide(question{reason: ReasonLogin, method: method}), true)
		}
	}
	if method == "CONNECT" {
		h.connect()
		return false
	}
	p, r := h.plan(method)
	if r != "" {
		return h.refuse(c.decide(question{target: p.target, method: method, reason: r}), p.framing.kind != bodyNone)
	}
	u := h.take(p)
	r = c.decide(question{target: p.target, req: p.request, method: method, stamped: p.cred != nil, kept: u != nil})
	if r != "" {
		if u != nil {
			u.Close()
		}
		return h.refuse(r, !p.keep || p.framing.kind != bodyNone || c.over)
	}
	return h.exchange(p, u)
}

// readRequest waits for a request head: long for its first byte, briefly for the rest.
func (h *session) readRequest() ([]byte, error) {
	c, limits := h.c, &h.c.srv.opts.Limits
	if len(c.in.buffered()) == 0 {
		c.in.release()
		c.guard.begin(limits.KeepAlive)
		if err := c.in.fill(limits.Head); err != nil {
			return nil, err
		}
	}
	if !bytes.HasSuffix(c.in.buffered(), []byte("\r\n\r\n")) {
		c.guard.begin(limits.HeadTime)
	}
	return c.in.readHead(limits.Head)
}

// refuse answers with a refusal. closing ends the connection behind it, as it must where the end of the request is not known.
func (h *session) refuse(r egress.Reason, closing bool) bool {
	c := h.c
	closing = closing || h.req.minor == 0 || h.req.closes
	out := c.srv.appendRefusal(h.down.out[:0], r, h.toHEAD, closing)
	h.down.out = out[:0]
	if !c.write(out) {
		return false
	}
	if closing {
		c.note(r)
		c.goodbye()
	}
	return !closing
}

// loggedIn checks Proxy-Authorization (RFC 7617) and hands the connection to the client it names.
func (h *session) loggedIn() bool {
	if h.login != nil {
		// One connection is one client's. Inside a tunnel nothing logs in again.
		return h.fixed.IsValid() || bytes.Equal(h.login, h.req.proxyAuth)
	}
	if h.fixed.IsValid() {
		return true // the tunnel was opened by a client that had logged in
	}
	scheme, token, _ := strings.Cut(string(h.req.proxyAuth), " ")
	plain, err := base64.StdEncoding.DecodeString(strings.TrimLeft(token, " "))
	user, password, ok := strings.Cut(string(plain), ":")
	if !strings.EqualFold(scheme, "basic") || err != nil || !ok {
		return false
	}
	name, ok := h.c.rules().Login(user, password)
	if !ok || !h.c.become(name) {
		return false
	}
	h.login = bytes.Clone(h.req.proxyAuth)
	return true
}

// connect serves CONNECT (RFC 9110 section 9.3.6).
func (h *session) connect() {
	c := h.c
	c.proto = ProtocolConnect
	t, err := egress.ParseTarget(string(h.req.target), 0)
	switch {
	case h.fixed.IsValid() || h.original.IsValid():
		h.refuse(c.decide(question{reason: ReasonUnsupported, method: "CONNECT"}), true)
		return
	case err != nil:
		r, _, _ := reasonOf(err)
		h.refuse(c.decide(question{reason: r, method: "CONNECT"}), true)
		return
	case h.req.chunked || h.req.length > 0: // a body here is the start of the tunnel to one reader and not to another
		h.refuse(c.decide(question{target: t, reason: ReasonMalformed, method: "CONNECT"}), true)
		return
	case h.req.hasVia(c.srv.via):
		h.refuse(c.decide(question{target: t, reason: ReasonLoop, method: "CONNECT"}), true)
		return
	}
	h.req, h.down.out = head{minor: h.req.minor, closes: true}, nil // a tunnel may be open for long
	c.tunnel(t, opener{
		granted: func() bool { return c.write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")) },
		refused: func(r egress.Reason) { h.refuse(r, true) },
		failed:  c.tlsFailed,
	})
}

// plan reads what a request asks for. What it returns beside a reason is as far as it came.
func (h *session) plan(method string) (p plan, r egress.Reason) {
	q := &h.req
	p = plan{
		method: method, framing: q.requestFraming(), keep: q.minor == 1 && !q.closes, old: q.minor == 0,
		expects: q.expects && q.minor == 1, toHEAD: method == "HEAD",
	}
	switch method {
	case "GET", "HEAD", "OPTIONS", "PUT", "DELETE": // RFC 9110 section 9.2.2
		p.repeatable = true
	case "TRACE", "TRACK": // it would show what was stamped on, and what else is added on the way
		return p, ReasonUnsupported
	}
	t, rest, r := h.place()
	if r != "" {
		return p, r
	}
	p.target, p.host, p.rest = t, t, rest
	path, _, _ := strings.Cut(string(rest), "?")
	p.request = &egress.Request{Method: method, Path: path}
	if p.host, r = h.agree(t, p.request); r != "" {
		return p, r
	}
	if h.fixed.IsValid() {
		p.target = h.fixed
	}
	if q.hasVia(h.c.srv.via) {
		return p, ReasonLoop
	}
	p.upgrade = q.upgrades && q.minor == 1 && method == "GET" && p.framing.kind == bodyNone && fold(q.upgrade, "websocket")
	rules := h.c.rules()
	https, cred, err := rules.Broker.For(rules.Name, p.target, path)
	switch {
	case err != nil:
		return p, ReasonMalformed
	case https.IsValid():
		if rules.Dialer.Policy.Decide(p.target, p.request).Reason == egress.ReasonDenied {
			return p, egress.ReasonDenied
		}
		p.target, p.host, p.tls, p.cred = https, https, true, cred
	}
	return p, ""
}

// place finds the host a request names and what is sent on of its target (RFC 9112 section 3.2). In absolute form Host is
// not looked at, and replaced.
func (h *session) place() (t egress.Target, rest []byte, r egress.Reason) {
	target := h.req.target
	var err error
	switch {
	case bytes.IndexByte(target, '#') >= 0, bytes.IndexByte(target, '\\') >= 0:
		return t, nil, ReasonMalformed
	case target[0] == '/':
		if len(target) > 1 && target[1] == '/' { // a path to some, a host to others
			return t, nil, ReasonUnsupported
		}
		rest = target
	case len(target) == 1 && target[0] == '*' && string(h.req.method) == "OPTIONS":
		rest = target
	default:
		u, err := egress.ParseURL(string(target))
		if err != nil {
			r, _, _ = reasonOf(err)
			return t, nil, r
		}
		if u.Scheme != "http" {
			return u.Target, nil, ReasonUnsupported
		}
		rest = target[len("http://"):]
		if i := bytes.IndexAny(rest, "/?"); i < 0 {
			rest = []byte("/")
		} else if rest = rest[i:]; rest[0] == '?' {
			rest = append([]byte("/"), rest...)
		}
		return u.Target, rest, ""
	}
	port := uint16(httpPort)
	if h.fixed.IsValid() {
		port = h.fixed.Port()
	} else if h.original.IsValid() {
		port = h.original.Port()
	}
	t, err = egress.ParseTarget(string(h.req.host), port)
	if err != nil {
		r, _, _ = reasonOf(err)
		return t, nil, r
	}
	return t, rest, ""
}

// agree checks the host a request names against what its connection is for, and returns what Host may say.
func (h *session) agree(named egress.Target, req *egress.Request) (egress.Target, egress.Reason) {
	namedAddr, namedLiteral := named.Addr()
	switch {
	case h.fixed.IsValid():
		if named == h.fixed {
			return named, ""
		}
		// A tunnel to an address: the name inside must then be one that the rules allow by itself.
		if _, literal := h.fixed.Addr(); literal && !namedLiteral && named.Port() == h.fixed.Port() &&
			h.c.rules().Dialer.Policy.Decide(named, req).Allowed {
			return named, ""
		}
		return named, ReasonHost
	case h.original.IsValid():
		if named.Port() != h.original.Port() || namedLiteral && namedAddr != h.original.Addr() {
			return named, ReasonHost
		}
	}
	return named, ""
}

// appendRequest writes a request head anew: what was judged, never what was received.
func (h *session) appendRequest(out []byte, p plan) ([]byte, *broker.Mask) {
	out = append(out, p.method...)
	out = append(out, ' ')
	out = append(out, p.rest...)
	out = append(out, " HTTP/1.1\r\nHost: "...)
	out = appendHost(out, p.host, p.tls)
	out = append(out, '\r', '\n')
	var sent [][]byte
	for _, f := range h.req.fields {
		switch f.known {
		case hOther, hAuthorization, hVia:
		case hAcceptEncoding:
			if p.cred != nil {
				continue
			}
		default:
			continue
		}
		if len(h.req.dropped) > 0 && h.req.drops(f.name) {
			continue
		}
		if p.cred != nil {
			if p.cred.Stamps(f.name) || p.upgrade && p.cred.Masks() && fold(f.name, extensions) { // what is compressed cannot be masked
				continue
			}
			if v, ok := p.cred.Replace(f.value); ok {
				f.value = v
				sent = append(sent, v)
			}
		}
		out = appendField(out, f.name, f.value)
	}
	var mask *broker.Mask
	if p.cred != nil {
		out = p.cred.Stamp(out)
		mask = p.cred.Mask(sent...)
		out = append(out, "Accept-Encoding: identity\r\n"...) // what is compressed cannot be masked
	}
	switch p.framing.kind {
	case bodyChunked:
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
	default:
		if h.req.length >= 0 {
			out = appendLength(out, h.req.length)
		}
	}
	if p.expects {
		out = append(out, "Expect: 100-continue\r\n"...)
	}
	if p.upgrade {
		out = append(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n"...)
	}
	return h.c.appendVia(out), mask
}

// appendHost writes a canonical host, with its port where the scheme has another.
func appendHost(out []byte, t egress.Target, tls bool) []byte {
	def := uint16(httpPort)
	if tls {
		def = tlsPort
	}
	if t.Port() != def {
		return append(out, t.String()...)
	}
	if a, ok := t.Addr(); ok && a.Is6() {
		out = append(out, '[')
		out = append(out, t.Host()...)
		return append(out, ']')
	}
	return append(out, t.Host()...)
}

// appendVia ends a head with this server's own Via line (RFC 9110 section 7.6.3), by which a loop is found.
func (c *conn) appendVia(out []byte) []byte {
	out = append(out, "Via: 1.1 "...)
	out = append(out, c.srv.via...)
	return append(out, "\r\n\r\n"...)
}

// methodName spares the common methods an allocation.
func methodName(b []byte) string {
	switch string(b) {
	case "GET":
		return "GET"
	case "POST":
		return "POST"
	case "HEAD":
		return "HEAD"
	}
	return string(b)
}
