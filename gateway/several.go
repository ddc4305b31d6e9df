package gateway

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-4e9f7b04/hearsay/internal/era"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// several is what a session keeps where it stands for several servers and answers some requests itself.
type several struct {
	awake sync.Once // the servers that start with the client were started

	mu     sync.Mutex
	modern bool                              // a request of 2026-07-28 was served, so that initialize comes too late
	shelf  map[*upstream]map[shelfKey]*shelf // what each server offers
	claims map[*upstream]*claims             // whose the resources are
	warned map[[2]named]bool                 // look-alikes that were logged
}

func newSeveral() *several {
	return &several{shelf: map[*upstream]map[shelfKey]*shelf{}, claims: map[*upstream]*claims{}, warned: map[[2]named]bool{}}
}

// legacyVersions are the versions with sessions, the newest first.
var legacyVersions = era.Legacy()

// own answers the requests that are for the gateway where it stands for several servers. false: the request is for one of them.
func (s *session) own(f *flight) bool {
	if s.several == nil {
		return false
	}
	if failure := s.misplaced(f); failure.Kind() != strictjson.KindAbsent {
		s.finish(f, strictjson.Value{}, failure)
		return true
	}
	switch f.Method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list", "logging/setLevel":
		f.yieldTurn()
	}
	if lists[f.Method] != "" {
		result, failure := s.list(f)
		s.finish(f, result, failure)
		return true
	}
	if f.version >= modernVersion {
		return s.ownModern(f)
	}
	ok := strictjson.Object()
	switch f.Method {
	case "initialize":
		s.finish(f, s.greetClient(f.Params), strictjson.Value{})
	case "ping":
		s.finish(f, ok, strictjson.Value{})
	case "logging/setLevel":
		s.mu.Lock()
		s.level = f.Params
		s.mu.Unlock()
		s.tellLevel(f)
		s.finish(f, ok, strictjson.Value{})
	case "tasks/list":
		result, failure := s.listTasks(f)
		s.finish(f, result, failure)
	default:
		return false
	}
	return true
}

// tellLevel tells the servers that run which level their logs have from now on, and waits for a while until they know: others
// hear of it when they are greeted.
func (s *session) tellLevel(f *flight) {
	ctx, cancel := context.WithTimeout(f.ctx, s.g.listWait)
	defer cancel()
	var telling sync.WaitGroup
	for _, up := range s.servers {
		if l := up.running(); l != nil && l.can(f.Method) {
			telling.Go(func() { l.ask(ctx, f.Method, f.Params) })
		}
	}
	telling.Wait()
}

// greetClient answers initialize for all servers together. They start when they are needed, so what they can is not known:
// everything is declared.
func (s *session) greetClient(hello strictjson.Value) strictjson.Value {
	version := hello.Get("protocolVersion").Str()
	if !slices.Contains(legacyVersions, version) {
		version = legacyVersions[0]
	}
	s.mu.Lock()
	s.hello, s.version, s.modern = hello.With("protocolVersion", strictjson.String(version)), version, false
	s.mu.Unlock()
	return strictjson.Object(
		strictjson.Member{Name: "protocolVersion", Value: strictjson.String(version)},
		strictjson.Member{Name: "capabilities", Value: everything(`"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)},
		strictjson.Member{Name: "serverInfo", Value: s.g.info()},
	)
}

// everything is the capabilities that the gateway declares, with those that only one era has.
func everything(more string) strictjson.Value {
	can, _ := strictjson.ParseString(`{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},
		"logging":{},"completions":{},`+more+`}`, strictjson.Limits{})
	return can
}

// info is what the gateway calls itself.
func (g *Gateway) info() strictjson.Value {
	return strictjson.Object(
		strictjson.Member{Name: "name", Value: strictjson.String("hearsay")},
		strictjson.Member{Name: "version", Value: strictjson.String(g.opt.version())})
}

// wake starts the servers that start with the client.
func (s *session) wake() {
	s.several.awake.Do(func() {
		for _, up := range s.servers {
			if up.AtStart {
				s.background(func(ctx context.Context) { up.ready(ctx, "tools/list") })
			}
		}
	})
}

// background runs work that belongs to the session but to no request.
func (s *session) background(work func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.work.Go(func() { work(s.ctx) })
	}
}
