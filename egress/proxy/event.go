package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

// Kind says what an [Event] tells of.
type Kind string

// Kinds of event.
const (
	KindDecision Kind = "decision" // somewhere was asked for
	KindClosed   Kind = "closed"   // a client's connection has ended
)

// Event is one line of the log and of the audit record. It holds no path, header or body.
type Event struct {
	Kind     Kind
	Conn     uint64 // the client's connection, counted from 1
	Client   string
	Protocol Protocol
	Target   egress.Target // zero if none could be read
	Method   string        // of a plain HTTP request

	// Of a decision.
	Allowed bool
	Report  bool // allowed only since the policy is report-only
	Rule    string
	Addrs   []netip.Addr // what the target resolved to, if it came to that
	Class   egress.Class // of the address that refused, in a refusal
	Stamped bool         // a credential goes with it

	// Reason is why it was refused, or why the connection ended.
	Reason egress.Reason

	// Of a closed connection.
	Up, Down int64 // bytes from the client to the far side, and back
	Duration time.Duration
}

// Protocol is how a client asked.
type Protocol string

// Protocols of an [Event].
const (
	ProtocolUnknown Protocol = "unknown"
	ProtocolConnect Protocol = "connect"
	ProtocolHTTP    Protocol = "http"
	ProtocolSOCKS5  Protocol = "socks5"
	ProtocolTLS     Protocol = "tls" // transparent
	ProtocolTCP     Protocol = "tcp" // transparent, on a port where anything may be spoken
	ProtocolDNS     Protocol = "dns"
)

// Reasons of this package, beside those of [egress].
const (
	ReasonMalformed   egress.Reason = "malformed"         // what the client sent is not well-formed
	ReasonTooLarge    egress.Reason = "head-too-large"    // a head over the limit
	ReasonUnsupported egress.Reason = "unsupported"       // a form, scheme or command that is not served
	ReasonLogin       egress.Reason = "login"             // user, password or certificate missing or wrong
	ReasonLimit       egress.Reason = "limit"             // the client's connections or bytes are used up
	ReasonLoop        egress.Reason = "loop"              // the request has been through here already
	ReasonHost        egress.Reason = "host-mismatch"     // Host is not the tunnel's or the address's host
	ReasonName        egress.Reason = "name-mismatch"     // the TLS server name is not the target's
	ReasonNoName      egress.Reason = "no-server-name"    // a ClientHello without one
	ReasonEncrypted   egress.Reason = "encrypted-hello"   // a ClientHello with an encrypted one in it
	ReasonNotTLS      egress.Reason = "not-tls"           // something else where TLS has to be
	ReasonCredential  egress.Reason = "credential-host"   // a tunnel to a host whose credential is stamped on plain HTTP
	ReasonRecord      egress.Reason = "not-recorded"      // the decision could not be written down
	ReasonUnreachable egress.Reason = "unreachable"       // allowed, but no connection came about
	ReasonBadAnswer   egress.Reason = "bad-answer"        // the far side's answer is not well-formed
	ReasonDone        egress.Reason = "done"              // both sides ended in order
	ReasonBroken      egress.Reason = "broken"            // a side was reset or vanished
	ReasonIdle        egress.Reason = "idle"              // nothing moved for too long, or a head took too long
	ReasonTotal       egress.Reason = "total-time"        // open for too long
	ReasonStopped     egress.Reason = "stopped"           // the proxy stops
	ReasonReloaded    egress.Reason = "refused-by-reload" // new rules refuse an open tunnel
	ReasonPanic       egress.Reason = "panic"             // a fault of the proxy, which cost this connection alone
)

// emit writes an event down and reports whether that worked.
func (s *Server) emit(e Event) bool {
	attrs := make([]slog.Attr, 0, 14)
	attrs = append(attrs, slog.Uint64("conn", e.Conn), slog.String("client", e.Client), slog.String("protocol", string(e.Protocol)))
	if e.Target.IsValid() {
		attrs = append(attrs, slog.String("target", e.Target.String()))
	}
	if e.Method != "" {
		attrs = append(attrs, slog.String("method", e.Method))
	}
	level := slog.LevelInfo
	if e.Kind == KindDecision {
		attrs = append(attrs, slog.Bool("allowed", e.Allowed))
		if e.Report {
			attrs = append(attrs, slog.Bool("report_only", true))
		}
		if e.Rule != "" {
			attrs = append(attrs, slog.String("rule", e.Rule))
		}
		if len(e.Addrs) > 0 {
			attrs = append(attrs, slog.Any("addrs", e.Addrs))
		}
		if e.Class != (egress.Class{}) {
			attrs = append(attrs, slog.String("class", e.Class.String()))
		}
		if e.Stamped {
			attrs = append(attrs, slog.Bool("stamped", true))
		}
		if !e.Allowed || e.Report {
			level = slog.LevelWarn
		}
	} else {
		attrs = append(attrs, slog.Int64("up", e.Up), slog.Int64("down", e.Down), slog.Duration("duration", e.Duration))
	}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", string(e.Reason)))
	}
	if h := s.log.Handler(); h.Enabled(context.Background(), level) { // without the logger, which looks for its caller on the stack
		r := slog.NewRecord(time.Now(), level, "egress "+string(e.Kind), 0)
		r.AddAttrs(attrs...)
		_ = h.Handle(context.Background(), r)
	}
	s.meter.event(e)
	if s.opts.Record == nil {
		return true
	}
	if err := s.opts.Record(e); err != nil {
		s.log.LogAttrs(context.Background(), slog.LevelError, "egress record", slog.Uint64("conn", e.Conn), slog.String("error", err.Error()))
		return false
	}
	return true
}

// reasonOf says which refusal an error of the egress package is, and what is known of it.
func reasonOf(err error) (reason egress.Reason, rule string, class egress.Class) {
	var denied *egress.DeniedError
	var target *egress.TargetError
	var unresolved *egress.ResolveError
	switch {
	case errors.As(err, &denied):
		return denied.Reason, denied.Rule, denied.Class
	case errors.As(err, &target):
		return target.Reason, "", egress.Class{}
	case errors.As(err, &unresolved):
		return unresolved.Reason, "", egress.Class{}
	}
	return ReasonUnreachable, "", egress.Class{}
}
