package proxy

import (
	"io"
	"net"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

const (
	httpPort = 80
	tlsPort  = 443
)

// opener is how a protocol tells its client what became of a tunnel.
type opener struct {
	granted func() bool           // the tunnel stands; false if the client is gone
	refused func(r egress.Reason) // it does not
	failed  func(r egress.Reason) // it did, but what came through it was refused, or the far side was not reached
	judged  bool                  // a hello is in the buffer, and right
}

// tunnel opens a tunnel to t and moves its bytes to the end.
//
// On port 80, and where the rules let single requests through but no tunnel, what comes through must be HTTP, and each request
// is judged. On port 443, for a name, it must be a ClientHello that names the target, which is read whole before anything is
// dialled. On other ports the far side may have to speak first, so it is dialled at once; what the client says first is still
// held until it is known what it is. A hello must be a right one, and of HTTP each request is judged.
func (c *conn) tunnel(t egress.Target, o opener) {
	_, isLiteral := t.Addr()
	requests := !o.judged && (t.Port() == httpPort || t.Port() != tlsPort && c.requestsOnly(t))
	if r := c.decide(question{target: t, opaque: !requests, requests: requests}); r != "" {
		c.note(r)
		o.refused(r)
		return
	}
	if requests {
		if o.granted() {
			h := session{c: c, fixed: t}
			h.run()
		}
		return
	}
	helloFirst := t.Port() == tlsPort && !isLiteral && !c.srv.opts.AllowNoServerName
	if !o.judged && helloFirst {
		if !o.granted() {
			return
		}
		c.guard.begin(c.srv.opts.Limits.HeadTime)
		r, ok := c.hello(t)
		if r != "" {
			c.refuseInside(t, r, o)
		}
		if !ok {
			return
		}
	}
	gen := c.room.gen.Load()
	far, r := c.open(c.ctx, t, nil)
	if r != "" {
		c.note(r)
		if helloFirst {
			o.failed(r)
		} else {
			o.refused(r)
		}
		return
	}
	defer far.Close()
	if !c.join(far, func() bool { return c.stillAllowed(t, far) }) {
		return
	}
	if !o.judged && !helloFirst && !o.granted() {
		return
	}
	c.guard.begin(c.srv.opts.Limits.Idle)
	w := &farWords{c: c, t: t, told: make(chan struct{})}
	err := c.pump(far,
		func() error { return c.firstUp(t, far, o, o.judged || helloFirst, w) },
		func() error { return w.watchFar(far) })
	if err == errTaken {
		h := session{c: c, fixed: t}
		if w.stale {
			far.Close()
		} else {
			h.kept = append(h.kept, &upstream{stream: stream{Conn: far}, target: t, gen: gen})
		}
		h.run()
	}
}

// requestsOnly reports whether the rules let no tunnel to t through, but perhaps single requests.
func (c *conn) requestsOnly(t egress.Target) bool {
	policy := c.rules().Dialer.Policy
	return !policy.Decide(t, nil).Allowed && policy.DecideSome(t).Allowed
}

// firstUp passes on what a client says first: a hello that was judged, or whatever it turns out to be.
func (c *conn) firstUp(t egress.Target, far net.Conn, o opener, isTLS bool, w *farWords) (err error) {
	var r egress.Reason
	if !isTLS {
		var said words
		said, r, err = c.firstWords(t, far, w)
		if said == wordsHTTP {
			if r == "" && w.takeOver(far) {
				return errTaken
			}
			if r == "" {
				r = ReasonBadAnswer // who speaks before it is asked is no HTTP server
			}
			c.note(c.decide(question{target: t, reason: r}))
			return errRefused
		}
		isTLS = said == wordsTLS
	}
	if err == nil && r == "" && isTLS {
		if err = w.pass(far, c.helloSize); err == nil { // and not a byte more: a second hello may lie behind it
			r, err = w.watchClient(far)
		}
	}
	switch {
	case err != nil:
		return err
	case r != "":
		c.refuseInside(t, r, o)
		return errRefused
	}
	return c.flushTo(far)
}

// errRefused ends a tunnel whose first bytes were refused.
var errRefused = net.ErrClosed

// pump joins the client with the far side until both directions have ended. It returns errTaken when both are still open and
// somebody else's now.
func (c *conn) pump(far net.Conn, firstUp, firstDown func() error) error {
	j := joint{
		client: c.in.Conn, server: far, up: c.movedUp, down: c.movedDn, firstUp: firstUp, firstDown: firstDown, splice: &c.srv.pipes, crew: c.crew,
		recovered: c.recovered,
		linger:    func() { c.guard.begin(min(lingerTime, c.srv.opts.Limits.Idle)) },
	}
	err := j.run()
	if err != nil && err != errTaken {
		c.note(ReasonBroken)
	}
	return err
}

// flushTo sends on what was read from the client beyond what was needed, and lets go of the buffer.
func (c *conn) flushTo(far net.Conn) error {
	if b := c.in.buffered(); len(b) > 0 {
		if err := c.passUp(far, b); err != nil {
			return err
		}
		c.in.discard(len(b))
	}
	c.in.release()
	return nil
}

func (c *conn) passUp(far net.Conn, b []byte) error {
	if err := c.movedUp(len(b)); err != nil {
		return err
	}
	if _, err := far.Write(b); err != nil {
		return writeError{err}
	}
	return nil
}

// hello reads a ClientHello for t and says why it is refused. It is not ok without a reason when the client went away.
func (c *conn) hello(t egress.Target) (r egress.Reason, ok bool) {
	h, err := c.in.readHello(nil)
	switch {
	case err == nil:
		r = c.judgeHello(t, h)
	case err == errHello, err == errOddHello, err == io.ErrUnexpectedEOF:
		r = ReasonNotTLS
	default:
		c.lost(err)
		return "", false
	}
	return r, r == ""
}

// firstWords reads what a client says first on a port where anything may be spoken, until it is known what it is. A hello is
// held until it is whole. Of what could become the line of a request all goes on to the far side that is no whole one yet, since a
// client that says so much and no more may be waiting for an answer; if it does become one, the far side is closed upon it, and
// the request begins anew. An end of input is no error: the relay meets it again.
func (c *conn) firstWords(t egress.Target, far net.Conn, w *farWords) (words, egress.Reason, error) {
	if len(c.in.buffered()) == 0 {
		if err := c.in.fill(readSize); err == io.EOF {
			return wordsOpaque, "", nil
		} else if err != nil {
			return wordsOpaque, "", err
		}
	}
	limits := &c.srv.opts.Limits
	if isRecord(c.in.buffered()[0]) {
		passed, begun := 0, false
		h, err := c.in.readHello(func() error {
			b := c.in.buffered()
			if b[0] == recordHandshake && (len(b) == 1 || b[1] == 3) {
				if !begun {
					c.guard.begin(limits.HeadTime) // once begun it has to come
				}
				begun = true
				return nil
			}
			n := passed
			passed = len(b)
			return c.passUp(far, b[n:]) // what few servers take for one, and none before it is whole
		})
		c.guard.begin(limits.Idle)
		switch {
		case err == errOddHello:
			return wordsTLS, ReasonNotTLS, nil
		case err == errHello, err == io.EOF, err == io.ErrUnexpectedEOF: // no server takes it for one either, or it never becomes one
			c.in.discard(passed)
			return wordsOpaque, "", nil
		case err != nil:
			return wordsOpaque, "", err
		}
		return wordsTLS, c.judgeHello(t, h), nil
	}
	var line firstLine
	passed, dropped := 0, 0 // bytes of the line that have gone on: still in the buffer, and no longer
	for {
		b := c.in.buffered()
		n := min(len(b), len(preface))
		if dropped > 0 || n <= prefaceSafe || string(b[:n]) != preface[:n] {
			switch said := line.read(b[passed:]); {
			case said == wordsHTTP && dropped > 0:
				return said, ReasonTooLarge, nil
			case said == wordsHTTP:
				w.stale = passed > 0
				return said, "", nil
			case said == wordsOpaque:
				c.in.discard(passed)
				return said, "", nil
			}
			if err := c.passUp(far, b[passed:]); err != nil {
				return wordsOpaque, "", err
			}
			if passed = len(b); passed >= limits.Head {
				c.in.discard(passed)
				passed, dropped = 0, dropped+passed
			}
		} else if n == len(preface) { // HTTP/2, whose requests are not read
			c.in.discard(passed)
			return wordsOpaque, "", nil
		}
		if err := c.in.fill(limits.Head + readSize); err == io.EOF {
			c.in.discard(passed)
			return wordsOpaque, "", nil
		} else if err != nil {
			return wordsOpaque, "", err
		}
	}
}

// judgeHello compares a ClientHello with the target of its tunnel.
func (c *conn) judgeHello(t egress.Target, h hello) egress.Reason {
	_, isLiteral := t.Addr()
	c.helloSize = h.size
	switch {
	case h.encrypted && !c.srv.opts.AllowEncryptedHello:
		return ReasonEncrypted
	case h.name == "" && (isLiteral || t.Port() != tlsPort || c.srv.opts.AllowNoServerName):
		return ""
	case h.name == "":
		return ReasonNoName
	}
	named, err := egress.NewTarget(h.name, t.Port())
	if err != nil {
		return ReasonName
	}
	if named == t {
		return ""
	}
	// An address carries no name to compare with: the name inside must then be one that the rules allow by itself.
	if _, also := named.Addr(); isLiteral && !also {
		rules := c.rules()
		if rules.Dialer.Policy.Decide(named, nil).Allowed && !rules.Broker.HidesFrom(rules.Name, named) {
			return ""
		}
	}
	return ReasonName
}

// refuseInside writes down a refusal of what came through a tunnel, and tells the client in TLS's own way.
func (c *conn) refuseInside(t egress.Target, r egress.Reason, o opener) {
	r = c.decide(question{target: t, reason: r})
	c.note(r)
	o.failed(r)
}

// tlsFailed tells a client that speaks TLS why its tunnel ends.
func (c *conn) tlsFailed(r egress.Reason) {
	a := byte(alertAccessDenied)
	switch r {
	case ReasonName, ReasonNoName:
		a = alertUnrecognizedName
	case ReasonUnreachable:
		a = alertInternalError
	}
	if r != ReasonNotTLS {
		c.write(alert(a))
	}
	c.goodbye()
}

// socks5 serves one SOCKS5 client (RFC 1928).
func (c *conn) socks5() {
	rules := c.rules()
	method := byte(socksNoAuth)
	if rules.Login != nil {
		method = socksPassword
	}
	offered, err := c.in.readMethods(method)
	if err != nil {
		c.badSOCKS(err)
		return
	}
	if !offered {
		c.note(c.decide(question{reason: ReasonLogin}))
		c.write([]byte{5, socksNone})
		c.goodbye()
		return
	}
	if !c.write([]byte{5, method}) {
		return
	}
	if method == socksPassword {
		user, password, err := c.in.readPassword()
		if err != nil {
			c.badSOCKS(err)
			return
		}
		name, ok := rules.Login(user, password)
		if !ok || !c.become(name) {
			c.note(c.decide(question{reason: ReasonLogin}))
			c.write([]byte{1, 1})
			c.goodbye()
			return
		}
		if !c.write([]byte{1, 0}) {
			return
		}
	}
	refused := func(r egress.Reason) {
		c.write(socksReply(socksCode(r)))
		c.goodbye()
	}
	t, err := c.in.readSOCKSRequest()
	switch {
	case err == errSOCKSCommand, err == errSOCKSAddress:
		c.note(c.decide(question{reason: ReasonUnsupported}))
		code := byte(socksCommand)
		if err == errSOCKSAddress {
			code = socksAddress
		}
		c.write(socksReply(code))
		c.goodbye()
		return
	case err != nil:
		if r, _, _ := reasonOf(err); r != ReasonUnreachable { // a target that is none
			r = c.decide(question{reason: r})
			c.note(r)
			refused(r)
			return
		}
		c.badSOCKS(err)
		return
	}
	c.tunnel(t, opener{
		granted: func() bool { return c.write(socksReply(socksDone)) },
		refused: refused,
		failed:  c.tlsFailed,
	})
}

// badSOCKS ends a connection whose SOCKS messages are malformed or did not come.
func (c *conn) badSOCKS(err error) {
	if err != errSOCKS {
		c.lost(err)
		return
	}
	c.note(c.decide(question{reason: ReasonMalformed}))
	c.write(socksReply(socksFailed))
	c.goodbye()
}

// bareTLS serves TLS that arrives without a tunnel: its server name says where it goes, or the address it was sent to.
func (c *conn) bareTLS() {
	if c.rules().Login != nil { // nothing in it could log in
		c.note(c.decide(question{reason: ReasonLogin}))
		c.tlsFailed(ReasonLogin)
		return
	}
	h, err := c.in.readHello(nil)
	if err != nil {
		if err != errHello && err != errOddHello {
			c.lost(err)
			return
		}
		c.note(c.decide(question{reason: ReasonMalformed}))
		return
	}
	t, r := c.bareTarget(h)
	if r != "" {
		c.note(c.decide(question{target: t, reason: r}))
		c.tlsFailed(r)
		return
	}
	if r := c.judgeHello(t, h); r != "" {
		c.refuseInside(t, r, opener{failed: c.tlsFailed})
		return
	}
	c.tunnel(t, opener{
		granted: func() bool { return true },
		refused: c.tlsFailed,
		failed:  c.tlsFailed,
		judged:  true,
	})
}

// bareTarget is where a hello that arrived without a tunnel is to go.
func (c *conn) bareTarget(h hello) (egress.Target, egress.Reason) {
	port := uint16(tlsPort)
	if c.trans != nil {
		ap, given := c.originalTarget()
		switch {
		case given.IsValid():
			return given, ""
		case h.name == "":
			if t := literal(ap); t.IsValid() {
				return t, ""
			}
			return egress.Target{}, ReasonNoName
		}
		port = ap.Port()
	}
	if h.name == "" {
		return egress.Target{}, ReasonNoName
	}
	t, err := egress.NewTarget(h.name, port)
	if err != nil {
		r, _, _ := reasonOf(err)
		return egress.Target{}, r
	}
	return t, ""
}
