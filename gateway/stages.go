package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// serve takes one request of the client through all stages, in the order that keeps the promises: what was judged is what is
// sent; the decision is recorded before it takes effect; authority shrinks before the text that shrinks it leaves. The first
// stage, reading strictly, is behind it (jsonrpc), so is the table of methods (hear).
func (s *session) serve(f *flight) {
	// 2 Which server, under which name it knows the thing asked for. Some requests are for the gateway itself.
	if s.several != nil && f.Method != "tools/call" {
		f.away()
	}
	if s.own(f) {
		return
	}
	up, params, about, failure := s.route(f)
	if failure.Kind() != strictjson.KindAbsent {
		s.finish(f, strictjson.Value{}, failure)
		return
	}

	if id := f.task(); id != "" && !s.ownsTask(up, id) { // the server says that there is no such task, as its version has it
		params = params.With("taskId", strictjson.String(rand.Text()))
	}

	// 3 Is what is asked for still what a person approved?
	if err := up.pinned(f, about); err != nil {
		s.record(audit.Event{Kind: audit.Refusal, Server: up.name(), Tool: about.label(), Answer: "deny", Reason: "pin", Text: err.Error()})
		s.refuse(f, err.Error())
		return
	}

	// What the user said, where the agent's host signed it.
	params, err := s.hearSigned(params)
	if err != nil {
		s.log.Error("keeping what the user said", "why", err)
		s.refuse(f, errNotRecorded.Error())
		return
	}

	// The state of a call that goes on must be of this very call.
	if params, failure = s.unbind(f, up, about, params); failure.Kind() != strictjson.KindAbsent {
		s.finish(f, strictjson.Value{}, failure)
		return
	}

	// 4, 5 May it happen? The decision is on record before anything is sent.
	if f.Method == "tools/call" {
		reason, later := s.decide(f, up, about, params)
		if reason != "" {
			s.refuse(f, reason)
			return
		}
		if later.Kind() != strictjson.KindAbsent {
			s.finish(f, later, strictjson.Value{})
			return
		}
	}

	// 6 Send what was judged: params as they were read, with names and tokens of our own.
	link, err := f.reach(up)
	if err != nil {
		s.fail(f, up, nil, err)
		return
	}
	if f.call, err = link.peer.Open(f); err != nil {
		s.fail(f, up, nil, err)
		return
	}
	params = f.tokened(params)
	var answered func(jsonrpc.Message, error)
	answered = func(m jsonrpc.Message, err error) { // 7 read strictly, bounded, matched by its id
		if err != nil {
			s.fail(f, up, link, err)
			return
		}
		if m.Own {
			s.unanswered(f, up, m.Error)
			return
		}
		if f.unmirrored(up, m) {
			go s.again(f, up, link, about, params, m, answered)
			return
		}
		link.answered(f, about, m)

		// 8, 9, 10 Screen each text and frame it; take from the session's authority what reading it costs.
		var t Treated
		f.single = m.Result.Get("content").Len() == 1
		f.failed = m.Error.Kind() != strictjson.KindAbsent || m.Result.Get("isError").Bool()
		if m.Error.Kind() != strictjson.KindAbsent {
			t = up.treat.Error(about, m.Error)
			up.rememberElicitations(t.Value)
		} else {
			result, out := up.book.show(f.Method, s.ownOnly(f, up, m.Result))
			up.tellWithheld(out)
			t = up.treat.Result(about, result)
			s.mentioned(up, t.Value)
		}
		if err := s.observe(up, about, t, m.Result); err != nil {
			s.refuse(f, "This answer is withheld: what reading it costs could not be recorded.")
			return
		}
		if t.Refused != nil {
			s.record(audit.Event{Kind: audit.Refusal, Server: up.name(), Tool: about.label(), Reason: "treatment", Text: t.Refused.Error()})
			s.refuse(f, t.Refused.Error())
			s.halted(f, up, about)
			return
		}

		// 11 On record, and out.
		s.record(audit.Event{Kind: audit.Result, Server: up.name(), Tool: about.label(), Detail: t.detail(time.Since(f.started))})
		if m.Error.Kind() != strictjson.KindAbsent {
			s.finish(f, strictjson.Value{}, t.Value)
		} else {
			s.finish(f, s.outgoing(f, up, about, f.saw(t.Value)), strictjson.Value{})
		}
	}
	select {
	case <-f.turn: // requests reach the server in the order the client sent them
	default:
		f.away()
		select {
		case <-f.turn:
		case <-f.ctx.Done():
		}
	}
	s.watch(f, up.CallTimeout, func() {
		if f.sentAs().Forget() {
			s.fail(f, up, link, f.ctx.Err())
		}
	})
	inline := func(m jsonrpc.Message, err error) {
		if m.Result.Size() > maxInline { // the server's next answer is read meanwhile
			go answered(m, err)
		} else {
			answered(m, err)
		}
	}
	f.call.Waits = f.away // for a server that reads slowly, or whose era is not known yet
	if err := f.call.Send(f.ctx, f.Method, params, inline, f.Extra...); err != nil {
		s.fail(f, up, link, err)
	}
	f.passTurn()
}

// record writes one event of this session to the audit log, if there is one.
func (s *session) record(e audit.Event) error {
	if s.g.opt.Count != nil {
		s.g.opt.Count(e)
	}
	if s.g.opt.Audit == nil {
		return nil
	}
	e.Session, e.Principal = s.id, s.who
	var err error
	if e.Kind == audit.Decision || e.Kind == audit.Approval || e.Kind == audit.Refusal || e.Kind == audit.Taint {
		err = s.g.opt.Audit.Append(e) // durable before it takes effect
	} else {
		err = s.g.opt.Audit.Note(e)
	}
	if err != nil {
		s.log.Error("writing the audit log", "why", err)
	}
	return err
}

// fail answers a request that the server does not, and gives up at the server what the client gave up.
func (s *session) fail(f *flight, up *upstream, link *link, err error) {
	cause := context.Cause(f.ctx)
	cancelled, byClient := cause.(errCancelled)
	if f.ctx.Err() != nil && link != nil && f.Method != "initialize" { // which must not be cancelled
		params := cancelled.params
		if !byClient {
			params = strictjson.Object(strictjson.Member{Name: "reason", Value: strictjson.String(cause.Error())})
		}
		link.notify("notifications/cancelled", params.With("requestId", f.sentAs().ID.Value()), nil)
	}
	switch bad := (*jsonrpc.BadMessage)(nil); {
	case byClient, errors.Is(cause, errClientGone):
		s.close(f, nil)
		return
	case errors.Is(cause, errTimeout):
		err = fmt.Errorf("server %s did not answer within %v", up.name(), up.CallTimeout)
	case errors.As(err, &bad):
		err = fmt.Errorf("the answer of server %s is refused: %w", up.name(), bad.Err)
	case errors.Is(err, jsonrpc.ErrStuck):
		err = fmt.Errorf("server %s does not read what it is sent", up.name())
	case errors.Is(err, jsonrpc.ErrClosed):
		err = fmt.Errorf("server %s ended before it answered; the next call starts it again", up.name())
	}
	s.log.Warn("a call failed", "server", up.name(), "method", f.Method, "why", err)
	s.record(audit.Event{Kind: audit.Result, Server: up.name(), Tool: f.Method, Reason: "failed", Text: err.Error()})
	s.finish(f, strictjson.Value{}, ownError(jsonrpc.CodeInternal, "%v", err))
}

// unanswered answers a request in the words of what stands before the server. They are no text of the server's: nothing is framed, and
// nothing of the session's authority is lost.
func (s *session) unanswered(f *flight, up *upstream, failure strictjson.Value) {
	why := failure.Get("message").Str()
	s.log.Warn("a call failed", "server", up.name(), "method", f.Method, "why", why)
	s.record(audit.Event{Kind: audit.Result, Server: up.name(), Tool: f.Method, Reason: "failed", Text: why})
	s.finish(f, strictjson.Value{}, failure.With("message", strictjson.String("hearsay: server "+up.name()+": "+why)))
}

// refuse answers a request that is not passed on, or whose answer is not.
func (s *session) refuse(f *flight, why string) {
	result, failure := refusal(f, why)
	s.finish(f, result, failure)
}

// finish answers the client, once.
func (s *session) finish(f *flight, result, failure strictjson.Value) {
	s.close(f, func() { s.reply(f.ID, result, failure) })
}
