package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// event is one step of a session, for the properties below.
type event struct {
	observe *Observation
	call    *Call
}

func (e event) apply(s State) State {
	if e.observe != nil {
		return s.Observe(*e.observe)
	}
	return s.Commit(*e.call)
}

var someValues = []string{"a@b.example", "c@d.example", "https://a.example/x", "GB29NWBK60161331926819", "Alice", "notes.txt", "13", "id-4711-x", "general"}

func drawArgs(t *rapid.T) map[string]any {
	v := rapid.SampledFrom(someValues)
	return map[string]any{"to": v.Draw(t, "to"), "body": "see " + v.Draw(t, "body"), "file_id": v.Draw(t, "file_id")}
}

var drawEvent = rapid.Custom(func(t *rapid.T) event {
	v := rapid.SampledFrom(someValues)
	if rapid.Bool().Draw(t, "call") {
		return event{call: &Call{Server: "s", Tool: rapid.SampledFrom([]string{"send", "create_file"}).Draw(t, "tool"), Args: drawArgs(t)}}
	}
	return event{observe: &Observation{
		Source: rapid.SampledFrom([]string{"s", "u"}).Draw(t, "source"), Tool: "create_file", Trust: Trust(rapid.IntRange(0, 3).Draw(t, "trust")),
		Text: v.Draw(t, "text"), Data: map[string]any{"file_id": v.Draw(t, "id"), "title": v.Draw(t, "title"), "list": []any{v.Draw(t, "element")}},
	}}
})

var someTools = []ToolLabels{
	{Server: "s", Tool: "send", Effects: Write | Send, Bind: []Binding{{Path: "to", Class: Ordinary}, {Path: "file_id", Class: Ordinary}}, Text: []string{"body"}},
	{Server: "s", Tool: "send", Effects: Write | Send, Bind: []Binding{{Path: "to", Class: Money}, {Path: "file_id", Class: Deletion}}, Text: []string{"body"}},
	{Server: "s", Tool: "x"},
}

func refused(s State, l ToolLabels, args map[string]any) bool {
	return s.Tainted() && len(s.Ungrounded(l, args)) > 0
}

// For every trace and every continuation: what is allowed with an untrusted observation in between is a subset of what is
// allowed without it. No one endorses.
func TestUntrustedTextOnlyTakesAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		for _, e := range rapid.SliceOfN(drawEvent, 0, 6).Draw(t, "trace") {
			s = e.apply(s)
		}
		after := s.Observe(Observation{Source: "web", Trust: Untrusted, Text: rapid.SampledFrom(someValues).Draw(t, "evil"), Data: map[string]any{"to": "a@b.example", "file_id": 13}})
		if !after.Tainted() {
			t.Fatal("no taint")
		}
		for _, e := range rapid.SliceOfN(drawEvent, 0, 6).Draw(t, "continuation") {
			s, after = e.apply(s), e.apply(after)
		}
		l, args := rapid.SampledFrom(someTools).Draw(t, "labels"), drawArgs(t)
		if refused(s, l, args) && !refused(after, l, args) {
			t.Fatalf("reading untrusted text allowed %v", args)
		}
		for _, tool := range []string{"send", "create_file"} {
			if after.Committed("s", tool) && !s.Committed("s", tool) {
				t.Fatalf("reading untrusted text committed to %s", tool)
			}
		}
	})
}

// A state is a value: what is done with it later does not change it, and it comes back from its bytes as it was.
func TestStateIsAValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s State
		for _, e := range rapid.SliceOfN(drawEvent, 0, 6).Draw(t, "trace") {
			s = e.apply(s)
		}
		before, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		other := s.Observe(Observation{Source: "x", Trust: User, Text: "mail z@z.example file 99"})
		for _, e := range rapid.SliceOfN(drawEvent, 0, 6).Draw(t, "continuation") {
			other = e.apply(other)
		}
		other.Endorse(Mail, "y@y.example")
		if after, _ := json.Marshal(s); !bytes.Equal(before, after) {
			t.Fatal("the state changed")
		}
		var back State
		if err := json.Unmarshal(before, &back); err != nil {
			t.Fatal(err)
		}
		if again, _ := json.Marshal(back); !bytes.Equal(before, again) {
			t.Fatalf("%s became %s", before, again)
		}
		l, args := rapid.SampledFrom(someTools).Draw(t, "labels"), drawArgs(t)
		if fmt.Sprint(s.Ungrounded(l, args)) != fmt.Sprint(back.Ungrounded(l, args)) {
			t.Fatal("a state from its bytes judges otherwise")
		}
	})
}

// Whatever an address is cut to or lengthened by, it is another one.
func TestNoPartOfAnAddressGrounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addr := rapid.StringMatching(`[a-z]{3,8}@[a-z]{3,8}\.example`).Draw(t, "address")
		other := rapid.OneOf(
			rapid.Map(rapid.IntRange(1, len(addr)-1), func(i int) string { return addr[i:] }),
			rapid.Map(rapid.IntRange(1, len(addr)-1), func(i int) string { return addr[:i] }),
			rapid.Map(rapid.StringMatching(`[a-z.+-]{1,4}`), func(x string) string { return x + addr }),
			rapid.Map(rapid.StringMatching(`[a-z]{1,4}`), func(x string) string { return addr + x }),
			rapid.Map(rapid.StringMatching(`[a-z]{1,4}`), func(x string) string { return addr + "." + x }),
		).Draw(t, "other")
		s := said("please write to " + addr + " today")
		if got := s.Ungrounded(mailTool, map[string]any{"to": addr}); len(got) > 0 {
			t.Fatalf("%s: %+v", addr, got)
		}
		if got := s.Ungrounded(mailTool, map[string]any{"to": other}); len(got) == 0 && strings.Trim(other, ".+-") != addr {
			t.Fatalf("%s grounded %s", addr, other)
		}
	})
}

func TestStateBounds(t *testing.T) {
	var s State
	for i := range 2 * maxReads {
		name := fmt.Sprintf("server%d", i)
		s = s.Observe(Observation{Source: name, Trust: FirstParty}).Observe(Observation{Source: name, Trust: FirstParty}).Commit(Call{Server: name, Tool: "t"}).Commit(Call{Server: name, Tool: "t"})
	}
	if n := len(s.Reads()); n != maxReads || len(s.committed) != maxReads {
		t.Errorf("%d reads, %d tools", n, len(s.committed))
	}
	if !s.Committed("server0", "t") || s.Committed("server0", "u") || s.Committed("server0\nt", "") {
		t.Error("committed tools are mixed up")
	}
	if !slices.Equal(s.Reads()[:2], []string{"server0", "server1"}) {
		t.Errorf("reads: %v", s.Reads()[:2])
	}

	var list []any
	for i := range maxEntries {
		list = append(list, fmt.Sprintf("p%d@store.example", i))
	}
	s = s.Observe(Observation{Source: "store", Trust: Store, Data: list})
	if len(s.known) > maxEntries {
		t.Errorf("%d values", len(s.known))
	}
	if got := s.Ungrounded(mailTool, map[string]any{"to": "p0@store.example"}); len(got) > 0 {
		t.Errorf("the first value is lost: %+v", got)
	}
	if got := s.Observe(Observation{Trust: User, Text: "mail z@z.example"}).Ungrounded(mailTool, map[string]any{"to": "z@z.example"}); len(got) == 0 {
		t.Error("a value beyond the bound is remembered")
	}
	if got := s.Observe(Observation{Trust: User, Text: "mail p0@store.example"}).known; got[digestOf("mail", "p0@store.example")]&fromUser == 0 {
		t.Error("a known value gets no further voucher")
	}

	long := strings.Repeat("word ", maxWords+10) + "end\nlast@words.example"
	if s := said(long); s.known[digestOf(spaceRun, "end")] != 0 {
		t.Error("words beyond the bound are remembered as names")
	}
	if s := said(strings.Repeat(" ", maxScan) + "late@words.example"); len(s.known) != 0 {
		t.Error("text beyond the bound is read")
	}
}

// An agent that says more than is remembered gets nothing from results any more.
func TestTooMuchSaidMakesDeaf(t *testing.T) {
	s := State{}.Observe(Observation{Source: "s", Trust: Untrusted})
	result := Observation{Source: "s", Trust: FirstParty, Data: []any{"fresh@s.example"}}
	if got := s.Observe(result).Ungrounded(mailTool, map[string]any{"to": "fresh@s.example"}); len(got) > 0 {
		t.Fatalf("%+v", got)
	}
	for i := range 20 {
		var b strings.Builder
		for k := range 1000 {
			fmt.Fprintf(&b, "w%dx%d ", i, k)
		}
		s = s.Commit(Call{Server: "s", Tool: "t", Args: map[string]any{"q": b.String()}})
	}
	if !s.deaf || len(s.said) != 0 {
		t.Fatalf("said %d, deaf %v", len(s.said), s.deaf)
	}
	s = s.Commit(Call{Args: map[string]any{"q": "more"}})
	if got := s.Observe(result).Ungrounded(mailTool, map[string]any{"to": "fresh@s.example"}); len(got) == 0 {
		t.Error("a result still grounds")
	}
	if one := (State{}).Observe(Observation{Source: "s", Trust: Untrusted}).Commit(Call{Args: map[string]any{"q": strings.Repeat("w ", maxWords) + "tail@s.example"}}); !one.deaf {
		t.Error("the end of a long argument is forgotten")
	}
	data, _ := json.Marshal(s)
	var back State
	if err := json.Unmarshal(data, &back); err != nil || !back.deaf {
		t.Errorf("deafness does not survive: %v", err)
	}
}

func TestDamagedStatesTrustNothing(t *testing.T) {
	good, err := json.Marshal(said("mail a@b.example").Observe(Observation{Source: "s", Trust: Untrusted}).Commit(Call{Args: map[string]any{"q": "x"}}))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(good, []byte("a@b.example")) {
		t.Error("the state holds the user's words")
	}
	change := func(key string, value any) string {
		var m map[string]any
		if err := json.Unmarshal(good, &m); err != nil {
			t.Fatal(err)
		}
		m[key] = value
		out, _ := json.Marshal(m)
		return string(out)
	}
	var many []string
	for i := range maxReads + 1 {
		many = append(many, fmt.Sprint(i))
	}
	big := index{}
	for i := range maxSaid + 1 {
		big[digestOf("", fmt.Sprint(i))] = 1
	}
	for name, data := range map[string]string{
		"cut":               string(good[:len(good)/2]),
		"no version":        `{"tainted":false}`,
		"another version":   change("version", 99),
		"not base64":        change("known", "!"),
		"an odd length":     change("known", "AAAA"),
		"said not base64":   change("said", "!"),
		"too many said":     change("said", big.pack()),
		"too many reads":    change("reads", many),
		"too many commited": change("committed", many),
		"another type":      `[]`,
	} {
		s := State{known: index{digestOf("mail", "a@b.example"): fromUser}}
		if err := json.Unmarshal([]byte(data), &s); err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if name != "cut" && !s.Tainted() { // cut JSON never reaches the state
			t.Errorf("%s: not tainted", name)
		}
		if name != "cut" && len(s.known) > 0 {
			t.Errorf("%s: still trusts", name)
		}
	}
}

func TestObservationsOfEachTrust(t *testing.T) {
	data := map[string]any{"list": []any{map[string]any{"email": "a@b.example", "n": 7.0, "big": json.Number("123456"), "i": 5, "j": int64(6), "flag": true}}, "nested": []any{[]any{"c@d.example"}}}
	for trust, want := range map[Trust]bool{Untrusted: false, FirstParty: true, Store: true, User: true, Approved: true, Trust(99): false} {
		s := State{}.Observe(Observation{Source: "s", Trust: trust, Data: data})
		for _, addr := range []string{"a@b.example", "c@d.example"} {
			if got := len(s.Ungrounded(mailTool, map[string]any{"to": addr})) == 0; got != want {
				t.Errorf("%v: %s grounded = %v, want %v", trust, addr, got, want)
			}
		}
		if s.Tainted() != !want {
			t.Errorf("%v: tainted = %v", trust, s.Tainted())
		}
	}
	for trust, want := range map[Trust]bool{Untrusted: false, FirstParty: false, Store: true, User: true, Approved: true} {
		s := State{}.Observe(Observation{Source: "contact", Trust: trust, Text: "a@b.example"})
		if got := len(s.Ungrounded(mailTool, map[string]any{"to": "a@b.example"})) == 0; got != want {
			t.Errorf("text, %v: grounded = %v, want %v", trust, got, want)
		}
	}
	own := State{}.Observe(Observation{Source: "own_email", Trust: Store, Text: "me@b.example"})
	if got := own.Ungrounded(mailTool, map[string]any{"to": "me@b.example", "subject": "evil"}); len(got) == 0 {
		t.Error("one's own address vouched for the deed")
	}
	if s := (State{}).Observe(Observation{Source: "x", Trust: Store, Data: []any{"a\u200b@b.example", "\u0430a", ""}}); len(s.known) != 0 {
		t.Error("a value in disguise is remembered")
	}
	deep := any("deep@x.example")
	for range 2 * maxNest {
		deep = []any{deep}
	}
	var nested any = map[string]any{"email": "deep@x.example"}
	for range 2 * maxNest {
		nested = map[string]any{"x": nested}
	}
	for _, d := range []any{deep, nested} {
		for _, trust := range []Trust{FirstParty, Store} {
			if s := (State{}).Observe(Observation{Source: "s", Trust: trust, Data: d}); len(s.known) != 0 {
				t.Errorf("%v: values beyond the depth are remembered", trust)
			}
		}
	}
}
