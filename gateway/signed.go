package gateway

import (
	"time"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// userMeta is where an agent host puts what the user said, signed with a key that the agent does not have:
//
//	"_meta": {"hearsay/user": {"text": "…", "signature": "v1.1700000000.…"}}
const userMeta = "hearsay/user"

// hearSigned takes what the user said out of a request. Words with a good signature count as the user's; others count for
// nothing, and are told to the log. No server gets to see them.
func (s *session) hearSigned(params strictjson.Value) (strictjson.Value, error) {
	said := params.Get("_meta").Get(userMeta)
	if said.Kind() == strictjson.KindAbsent {
		return params, nil
	}
	params = withoutWords(params)
	if s.g.opt.UserKey == nil {
		s.log.Warn("a client sends the user's words, and no key to check them is configured")
		return params, nil
	}
	o, err := gate.VerifyWords(s.g.opt.UserKey, s.who, said.Get("text").Str(), said.Get("signature").Str(), time.Now())
	if err != nil {
		s.log.Warn("what a client sends as the user's words does not count", "why", err)
		return params, nil
	}
	_, err = s.authority.read(o)
	return params, err
}

// withoutWords takes what the user said out of what goes to a server beside the request that brought it: a list that is read first,
// what a server is told again when it starts again, a notification.
func withoutWords(params strictjson.Value) strictjson.Value {
	meta := params.Get("_meta")
	if meta.Get(userMeta).Kind() == strictjson.KindAbsent {
		return params
	}
	return params.With("_meta", meta.Without(userMeta))
}
