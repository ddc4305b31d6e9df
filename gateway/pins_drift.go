package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Drift is one difference between what was approved and what is offered now.
type Drift struct {
	Server, Name string
	Kind         PinKind
	Change       string   // "changed", "new", "gone", "renamed"; for the server itself "launch", "info", "instructions"
	From         string   // of a renamed one: the name it had
	Lines        []string // for people: "- was", "+ is", cleaned
}

// Withholds reports whether the drift keeps something from the client until it is approved.
func (d Drift) Withholds() bool { return d.Change != "gone" && d.Change != "info" }

// Compare lists how an offer differs from what was approved of the server, in a fixed order. A definition that is gone and a new
// one that says the same are one renamed definition: a name alone would slip past a list of names.
func (l *Lock) Compare(o Offer) []Drift {
	old := &ServerPins{}
	if l != nil && l.Servers[o.Server] != nil {
		old = l.Servers[o.Server]
	}
	var drifts []Drift
	add := func(d Drift) { d.Server = o.Server; drifts = append(drifts, d) }
	known := l != nil && l.Servers[o.Server] != nil
	if known && !slices.Equal(old.Launch, o.Launch) {
		add(Drift{Change: "launch", Lines: lines(strings.Join(old.Launch, " "), strings.Join(o.Launch, " "))})
	}
	if known && string(Canonical(nil, old.Info)) != string(Canonical(nil, o.Info)) {
		add(Drift{Change: "info", Lines: lines(text(old.Info), text(o.Info))})
	}
	if known && old.Instructions != o.Instructions {
		add(Drift{Change: "instructions", Lines: lines(old.Instructions, o.Instructions)})
	}
	for _, kind := range pinKinds {
		gone := maps.Clone(old.Definitions[kind])
		var added []strictjson.Value
		for _, def := range o.Definitions[kind] {
			name := kind.nameOf(def)
			pin, ok := old.Definitions[kind][name]
			delete(gone, name)
			switch {
			case !ok:
				added = append(added, def)
			case pin.Digest != Digest(def):
				add(Drift{Kind: kind, Name: name, Change: "changed", Lines: lines(text(pin.Definition), text(def))})
			}
		}
		for _, def := range added {
			name := kind.nameOf(def)
			if from := renamedFrom(gone, def); from != "" {
				add(Drift{Kind: kind, Name: name, Change: "renamed", From: from, Lines: lines(text(gone[from].Definition), text(def))})
				delete(gone, from)
				continue
			}
			add(Drift{Kind: kind, Name: name, Change: "new", Lines: lines("", text(def))})
		}
		for _, name := range slices.Sorted(maps.Keys(gone)) {
			add(Drift{Kind: kind, Name: name, Change: "gone", Lines: lines(text(gone[name].Definition), "")})
		}
	}
	return drifts
}

// renamedFrom finds the definition among those that are gone which def most looks like: the same but for its name, or the same
// argument names and half of the words of the description.
func renamedFrom(gone map[string]Pin, def strictjson.Value) string {
	best, score := "", 0.5
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		old := gone[name].Definition
		if likeness := alike(old, def); likeness > score {
			best, score = name, likeness
		}
	}
	return best
}

func alike(a, b strictjson.Value) float64 {
	if Digest(a.Without("name", "title", "uriTemplate")) == Digest(b.Without("name", "title", "uriTemplate")) {
		return 2
	}
	wordsA, wordsB := wordSet(a), wordSet(b)
	common := 0
	for w := range wordsA {
		if wordsB[w] {
			common++
		}
	}
	all := len(wordsA) + len(wordsB) - common
	if all == 0 {
		return 0
	}
	return float64(common) / float64(all)
}

// wordSet is the words of a description and the names of the arguments.
func wordSet(def strictjson.Value) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(strings.ToLower(def.Get("description").Str())) {
		set[strings.Trim(w, ".,;:()\"'`")] = true
	}
	for name := range def.Get("inputSchema").Get("properties").Members() {
		set["argument "+name] = true
	}
	for _, a := range def.Get("arguments").Elems() {
		set["argument "+a.Get("name").Str()] = true
	}
	return set
}

// text is a definition for people, one member or line of prose on each line, cleaned.
func text(def strictjson.Value) string {
	if def.Kind() == strictjson.KindAbsent {
		return ""
	}
	var b strings.Builder
	for _, m := range sorted(def) {
		if s := m.Value; s.Kind() == strictjson.KindString && strings.Contains(s.Str(), "\n") {
			fmt.Fprintf(&b, "%s:\n", m.Name)
			for line := range strings.Lines(s.Str()) {
				b.WriteString("  " + strings.TrimSuffix(line, "\n") + "\n")
			}
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", m.Name, indent(nil, m.Value, 0))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// lines is the difference of two texts: what is common once, what was with "-", what is with "+". What is hidden is shown, not
// removed: a person decides on it.
func lines(was, is string) []string {
	a, b := splitLines(was), splitLines(is)
	common := commonLines(a, b)
	var out []string
	for len(a)+len(b) > 0 {
		switch {
		case len(a) > 0 && len(b) > 0 && a[0] == b[0] && len(common) > 0 && common[0] == a[0]:
			out = append(out, "  "+a[0])
			a, b, common = a[1:], b[1:], common[1:]
		case len(a) > 0 && (len(common) == 0 || a[0] != common[0]):
			out, a = append(out, "- "+a[0]), a[1:]
		default:
			out, b = append(out, "+ "+b[0]), b[1:]
		}
	}
	return out
}

// maxDiffLines bounds the quadratic comparison; the rest is shown as removed and added.
const maxDiffLines = 1000

func commonLines(a, b []string) []string {
	a, b = a[:min(len(a), maxDiffLines)], b[:min(len(b), maxDiffLines)]
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var common []string
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			common = append(common, a[i])
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return common
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	out := strings.Split(s, "\n")
	for i, line := range out {
		out[i] = visible(line)
	}
	return out
}

// visible writes what a reader could not see as \u{…}.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if one := string(r); r != '\t' && (r == '\n' || unseen("a"+one+"a")) {
			fmt.Fprintf(&b, "\\u{%x}", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
