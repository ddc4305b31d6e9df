package proxy

import (
	"context"
	"net"
	"net/netip"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

// question is what a client asks for, in whichever protocol. Every way in ends at [conn.decide]: there is no other.
type question struct {
	target  egress.Target
	req     *egress.Request // of plain HTTP, nil for a tunnel
	method  string
	reason  egress.Reason // already refused, for a reason the protocol's reader found
	stamped bool          // a credential goes with it

	// opaque marks a tunnel that nothing is stamped in.
	opaque bool
	// requests marks a tunnel whose requests are read and judged one by one: it may be opened if some request could pass.
	requests bool
	// kept marks a request on a connection whose address was judged when it was made.
	kept bool
}

// decide judges, writes the decision down, and only then returns it: "" allows.
func (c *conn) decide(q question) egress.Reason {
	e := Event{
		Kind: KindDecision, Conn: c.id, Client: c.name(), Protocol: c.proto, Target: q.target, Method: q.method, Stamped: q.stamped,
	}
	if q.target.IsValid() {
		c.target = q.target
	}
	c.judge(q, &e)
	if !c.srv.emit(e) && e.Allowed {
		// What cannot be written down is not done.
		e.Allowed, e.Reason = false, ReasonRecord
	}
	if e.Allowed {
		return ""
	}
	return e.Reason
}

func (c *conn) judge(q question, e *Event) {
	rules := c.rules()
	d := rules.Dialer
	switch {
	case q.reason != "":
		e.Reason = q.reason
		return
	case c.over:
		e.Reason = ReasonLimit
		return
	case q.opaque && rules.Broker.HidesFrom(rules.Name, q.target):
		e.Reason = ReasonCredential
		return
	}
	if q.kept || q.requests {
		r := d.Policy.Decide(q.target, q.req)
		e.Allowed, e.Report, e.Rule, e.Reason = r.Allowed, r.Report, r.Rule, r.Reason
		if q.kept {
			return
		}
		if !r.Allowed {
			// Rules for single requests only: each of them is judged when it comes. On port 80 it may go on to another port, where a
			// credential goes with it.
			if r.Reason == egress.ReasonTunnel || d.Policy.DecideSome(q.target).Allowed ||
				r.Reason == egress.ReasonNotAllowed && q.target.Port() == httpPort && d.Policy.DecideName(q.target.Host()).Allowed {
				e.Allowed, e.Reason = true, ""
			}
			return
		}
	}
	x := d.Judge(c.ctx, q.target, q.req)
	c.judged = &x
	e.Allowed, e.Report, e.Rule, e.Reason = x.Allowed, x.Report, x.Rule, x.Reason
	for _, a := range x.Answers {
		e.Addrs = append(e.Addrs, a.Addr)
	}
	if x.Err != nil {
		var rule string
		e.Reason, rule, e.Class = reasonOf(x.Err)
		if rule != "" {
			e.Rule = rule
		}
	}
}

// open connects to a target that decide has allowed, at the addresses it judged. The rules are asked again in it: what they
// refuse by now is a decision of its own.
func (c *conn) open(ctx context.Context, t egress.Target, req *egress.Request) (net.Conn, egress.Reason) {
	d := c.rules().Dialer
	judged := c.judged
	c.judged = nil
	if judged == nil || judged.Target != t { // one more connection for a request that was decided on before
		x := d.Judge(ctx, t, req)
		judged = &x
	}
	var nc net.Conn
	var err error
	if chain := c.srv.opts.Chain; chain != nil && judged.Allowed {
		nc, err = chain.open(ctx, d.Policy, *judged, req)
	} else {
		nc, err = d.Connect(ctx, *judged, req)
	}
	if err == nil {
		return nc, ""
	}
	reason, _, _ := reasonOf(err)
	if reason == ReasonUnreachable {
		c.srv.log.WarnContext(ctx, "egress unreachable", "conn", c.id, "client", c.name(), "target", t.String(), "error", err.Error())
		return nil, reason
	}
	return nil, c.decide(question{target: t, req: req, reason: reason})
}

// literal is the target of a transparent connection that names no host; the zero Target if its address cannot be one.
func literal(ap netip.AddrPort) egress.Target {
	t, err := egress.TargetFrom(ap)
	if err != nil {
		return egress.Target{}
	}
	return t
}
