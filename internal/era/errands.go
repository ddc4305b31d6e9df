package era

import (
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// maxErrands bounds the bridge's own questions that a server has not answered: one that answers none is asked no more.
const maxErrands = 4096

// errands are those questions: what to do with the answer, by their id.
type errands map[string]func(jsonrpc.Message)

// ask asks a server something. Where it answers nothing, answered is called at once, as with an error of its.
func (e errands) ask(b *Bridge, method string, params strictjson.Value, answered func(jsonrpc.Message)) {
	id := jsonrpc.RandomID()
	if len(e) >= maxErrands {
		answered(failure(id, jsonrpc.CodeInternal, "the server answers nothing"))
		return
	}
	e[id.Key()] = answered
	b.toServer(request(id, method, params))
}

// answer takes the answer to one. false: it is to something else.
func (e errands) answer(m jsonrpc.Message) bool {
	answered := e[m.ID.Key()]
	delete(e, m.ID.Key())
	if answered != nil {
		answered(m)
	}
	return answered != nil
}
