package gateway

import (
	"slices"

	"github.com/seed-4e9f7b04/hearsay/internal/era"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// What a gateway in front of several servers answers itself to a client of 2026-07-28. Such a client opens no session: each
// request says in its _meta what version it is in, who makes it and what the client can, and reaches a server with that.

// severalVersions are the versions that are spoken with clients of several servers, the newest first.
var severalVersions = era.Versions()

// spoken is the list of them.
func spoken() strictjson.Value {
	var list []strictjson.Value
	for _, v := range severalVersions {
		list = append(list, strictjson.String(v))
	}
	return strictjson.Array(list...)
}

// codeUnsupportedVersion is MCP's code for a version that is not spoken.
const codeUnsupportedVersion = -32022

// misplaced says why a request is not served at all: it is in no version that is spoken, says nothing of what its client can, or
// belongs to the other era than what came before. A session is of one era: a server that was greeted knows its client already,
// and one that was not has to be told.
func (s *session) misplaced(f *flight) strictjson.Value {
	hello := s.hellos().Kind() != strictjson.KindAbsent
	meta := f.Params.Get("_meta")
	s.several.mu.Lock()
	defer s.several.mu.Unlock()
	switch {
	case f.Method == "initialize" && s.several.modern:
		return ownError(jsonrpc.CodeInvalidRequest, "initialize comes too late: requests of %s were served", modernVersion)
	case f.Method == "initialize":
	case meta.Get(metaVersion).Kind() == strictjson.KindAbsent && f.Method == "server/discover":
		return ownError(jsonrpc.CodeInvalidParams, "params._meta lacks %s", metaVersion)
	case f.version < modernVersion && !hello:
		return ownError(jsonrpc.CodeInvalidRequest, "the session has not been initialized")
	case f.version < modernVersion:
	case hello:
		return ownError(jsonrpc.CodeInvalidRequest, "the session was initialized, and is not of %s", modernVersion)
	case !slices.Contains(severalVersions, f.version):
		return jsonrpc.NewError(codeUnsupportedVersion, "hearsay: the protocol version is not supported", strictjson.Object(
			strictjson.Member{Name: "supported", Value: spoken()},
			strictjson.Member{Name: "requested", Value: meta.Get(metaVersion)}))
	case meta.Get(metaCapabilities).Kind() != strictjson.KindObject:
		return ownError(jsonrpc.CodeInvalidParams, "params._meta lacks %s", metaCapabilities)
	}
	s.several.modern = s.several.modern || f.version >= modernVersion && f.Method != "server/discover" && f.Method != "initialize"
	return strictjson.Value{}
}

// ownModern answers the requests of 2026-07-28 that are for the gateway.
func (s *session) ownModern(f *flight) bool {
	if f.Method != "server/discover" { // who asks that may go on with initialize
		s.wake()
	}
	switch f.Method {
	case "server/discover":
		s.finish(f, s.discovered(f), strictjson.Value{})
	case "subscriptions/listen":
		s.listen(f)
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list", "tasks/result":
		s.finish(f, strictjson.Value{}, ownError(jsonrpc.CodeMethodNotFound, "%s has no method %s", modernVersion, f.Method))
	default:
		return false
	}
	return true
}

// discovered answers server/discover for all servers together, which start when they are needed: everything is declared.
func (s *session) discovered(f *flight) strictjson.Value {
	return s.ownResult(f,
		strictjson.Member{Name: "supportedVersions", Value: spoken()},
		strictjson.Member{Name: "capabilities", Value: everything(`"extensions":{"io.modelcontextprotocol/tasks":{}}`)})
}

// ownResult makes a result of the gateway's own in the version of the request. What it says may be kept by nobody: the servers
// may say something else a moment later, and to each client something else.
func (s *session) ownResult(f *flight, members ...strictjson.Member) strictjson.Value {
	if f.version < modernVersion {
		return strictjson.Object(members...)
	}
	return strictjson.Object(slices.Concat([]strictjson.Member{{Name: "resultType", Value: strictjson.String("complete")}}, members, []strictjson.Member{
		{Name: "ttlMs", Value: strictjson.Number("0")},
		{Name: "cacheScope", Value: strictjson.String("private")},
		{Name: "_meta", Value: strictjson.Object(strictjson.Member{Name: metaServerInfo, Value: s.g.info()})}})...)
}

const metaServerInfo = "io.modelcontextprotocol/serverInfo"

// asked is the _meta with which the servers are asked on behalf of a request: that of its client, in 2026-07-28, and absent
// before, where each server knows its client.
func (f *flight) asked() strictjson.Value {
	if f.version < modernVersion {
		return strictjson.Value{}
	}
	return f.Params.Get("_meta").Without("progressToken", userMeta)
}
