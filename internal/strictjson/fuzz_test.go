package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	. "github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// FuzzParse holds Parse against two other readers: what it accepts they accept and read alike, what it refuses for its
// form they refuse, and what it writes it reads again as the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,2e3,-0.1]}}}`,
		`{"a":"\ud83d\ude00\u0000\/"}`, `["\ud800"]`, "\xff\"", `{"a":1,"A":2}`, `{"a":1,"a":2}`, `[NaN]`, "\uFEFF[]",
		"{\n \"a\" : [ ] }\r\n", `{"a\u0000":1}`, `[[[[[[[[]]]]]]]]`, `12 34`, `"` + "\u2028" + `"`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, lax bool) {
		lim := Limits{KeepCaseTwins: lax, RepairSurrogates: lax, MaxDepth: 1000}
		v, err := Parse(data, lim)
		repaired := bytes.ToValidUTF8(data, []byte("\uFFFD"))
		other := jsontext.Value(repaired)
		valid := other.IsValid() // strict: no duplicates, no lone surrogates
		switch {
		case err == nil && !lax && !valid:
			t.Fatalf("accepted %q, which jsontext refuses", data)
		case errors.Is(err, ErrSyntax) && json.Valid(repaired):
			t.Fatalf("refused %q (%v), which encoding/json accepts", data, err)
		case err != nil && valid && !errors.Is(err, ErrCaseTwin) && !errors.Is(err, ErrName) && !errors.Is(err, ErrNumber):
			t.Fatalf("refused %q (%v), which jsontext accepts", data, err)
		case err != nil:
			return
		}
		out := v.Append(nil)
		if !utf8.Valid(out) || bytes.ContainsAny(out, "\n\r") {
			t.Fatalf("%q written as %q", data, out)
		}
		again, err := Parse(out, lim)
		if err != nil {
			t.Fatalf("%q written as %q, which is refused: %v", data, out, err)
		}
		if twice := again.Append(nil); !bytes.Equal(out, twice) {
			t.Fatalf("written %q, then %q", out, twice)
		}
		var theirs any
		dec := json.NewDecoder(bytes.NewReader(repaired))
		dec.UseNumber()
		if err := dec.Decode(&theirs); err != nil {
			t.Fatalf("accepted %q, which encoding/json refuses: %v", data, err)
		}
		if ours := v.Any(); !reflect.DeepEqual(ours, theirs) {
			t.Fatalf("%q: read as %#v, encoding/json reads %#v", data, ours, theirs)
		}
		if rebuilt := rebuild(v); !reflect.DeepEqual(rebuilt.Any(), v.Any()) {
			t.Fatalf("%q: rebuilt as %s", data, rebuilt.Append(nil))
		}
	})
}

// rebuild makes a value of the same parts with none of its text.
func rebuild(v Value) Value {
	switch v.Kind() {
	case KindString:
		return String(v.Str())
	case KindNumber:
		return Number(v.Number())
	case KindBool:
		return Bool(v.Bool())
	case KindArray:
		var elems []Value
		for _, e := range v.Elems() {
			elems = append(elems, rebuild(e))
		}
		return Array(elems...)
	case KindObject:
		var members []Member
		for name, value := range v.Members() {
			members = append(members, Member{name, rebuild(value)})
		}
		w, err := Parse(Object(members...).Append(nil), Limits{KeepCaseTwins: true, MaxDepth: 1000})
		if err != nil {
			panic(err)
		}
		return w
	}
	return Null()
}
