package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// lockVersion is the format this file writes and reads.
const lockVersion = "1"

const lockNote = "What each MCP server offered when a person approved it; written by hearsay pin. Review a change to it as you review code."

// ReadLock reads a lock file. A digest that is not that of the text beside it refuses the file: one of the two was edited.
func ReadLock(data []byte) (*Lock, error) {
	v, err := strictjson.Parse(data, strictjson.Limits{KeepCaseTwins: true})
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	if got := v.Get("hearsay.lock"); got.Number() != lockVersion {
		return nil, fmt.Errorf("lock file: the format is %s, this program reads %s", Quote(string(got.Append(nil))), lockVersion)
	}
	l := &Lock{map[string]*ServerPins{}}
	for name, s := range v.Get("servers").Members() {
		pins := &ServerPins{Info: s.Get("info"), Instructions: s.Get("instructions").Str(), Definitions: map[PinKind]map[string]Pin{}}
		for _, word := range s.Get("launch").Elems() {
			pins.Launch = append(pins.Launch, word.Str())
		}
		for _, kind := range pinKinds {
			pins.Definitions[kind] = map[string]Pin{}
			for known, p := range s.Get(kind.section()).Members() {
				pin := Pin{p.Get("digest").Str(), p.Get("definition")}
				if pin.Digest != Digest(pin.Definition) || kind.nameOf(pin.Definition) != known {
					return nil, fmt.Errorf("lock file: the %s %s of server %s: its digest is not that of the text beside it, so one of them was edited; take the file from version control, or pin anew", kind, Quote(known), Quote(name))
				}
				pins.Definitions[kind][known] = pin
			}
		}
		l.Servers[name] = pins
	}
	return l, nil
}

// Encode writes the lock file: sorted and indented, so that a change of a definition is a change of its lines.
func (l *Lock) Encode() []byte {
	servers := make([]strictjson.Member, 0, len(l.Servers))
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		s := l.Servers[name]
		launch := make([]strictjson.Value, len(s.Launch))
		for i, word := range s.Launch {
			launch[i] = strictjson.String(word)
		}
		members := []strictjson.Member{
			{Name: "launch", Value: strictjson.Array(launch...)},
			{Name: "info", Value: s.Info},
		}
		if s.Instructions != "" {
			members = append(members, strictjson.Member{Name: "instructions", Value: strictjson.String(s.Instructions)})
		}
		for _, kind := range pinKinds {
			pins := make([]strictjson.Member, 0, len(s.Definitions[kind]))
			for _, known := range slices.Sorted(maps.Keys(s.Definitions[kind])) {
				pin := s.Definitions[kind][known]
				pins = append(pins, strictjson.Member{Name: known, Value: strictjson.Object(
					strictjson.Member{Name: "digest", Value: strictjson.String(pin.Digest)},
					strictjson.Member{Name: "definition", Value: pin.Definition})})
			}
			members = append(members, strictjson.Member{Name: kind.section(), Value: strictjson.Object(pins...)})
		}
		servers = append(servers, strictjson.Member{Name: name, Value: strictjson.Object(members...)})
	}
	return append(indent(nil, strictjson.Object(
		strictjson.Member{Name: "hearsay.lock", Value: strictjson.Number(lockVersion)},
		strictjson.Member{Name: "note", Value: strictjson.String(lockNote)},
		strictjson.Member{Name: "servers", Value: strictjson.Object(servers...)}), 0), '\n')
}

// indent writes a value for readers: one member on each line, lists of plain values on one.
func indent(dst []byte, v strictjson.Value, depth int) []byte {
	open, end := byte('{'), byte('}')
	var elems []strictjson.Member
	flat := true
	switch v.Kind() {
	case strictjson.KindArray:
		open, end = '[', ']'
		for _, e := range v.Elems() {
			flat = flat && e.Kind() != strictjson.KindArray && e.Kind() != strictjson.KindObject
			elems = append(elems, strictjson.Member{Value: e})
		}
	case strictjson.KindObject:
		flat = false
		for name, e := range v.Members() {
			elems = append(elems, strictjson.Member{Name: name, Value: e})
		}
	default:
		return Canonical(dst, v)
	}
	dst = append(dst, open)
	for i, e := range elems {
		switch {
		case i > 0 && flat:
			dst = append(dst, ", "...)
		case i > 0:
			dst = append(dst, ',')
		}
		if !flat {
			dst = append(append(dst, '\n'), strings.Repeat("  ", depth+1)...)
		}
		if end == '}' {
			dst = append(strictjson.String(e.Name).Append(dst), ": "...)
		}
		dst = indent(dst, e.Value, depth+1)
	}
	if len(elems) > 0 && !flat {
		dst = append(append(dst, '\n'), strings.Repeat("  ", depth)...)
	}
	return append(dst, end)
}
