package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

// goodbyeTime bounds how long a refused client may go on sending while it reads why.
const goodbyeTime = 2 * time.Second

// conn is one client connection, from its first byte to its line in the log.
type conn struct {
	srv   *Server
	ctx   context.Context
	in    stream
	id    uint64
	room  *room
	trans *transparent
	start time.Time
	guard guard
	crew  *crew

	proto     Protocol
	target    egress.Target       // the last one, for the log
	over      bool                // the client has too many connections
	helloSize int                 // bytes of the last ClientHello that was judged
	judged    *egress.Explanation // what decide allowed and open has not used yet: a name is resolved once

	up, down         atomic.Int64
	movedUp, movedDn func(n int) error

	mu     sync.Mutex
	far    net.Conn    // what the client is joined with, to end both
	again  func() bool // whether the rules of now still allow that; nil where each request asks
	ended  bool
	reason egress.Reason // the first why
}

// handle serves one accepted connection to its end.
func (s *Server) handle(ctx context.Context, nc net.Conn, r *room, tr *transparent, crew *crew) {
	c := s.newConn(ctx, nc, r, tr)
	c.crew = crew
	defer c.finish()
	defer func() {
		if p := recover(); p != nil {
			c.panicked(p)
		}
	}()
	if ctx.Err() != nil { // endAll may have been before it
		c.end(ReasonStopped)
		return
	}
	c.guard.begin(s.opts.Limits.HeadTime)
	c.serve()
}

// endAll ends the connections of one listener. It costs them less than a watcher of the context for each.
func (s *Server) endAll(ctx context.Context) {
	for _, c := range s.all() {
		if c.ctx == ctx {
			c.end(ReasonStopped)
		}
	}
}

// all returns the connections that are open now.
func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

func (s *Server) newConn(ctx context.Context, nc net.Conn, r *room, tr *transparent) *conn {
	c := &conn{srv: s, ctx: ctx, in: stream{Conn: nc}, id: s.nextID.Add(1), room: r, trans: tr, start: time.Now(), proto: ProtocolUnknown}
	c.movedUp = func(n int) error { return c.moved(&c.up, n) }
	c.movedDn = func(n int) error { return c.moved(&c.down, n) }
	c.guard.expire = c.expire
	c.guard.final = c.start.Add(s.opts.Limits.Total).UnixNano()
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	c.enter(r)
	return c
}

// finish closes and forgets a connection, and writes down that it ended.
func (c *conn) finish() {
	c.guard.stop()
	c.end(ReasonDone)
	c.in.r, c.in.w = 0, 0
	c.in.release()
	c.leave()
	c.srv.mu.Lock()
	delete(c.srv.conns, c)
	c.srv.mu.Unlock()
	c.srv.emit(Event{
		Kind: KindClosed, Conn: c.id, Client: c.name(), Protocol: c.proto, Target: c.target, Reason: c.why(),
		Up: c.up.Load(), Down: c.down.Load(), Duration: time.Since(c.start),
	})
}

func (c *conn) name() string { return c.rules().Name }

// rules are the client's rules of this moment: each decision asks anew.
func (c *conn) rules() *Client { return c.room.rules.Load() }

// enter counts the connection for a client.
func (c *conn) enter(r *room) {
	limit := c.srv.opts.Limits
	c.room = r
	n := r.open.Add(1)
	c.over = limit.Connections > 0 && n > int64(limit.Connections) || limit.Bytes > 0 && r.bytes.Load() >= limit.Bytes
	c.srv.meter.open(c.name(), 1)
}

func (c *conn) leave() {
	c.room.open.Add(-1)
	c.srv.meter.open(c.name(), -1)
}

// become hands the connection over to the client that a login or a certificate names.
func (c *conn) become(name string) bool {
	r, ok := c.srv.known(name)
	if !ok {
		return false
	}
	if r != c.room {
		c.leave()
		c.enter(r)
	}
	return true
}

// errBytes is the error of moved when the client has used up its bytes.
var errBytes = errors.New("the client's bytes are used up")

func (c *conn) moved(side *atomic.Int64, n int) error {
	side.Add(int64(n))
	c.guard.touch()
	if total, limit := c.room.bytes.Add(int64(n)), c.srv.opts.Limits.Bytes; limit > 0 && total > limit {
		c.note(ReasonLimit)
		return errBytes
	}
	return nil
}

// note keeps the first reason why the connection ends.
func (c *conn) note(r egress.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		c.reason = r
	}
}

func (c *conn) why() egress.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// end closes both sides, whoever is using them.
func (c *conn) end(r egress.Reason) {
	c.note(r)
	c.mu.Lock()
	c.ended = true
	far := c.far
	c.mu.Unlock()
	c.in.Conn.Close()
	if far != nil {
		far.Close()
	}
}

func (c *conn) expire() {
	if time.Since(c.start) >= c.srv.opts.Limits.Total {
		c.end(ReasonTotal)
		return
	}
	c.end(ReasonIdle)
}

// join notes the far side, so that end reaches it. It reports false if the connection has ended meanwhile.
func (c *conn) join(far net.Conn, again func() bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.far, c.again = far, again
	return !c.ended
}

// rejudge ends a tunnel that the rules of now refuse.
func (c *conn) rejudge() {
	c.mu.Lock()
	again := c.again
	c.mu.Unlock()
	if again != nil && !again() {
		c.end(ReasonReloaded)
	}
}

// stillAllowed asks the rules of now about an open tunnel: its target, and the address it goes to.
func (c *conn) stillAllowed(t egress.Target, far net.Conn) bool {
	rules := c.rules()
	policy := rules.Dialer.Policy
	if !policy.Decide(t, nil).Allowed || rules.Broker.HidesFrom(rules.Name, t) {
		return false
	}
	a, ok := far.RemoteAddr().(*net.TCPAddr)
	if !ok || c.srv.opts.Chain != nil {
		return true
	}
	at := literal(netip.AddrPortFrom(a.AddrPort().Addr().WithZone(""), t.Port()))
	return policy.Decide(at, nil).Reason != egress.ReasonDenied
}

// recovered keeps a fault in a goroutine of the connection from costing more than the connection.
func (c *conn) recovered(err *error) {
	if p := recover(); p != nil {
		c.panicked(p)
		*err = errPanic
	}
}

var errPanic = errors.New("a fault of the proxy")

func (c *conn) panicked(p any) {
	// The value may hold what a client sent; where it happened is enough.
	c.srv.log.LogAttrs(c.ctx, slog.LevelError, "egress panic", slog.Uint64("conn", c.id), slog.String("type", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
	c.end(ReasonPanic)
}

// serve finds the protocol and speaks it.
func (c *conn) serve() {
	if peer := c.rules().Peer; peer != nil {
		t, ok := c.in.Conn.(*tls.Conn)
		if !ok || t.HandshakeContext(c.ctx) != nil {
			c.note(ReasonLogin)
			return
		}
		name, ok := peer(t.ConnectionState())
		if !ok || !c.become(name) {
			c.note(c.decide(question{reason: ReasonLogin}))
			return
		}
	}
	if t, ok := c.bareTCP(); ok {
		c.proto = ProtocolTCP
		c.tunnel(t, opener{granted: func() bool { return true }, refused: func(egress.Reason) {}, failed: c.tlsFailed})
		return
	}
	if !c.firstByte() {
		return
	}
	switch detect(c.in.buffered()[0]) {
	case protoHTTP:
		c.proto = ProtocolHTTP
		h := session{c: c}
		if c.trans != nil {
			h.original, h.fixed = c.originalTarget()
		}
		h.run()
	case protoSOCKS5:
		c.proto = ProtocolSOCKS5
		c.socks5()
	case protoSOCKS4:
		c.proto = ProtocolSOCKS5
		c.note(c.decide(question{reason: ReasonUnsupported}))
		c.write(socks4Refused)
		c.goodbye()
	case protoTLS:
		c.proto = ProtocolTLS
		c.bareTLS()
	default:
		c.note(c.decide(question{reason: ReasonMalformed}))
	}
}

// silentPart is the part of the time for a head in which a transparent connection to an address that no rule names has to speak:
// programs whose protocol names a host do so at once, and others would wait for a far side that is never dialled.
const silentPart = 4

// firstByte waits for a client to speak.
func (c *conn) firstByte() bool {
	var unlisted question // what is refused if it does not
	if c.trans != nil {
		if ap, given := c.originalTarget(); !given.IsValid() {
			unlisted.target = literal(ap)
			unlisted.reason = c.rules().Dialer.Policy.Decide(unlisted.target, nil).Reason
		}
	}
	if unlisted.reason != "" {
		_ = c.in.Conn.SetReadDeadline(time.Now().Add(c.srv.opts.Limits.HeadTime / silentPart))
		defer c.in.Conn.SetReadDeadline(noDeadline)
	}
	err := c.in.need(1)
	switch {
	case err == nil:
		return true
	case unlisted.reason != "" && err != io.EOF:
		c.note(c.decide(unlisted))
	default:
		c.lost(err)
	}
	return false
}

// lost notes why a client that was expected to speak did not.
func (c *conn) lost(err error) {
	if err == io.EOF {
		c.note(ReasonDone)
		return
	}
	c.note(ReasonBroken)
}

// originalTarget is where a transparent connection was meant to go: the address, and the target it stands for if it was given
// out for a name.
func (c *conn) originalTarget() (netip.AddrPort, egress.Target) {
	ap, name := c.trans.original(c.in.Conn)
	if name == "" {
		return ap, egress.Target{}
	}
	t, err := egress.NewTarget(name, ap.Port())
	if err != nil {
		return ap, egress.Target{}
	}
	return ap, t
}

// bareTCP finds the target of a transparent connection that cannot wait for the client to name its host: on a port where the far
// side may have to speak first, what the address stands for, or the address itself where the rules name it; and an address that is
// refused whatever the client may say.
func (c *conn) bareTCP() (egress.Target, bool) {
	if c.trans == nil {
		return egress.Target{}, false
	}
	ap, given := c.originalTarget()
	policy := c.rules().Dialer.Policy
	named := ap.Port() == httpPort || ap.Port() == tlsPort // by SNI or Host
	if given.IsValid() {
		return given, !named && (policy.Decide(given, nil).Allowed || !policy.DecideSome(given).Allowed)
	}
	t := literal(ap)
	if policy.Decide(t, nil).Allowed {
		return t, !named
	}
	// No rule has a host on this port, be it by the way of a credential.
	return t, !policy.AllowsPort(ap.Port()) && !(ap.Port() == httpPort && policy.AllowsPort(tlsPort))
}

// write sends to the client what is not a message's body.
func (c *conn) write(p []byte) bool {
	if _, err := c.in.Conn.Write(p); err != nil {
		c.note(ReasonBroken)
		return false
	}
	return c.movedDn(len(p)) == nil
}

// goodbye lets the client read the last words before the connection closes: closing on what it still sends would discard them.
func (c *conn) goodbye() {
	if closeWrite(c.in.Conn) != nil {
		return
	}
	c.guard.begin(goodbyeTime)
	_, _ = io.Copy(io.Discard, onlyReader{c.in.Conn})
}
