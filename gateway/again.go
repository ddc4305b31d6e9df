package gateway

import (
	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// codeHeaderMismatch is MCP's code for a request over HTTP whose headers do not say what its body says (2026-07-28).
const codeHeaderMismatch = -32020

// againPages bounds how many pages of a server's tools are read before a call is made again: somebody waits for it. Servers with
// hundreds of tools have a few.
const againPages = 20

// unmirrored says that a server over HTTP refused a call for its headers: which arguments are repeated there is in the tool's
// schema, and that was never read from this server, or has changed. A call is sent again once.
func (f *flight) unmirrored(up *upstream, m jsonrpc.Message) bool {
	code, _ := jsonrpc.ErrorCode(m.Error)
	if code != codeHeaderMismatch || up.Connect == nil || f.Method != "tools/call" || f.version < modernVersion || f.again {
		return false
	}
	f.again = true
	return true
}

// again reads the server's tools anew, as the specification has it, and sends the call a second time. The transport reads from
// the list which arguments the headers repeat. What a person approved still holds: a tool that changed is withheld here too.
// refused is the server's answer to the first, which is the answer where the list cannot be read.
func (s *session) again(f *flight, up *upstream, link *link, about About, params strictjson.Value, refused jsonrpc.Message, answered func(jsonrpc.Message, error)) {
	s.stale(up, "notifications/tools/list_changed")
	err := link.list(f.ctx, PinTool, f.asked(), againPages, func(page strictjson.Value) {
		_, out := up.book.show(PinTool.method(), page)
		up.tellWithheld(out)
	})
	if f.ctx.Err() != nil {
		s.fail(f, up, nil, f.ctx.Err())
		return
	}
	if err != nil {
		answered(refused, nil)
		return
	}
	if err := up.book.refuses(PinTool, about.Name); err != nil {
		s.record(audit.Event{Kind: audit.Refusal, Server: up.name(), Tool: about.label(), Answer: "deny", Reason: "pin", Text: err.Error()})
		s.refuse(f, err.Error())
		return
	}
	call, err := link.peer.Open(f)
	if err != nil {
		s.fail(f, up, link, err)
		return
	}
	f.mu.Lock()
	f.call = call
	f.mu.Unlock()
	if f.ctx.Err() != nil { // whoever gave the call up in between found only the first one
		if call.Forget() {
			s.fail(f, up, nil, f.ctx.Err())
		}
		return
	}
	if err := call.Send(f.ctx, f.Method, f.tokened(params), answered, f.Extra...); err != nil {
		s.fail(f, up, link, err)
	}
}

// sentAs is what the request became at the server.
func (f *flight) sentAs() *jsonrpc.Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.call
}

// tokened gives params the gateway's own progress token, where the client wants progress.
func (f *flight) tokened(params strictjson.Value) strictjson.Value {
	if f.progress.Kind() == strictjson.KindAbsent {
		return params
	}
	return params.With("_meta", params.Get("_meta").With("progressToken", f.sentAs().ID.Value()))
}
