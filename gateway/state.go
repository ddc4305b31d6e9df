package gateway

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// From 2026-07-28 on a call that needs more is answered with a requestState, and comes again with it. Whoever could bring it
// with another call, to another server, or as another client, would go on with what was begun elsewhere. So the client gets it
// sealed, together with what it belongs to. It lasts as long as the gateway runs.

// boundState begins the requestState that a client gets for a server's.
const boundState = "hearsay-state:"

// newSeal makes the seal of one gateway, with a key that nobody else has.
func newSeal() (cipher.AEAD, error) {
	key := make([]byte, 32)
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// subject names what a state belongs to: whose it is, the server, and the call, byte for byte but for the order of members; or
// the task, which is asked for and answered by several methods.
func (s *session) subject(up *upstream, about About, arguments strictjson.Value, task string) []byte {
	whose := "session " + s.id
	if s.who != "" {
		whose = "principal " + s.who
	}
	parts := []string{whose, up.name(), about.Method, about.Name, about.URI, string(Canonical(nil, arguments))}
	if task != "" {
		parts = []string{whose, up.name(), "task", task}
	}
	var subject []byte
	for _, part := range parts {
		subject = append(binary.BigEndian.AppendUint64(subject, uint64(len(part))), part...)
	}
	return subject
}

// bind seals the state of an answer, if it carries one.
func (s *session) bind(f *flight, up *upstream, about About, result strictjson.Value) strictjson.Value {
	state := result.Get("requestState")
	if f.version < modernVersion || state.Kind() != strictjson.KindString {
		return result
	}
	task := f.task()
	if result.Get("resultType").Str() == "task" {
		task = result.Get("taskId").Str()
	}
	sealed := s.g.seal.Seal(nil, nil, []byte(state.Str()), s.subject(up, about, f.Params.Get("arguments"), task))
	return result.With("requestState", strictjson.String(boundState+base64.RawURLEncoding.EncodeToString(sealed)))
}

// unbind gives a call the state that the server knows. One that was altered, or that another call, server or client got, is
// refused, and so is one that nobody got. The answer to a question of the gateway's own is taken out, see [session.cameBack].
func (s *session) unbind(f *flight, up *upstream, about About, params strictjson.Value) (rest, failure strictjson.Value) {
	state := params.Get("requestState")
	if f.version < modernVersion || state.Kind() == strictjson.KindAbsent {
		return params, failure
	}
	if strings.HasPrefix(state.Str(), askState) && f.Method == "tools/call" {
		return s.cameBack(f, up, about, params), failure
	}
	text, bound := strings.CutPrefix(state.Str(), boundState)
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if bound && err == nil {
		if plain, err := s.g.seal.Open(nil, nil, sealed, s.subject(up, about, f.Params.Get("arguments"), f.task())); err == nil {
			return params.With("requestState", strictjson.String(string(plain))), failure
		}
	}
	s.record(audit.Event{Kind: audit.Refusal, Server: up.name(), Tool: about.label(), Answer: "deny", Reason: "state"})
	return params, ownError(jsonrpc.CodeInvalidParams, "the requestState is not one that this call was answered with; make the call again without it")
}

// task is the task that a request is about; "" for none.
func (f *flight) task() string {
	if !strings.HasPrefix(f.Method, "tasks/") {
		return ""
	}
	return f.Params.Get("taskId").Str()
}
