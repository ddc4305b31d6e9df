package gateway

import (
	"errors"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
	"github.com/seed-4e9f7b04/hearsay/screen"
)

// errHalted ends a session in which a screen saw what the operator wants no session to go on with.
var errHalted = errors.New("a screen has ended the session")

// screenKey is the member of _meta in which the screens say what they saw and did.
const screenKey = "hearsay/screens"

// maxScreenFindings bounds what one answer says of its screens; the log has the same ones.
const maxScreenFindings = 50

// screen makes the function that screens the texts of an answer; nil where nobody screens.
func (s *session) screen(f *flight, up *upstream, about About) func(Text) (string, error) {
	if s.g.opt.Screens == nil {
		return nil
	}
	var request []string
	for _, arg := range f.Params.Get("arguments").Members() {
		if arg.Kind() == strictjson.KindString {
			request = append(request, arg.Str())
		}
	}
	return func(t Text) (string, error) {
		of := request
		if !f.single || t.Where != onlyText { // a part of a result may well repeat a word of its request: a title, a quoted line
			of = nil
		}
		r := s.g.opt.Screens.Check(f.ctx, screen.Input{
			Tool: up.name() + "__" + about.Name, Path: t.Where, Text: t.Text, Request: of, Failed: f.failed,
		})
		for _, found := range r.Findings {
			s.log.Info("screened", "server", up.name(), "tool", about.Name, "screen", found.Screen, "rule", found.Rule,
				"where", found.Path, "start", found.Start, "end", found.End, "action", found.Action)
		}
		f.screened = append(f.screened, r.Findings[:min(len(r.Findings), maxScreenFindings-len(f.screened))]...)
		switch r.Verdict {
		case screen.Pass, screen.Rewrite:
			return r.Text, nil
		case screen.Halt:
			f.halt = true
		}
		return "", errors.New(r.Reason)
	}
}

// onlyText is where the text of a result stands that is one text and nothing else.
const onlyText = "content.0.text"

// saw adds to a treated answer what the screens saw in it.
func (f *flight) saw(v strictjson.Value) strictjson.Value {
	if len(f.screened) == 0 || v.Kind() != strictjson.KindObject {
		return v
	}
	var list []strictjson.Value
	for _, found := range f.screened {
		list = append(list, strictjson.Object(
			strictjson.Member{Name: "screen", Value: strictjson.String(found.Screen)},
			strictjson.Member{Name: "rule", Value: strictjson.String(found.Rule)},
			strictjson.Member{Name: "where", Value: strictjson.String(found.Path)},
			strictjson.Member{Name: "start", Value: number(found.Start)},
			strictjson.Member{Name: "end", Value: number(found.End)},
			strictjson.Member{Name: "action", Value: strictjson.String(found.Action)}))
	}
	return v.With("_meta", v.Get("_meta").With(screenKey, strictjson.Array(list...)))
}

// halted ends the session, once its answer is out, where a screen asked for that.
func (s *session) halted(f *flight, up *upstream, about About) {
	if f.halt {
		s.record(audit.Event{Kind: audit.Refusal, Server: up.name(), Tool: about.label(), Reason: "halt", Text: errHalted.Error()})
		s.cancel(errHalted)
	}
}
