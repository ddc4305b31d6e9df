package proxy

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

const (
	// maxKept bounds the connections kept open for one client connection, which uses them for itself alone: no answer can
	// reach another's request.
	maxKept = 4
	// handshakeTime bounds TLS with a host that a credential is for.
	handshakeTime = 20 * time.Second
)

var (
	longAgo    = time.Unix(1, 0)
	noDeadline time.Time
)

// upstream is a connection to a far side that speaks HTTP.
type upstream struct {
	stream
	target egress.Target
	tls    bool
	gen    uint64 // of the rules it was made under
}

// take returns a kept connection for a request, nil if there is none that still lives.
func (h *session) take(p plan) *upstream {
	gen := h.c.room.gen.Load()
	for i, u := range h.kept {
		if u.target != p.target || u.tls != p.tls {
			continue
		}
		h.kept = append(h.kept[:i], h.kept[i+1:]...)
		if u.gen != gen || !quiet(u.Conn) {
			u.Close()
			return nil
		}
		return u
	}
	return nil
}

// keep puts a connection by for the next request to its target.
func (h *session) keep(u *upstream) {
	u.release()
	if len(h.kept) == maxKept {
		h.kept[0].Close()
		h.kept = append(h.kept[:0], h.kept[1:]...)
	}
	h.kept = append(h.kept, u)
}

// dial connects for a request, over TLS where a credential goes with it.
func (h *session) dial(p plan) (*upstream, egress.Reason) {
	c := h.c
	gen := c.room.gen.Load()
	nc, r := c.open(c.ctx, p.target, p.request)
	if r != "" {
		return nil, r
	}
	u := &upstream{stream: stream{Conn: nc}, target: p.target, tls: p.tls, gen: gen}
	if !p.tls {
		return u, ""
	}
	t := tls.Client(nc, &tls.Config{
		ServerName: p.target.Host(), RootCAs: c.srv.opts.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	})
	ctx, cancel := context.WithTimeout(c.ctx, handshakeTime)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		nc.Close()
		c.srv.log.WarnContext(ctx, "egress unreachable", "conn", c.id, "client", c.name(), "target", p.target.String(), "error", err.Error())
		return nil, ReasonUnreachable
	}
	u.Conn = t
	return u, ""
}
