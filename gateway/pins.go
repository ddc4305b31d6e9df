package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Pins: a definition is shown to a model as its server wrote it, so it is shown as a person approved it or not at all. A lock
// file keeps the approved definitions, each with its digest; what differs from it, by one byte of its canonical form, is withheld.

// PinKind is a kind of definition that is pinned.
type PinKind uint8

const (
	PinTool PinKind = iota
	PinPrompt
	PinTemplate
)

var pinKinds = []PinKind{PinTool, PinPrompt, PinTemplate}

func (k PinKind) String() string { return [...]string{"tool", "prompt", "resource template"}[k] }

// section is the name of the kind's list, in the lock file and in the protocol.
func (k PinKind) section() string { return [...]string{"tools", "prompts", "resourceTemplates"}[k] }

// nameOf is what a definition is known by.
func (k PinKind) nameOf(def strictjson.Value) string {
	if k == PinTemplate {
		return def.Get("uriTemplate").Str()
	}
	return def.Get("name").Str()
}

// Standing is what the lock file says about a definition that a server offers now. The zero value is Changed.
type Standing uint8

const (
	Changed  Standing = iota // it is not what was approved: withheld
	Added                    // it was not there when the server was approved: withheld, unless the operator lets new ones in
	Approved                 // it is what was approved
	Unpinned                 // nothing of this server was ever approved: nothing to compare with
)

func (s Standing) String() string { return [...]string{"changed", "new", "approved", "unpinned"}[s] }

// Pin is one approved definition.
type Pin struct {
	Digest     string           // of the canonical form: "sha256:" and hexadecimal digits
	Definition strictjson.Value // as the server wrote it
}

// ServerPins is what was approved of one server.
type ServerPins struct {
	Launch       []string // the command, or the one URL
	Info         strictjson.Value
	Instructions string
	Definitions  map[PinKind]map[string]Pin
}

// Lock is the content of a lock file. A nil Lock has approved nothing and withholds nothing: every server is Unpinned.
type Lock struct {
	Servers map[string]*ServerPins
}

// Offer is what a server says it offers: what hearsay pin records, as received.
type Offer struct {
	Server       string
	Launch       []string
	Info         strictjson.Value
	Instructions string
	Definitions  map[PinKind][]strictjson.Value
}

// Judge says how a definition stands that a server offers.
func (l *Lock) Judge(server string, kind PinKind, def strictjson.Value) Standing {
	if l == nil || l.Servers[server] == nil {
		return Unpinned
	}
	pin, ok := l.Servers[server].Definitions[kind][kind.nameOf(def)]
	switch {
	case !ok:
		return Added
	case pin.Digest != Digest(def):
		return Changed
	}
	return Approved
}

// Launched says whether a server is started or reached as it was when it was approved. Its definitions, approved or not, are
// another program's words otherwise.
func (l *Lock) Launched(server string, launch []string) bool {
	return l == nil || l.Servers[server] == nil || slices.Equal(l.Servers[server].Launch, launch)
}

// Digest names the canonical form of a definition.
func Digest(def strictjson.Value) string {
	sum := sha256.Sum256(Canonical(nil, def))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Canonical appends the canonical form of a value: names sorted by their bytes, no white space, strings with the fewest escapes,
// numbers digit for digit. Two texts that mean the same to every reader have the same form.
func Canonical(dst []byte, v strictjson.Value) []byte {
	switch v.Kind() {
	case strictjson.KindArray:
		dst = append(dst, '[')
		for i, e := range v.Elems() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = Canonical(dst, e)
		}
		return append(dst, ']')
	case strictjson.KindObject:
		dst = append(dst, '{')
		for i, m := range sorted(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(strictjson.String(m.Name).Append(dst), ':')
			dst = Canonical(dst, m.Value)
		}
		return append(dst, '}')
	case strictjson.KindString:
		return strictjson.String(v.Str()).Append(dst)
	}
	return v.Append(dst)
}

func sorted(v strictjson.Value) []strictjson.Member {
	members := make([]strictjson.Member, 0, v.Len())
	for name, e := range v.Members() {
		members = append(members, strictjson.Member{Name: name, Value: e})
	}
	slices.SortFunc(members, func(a, b strictjson.Member) int { return strings.Compare(a.Name, b.Name) })
	return members
}

// Approve returns the pins of an offer. It refuses one with a definition that a person cannot judge by looking at it: hidden
// characters, or a name that no client would be shown.
func (o Offer) Approve() (*ServerPins, error) {
	s := &ServerPins{Launch: slices.Clone(o.Launch), Info: o.Info, Instructions: o.Instructions, Definitions: map[PinKind]map[string]Pin{}}
	if hidden := hiddenIn(o.Info); hidden != "" {
		return nil, fmt.Errorf("server %s: hidden characters in its %s", Quote(o.Server), hidden)
	}
	if unseen(o.Instructions) {
		return nil, fmt.Errorf("server %s: hidden characters in its instructions", Quote(o.Server))
	}
	for _, kind := range pinKinds {
		pins := map[string]Pin{}
		for _, def := range o.Definitions[kind] {
			name := kind.nameOf(def)
			switch hidden := hiddenIn(def); {
			case name == "" || unseen(name):
				return nil, fmt.Errorf("server %s: a %s whose name %s is empty or holds hidden characters", Quote(o.Server), kind, Quote(name))
			case hidden != "":
				return nil, fmt.Errorf("server %s: hidden characters in the %s of the %s %s", Quote(o.Server), hidden, kind, Quote(name))
			}
			if _, twice := pins[name]; twice {
				return nil, fmt.Errorf("server %s: two definitions of the %s %s", Quote(o.Server), kind, Quote(name))
			}
			pins[name] = Pin{Digest(def), def}
		}
		s.Definitions[kind] = pins
	}
	return s, nil
}

// hiddenIn names the member of a definition in which something stands that a reader cannot see, "" if there is none.
func hiddenIn(def strictjson.Value) string {
	for name, e := range def.Members() {
		if unseen(name) {
			return "names"
		}
		if hiddenBelow(e) {
			return Quote(name)
		}
	}
	return ""
}

func hiddenBelow(v strictjson.Value) bool {
	switch v.Kind() {
	case strictjson.KindString:
		return unseen(v.Str())
	case strictjson.KindArray:
		for _, e := range v.Elems() {
			if hiddenBelow(e) {
				return true
			}
		}
	case strictjson.KindObject:
		for name, e := range v.Members() {
			if unseen(name) || hiddenBelow(e) {
				return true
			}
		}
	}
	return false
}
