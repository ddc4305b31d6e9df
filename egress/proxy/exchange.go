package proxy

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// maxInterim bounds the 1xx answers before a final one.
const maxInterim = 16

// bodyGrace is how long an answer waits for the end of the request's body to be noticed, which the far side may have seen
// before this goroutine. Without it every second upload would cost its connection.
const bodyGrace = 10 * time.Millisecond

// sending is a request body on its way up, when it does not fit beside its head.
type sending struct {
	done chan struct{} // closed when err is set
	err  error
}

func (s *sending) over() bool {
	if s == nil {
		return true
	}
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// exchange sends one judged request on and brings the answer back. u is a kept connection or nil.
func (h *session) exchange(p plan, u *upstream) bool {
	c := h.c
	c.guard.begin(c.srv.opts.Limits.Idle)
	out, mask := h.appendRequest(h.up.out[:0], p)
	h.up.out = out
	whole := p.framing.kind == bodyNone
	if p.framing.kind == bodySized && int64(len(c.in.buffered())) >= p.framing.length {
		out = append(out, c.in.buffered()[:p.framing.length]...)
		c.in.discard(int(p.framing.length))
		h.up.out = out
		whole = true
	}
	if p.cred != nil {
		defer func() { clear(h.up.out[:cap(h.up.out)]) }() // no secret stays in a buffer
	}
	for {
		kept := u != nil
		if u == nil {
			var r egress.Reason
			if u, r = h.dial(p); r != "" {
				return h.refuse(r, !whole || !p.keep)
			}
		}
		if !c.join(u.Conn, nil) {
			u.Close()
			return false
		}
		var job *sending
		var err error
		if whole {
			if err = c.movedUp(len(out)); err == nil {
				_, err = u.Conn.Write(out)
			}
		} else {
			job = h.send(u, p.framing)
		}
		if err == nil {
			var raw []byte
			if raw, err = u.readHead(c.srv.opts.Limits.Head); err == nil {
				return h.answer(p, u, job, raw, mask)
			}
		}
		again := kept && whole && p.repeatable && !errors.Is(err, errBytes) && len(u.buffered()) == 0 && !isMalformed(err)
		u.Close()
		if job != nil {
			h.stopSending(job)
		}
		if !c.join(nil, nil) || errors.Is(err, errBytes) {
			return false
		}
		if again { // the far side had closed it meanwhile
			u = nil
			continue
		}
		return h.failed(p, job, err)
	}
}

// send starts the body of a request on its way. Until it is done, the client is read by nobody else.
func (h *session) send(u *upstream, f framing) *sending {
	job := &sending{done: make(chan struct{})}
	h.up.dst, h.up.chunked = u.Conn, f.kind == bodyChunked
	h.c.crew.do(func() {
		defer close(job.done)
		defer h.c.recovered(&job.err)
		if job.err = h.c.movedUp(len(h.up.out)); job.err == nil {
			job.err = h.up.flush()
		}
		if job.err == nil {
			job.err = copyBody(&h.up, &h.c.in, f)
		}
		if errors.As(job.err, new(readError)) || errors.Is(job.err, errBytes) {
			abort(u.Conn) // the client broke off or sent what is no body: the far side must not take it for whole
		}
	})
	return job
}

// stopSending waits for a body that has nowhere to go.
func (h *session) stopSending(job *sending) {
	_ = h.c.in.Conn.SetReadDeadline(longAgo)
	<-job.done
	_ = h.c.in.Conn.SetReadDeadline(noDeadline)
}

// failed answers a request that brought no well-formed answer.
func (h *session) failed(p plan, job *sending, err error) bool {
	reason := ReasonUnreachable
	if isMalformed(err) {
		reason = ReasonBadAnswer
	}
	if job != nil && isMalformed(job.err) {
		return h.refuse(h.c.decide(question{target: p.target, method: p.method, reason: ReasonMalformed}), true)
	}
	return h.refuse(reason, job != nil || !p.keep)
}

// answer brings the far side's answer to the client. raw is its first head.
func (h *session) answer(p plan, u *upstream, job *sending, raw []byte, mask *broker.Mask) bool {
	c := h.c
	interim := 0
	for {
		err := h.resp.parseResponse(raw)
		if err == nil && h.resp.status == 101 && !p.upgrade {
			err = errSwitch
		}
		if err != nil {
			return h.giveUp(p, u, job, err)
		}
		if h.resp.status >= 200 || h.resp.status == 101 {
			break
		}
		if interim++; interim > maxInterim {
			return h.giveUp(p, u, job, errStartLine)
		}
		if !p.old && (h.resp.status != 100 || p.expects) {
			if !c.write(h.appendAnswer(h.down.out[:0], p, framing{}, false, mask)) {
				return h.giveUp(p, u, job, io.ErrClosedPipe)
			}
		}
		if raw, err = u.readHead(c.srv.opts.Limits.Head); err != nil {
			return h.giveUp(p, u, job, err)
		}
	}
	if h.resp.status == 101 {
		h.switched(p, u, mask)
		return false
	}
	f := h.resp.responseFraming(p.toHEAD)
	if job != nil {
		select {
		case <-job.done:
		case <-time.After(bodyGrace):
		}
	}
	keep := p.keep && f.kind != bodyUntilClose && job.over()
	keepFar := h.resp.minor == 1 && !h.resp.closes && f.kind != bodyUntilClose
	h.down.chunked = f.kind == bodyChunked && !p.old
	h.down.mask = mask
	h.down.out = h.appendAnswer(h.down.out[:0], p, f, !keep, mask)
	err := c.movedDn(len(h.down.out))
	if err == nil {
		err = copyBody(&h.down, &u.stream, f)
	}
	h.down.out, h.down.mask = h.down.out[:0], nil
	if err != nil {
		c.note(ReasonBroken)
		abort(u.Conn)
		abort(c.in.Conn) // a clean end would make half an answer look whole
		if job != nil {
			<-job.done
		}
		return false
	}
	if job != nil {
		if !job.over() {
			keep = false
			u.Close()
			h.stopSending(job)
		}
		if job.err != nil {
			keep, keepFar = false, false
		}
	}
	c.join(nil, nil)
	if keepFar && len(u.buffered()) == 0 && keep {
		h.keep(u)
	} else {
		u.Close()
	}
	if !keep {
		c.note(ReasonDone)
		c.goodbye()
	}
	return keep
}

// giveUp ends an exchange whose answer never became one.
func (h *session) giveUp(p plan, u *upstream, job *sending, err error) bool {
	u.Close()
	if job != nil {
		h.stopSending(job)
	}
	if !h.c.join(nil, nil) {
		return false
	}
	return h.failed(p, job, err)
}

// switched joins client and far side after 101.
func (h *session) switched(p plan, u *upstream, mask *broker.Mask) {
	c := h.c
	if !fold(h.resp.upgrade, "websocket") || mask != nil && h.resp.extends() {
		h.giveUp(p, u, nil, errSwitch)
		return
	}
	defer u.Close()
	rules, target, request := c.room, p.target, p.request
	if !c.join(u.Conn, func() bool { return rules.rules.Load().Dialer.Policy.Decide(target, request).Allowed }) {
		return
	}
	out := h.appendAnswer(h.down.out[:0], p, framing{}, false, mask)
	h.down.out = nil
	var firstDown func() error
	if mask == nil {
		out = append(out, u.buffered()...)
		u.discard(len(u.buffered()))
		u.release()
	} else {
		firstDown = func() error {
			err := (&frames{c: c, in: &u.stream, mask: mask}).run()
			if err == errFrame {
				c.note(ReasonBadAnswer)
			}
			return err
		}
	}
	if !c.write(out) {
		return
	}
	_ = c.pump(u.Conn, func() error { return c.flushTo(u.Conn) }, firstDown)
}

// appendAnswer writes a response head anew.
func (h *session) appendAnswer(out []byte, p plan, f framing, closing bool, mask *broker.Mask) []byte {
	q := &h.resp
	out = appendStatus(out, q.status, maskWhole(mask, q.reason))
	for _, fl := range q.fields {
		switch fl.known {
		case hOther, hVia, hTrailer, hAuthorization, hAcceptEncoding, hHost, hExpect:
		default:
			continue
		}
		if len(q.dropped) > 0 && q.drops(fl.name) {
			continue
		}
		out = appendField(out, fl.name, maskWhole(mask, fl.value))
	}
	switch {
	case q.status == 101:
		out = append(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n"...)
	case q.status < 200 || q.status == 204:
	case f.kind == bodyChunked:
		if !p.old {
			out = append(out, "Transfer-Encoding: chunked\r\n"...)
		}
	case q.length >= 0:
		out = appendLength(out, q.length)
	}
	if closing && q.status >= 200 {
		out = append(out, "Connection: close\r\n"...)
	}
	return h.c.appendVia(out)
}

func maskWhole(m *broker.Mask, v []byte) []byte {
	if m == nil {
		return v
	}
	return m.Whole(v)
}

func appendLength(out []byte, n int64) []byte {
	out = append(out, "Content-Length: "...)
	out = strconv.AppendInt(out, n, 10)
	return append(out, '\r', '\n')
}

// hasVia reports whether a message has been through the proxy of this name.
func (h *head) hasVia(name string) bool {
	for _, f := range h.fields {
		if f.known == hVia && bytes.Contains(f.value, []byte(name)) {
			return true
		}
	}
	return false
}
