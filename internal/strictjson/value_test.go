package strictjson_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

func mustParse(t testing.TB, text string) Value {
	t.Helper()
	v, err := Parse([]byte(text), Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestReading(t *testing.T) {
	v := mustParse(t, `{"s":"a\u0062\n","n":1.50,"b":true,"z":null,"l":[1,[2],{"x":3}],"o":{"k\u0065y":"v"}}`)
	if v.Kind() != KindObject || v.Len() != 6 {
		t.Errorf("kind %v, %d members", v.Kind(), v.Len())
	}
	if got := v.Get("s").Str(); got != "ab\n" {
		t.Errorf("string %q", got)
	}
	if got := v.Get("n").Number(); got != "1.50" {
		t.Errorf("number %q", got)
	}
	if !v.Get("b").Bool() || v.Get("z").Kind() != KindNull {
		t.Error("bool or null")
	}
	if got := v.Get("o").Get("key").Str(); got != "v" {
		t.Errorf("value of an escaped name: %q", got)
	}
	if v.Get("o").Get("missing").Get("more").Kind() != KindAbsent {
		t.Error("a missing member is not absent")
	}
	var kinds []string
	for i, e := range v.Get("l").Elems() {
		kinds = append(kinds, fmt.Sprint(i, e.Kind(), e.Len()))
	}
	if got, want := strings.Join(kinds, "; "), "0 number 0; 1 array 1; 2 object 1"; got != want {
		t.Errorf("elements %s, want %s", got, want)
	}
	if v.Str() != "" || v.Number() != "" || v.Get("s").Len() != 0 || v.Get("s").Bool() {
		t.Error("a method for another kind gave something")
	}
}

func TestBuilding(t *testing.T) {
	v := Object(
		Member{"a", Number("1.0")}, Member{"b", String("x\"\\\n\t\r\x00\u2028\u2029\u2026é\xff")},
		Member{"c", Array(Bool(true), Value{}, Null())}, Member{"gone", Value{}}, Member{"a", Bool(false)},
	)
	want := `{"a":false,"b":"x\"\\\n\t\r\u0000\u2028\u2029…é` + "\uFFFD" + `","c":[true,null]}`
	if got := string(v.Append(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, lit := range []string{"", "01", "1.", "NaN", "1 ", "0x1", strings.Repeat("1", 5000)} {
		if Number(lit).Kind() != KindAbsent {
			t.Errorf("Number(%.10q) is not absent", lit)
		}
	}
	var members []Member
	for i := range 200 {
		members = append(members, Member{fmt.Sprint("n", i%100), Number(fmt.Sprint(i))})
	}
	if many := Object(members...); many.Len() != 100 || many.Get("n7").Number() != "107" {
		t.Errorf("%d members, n7 = %s", many.Len(), many.Get("n7").Number())
	}
}

func TestChanging(t *testing.T) {
	v := mustParse(t, `{"a":1.0,"b":{"x":"\/"},"c":3}`)
	tests := []struct {
		name string
		got  Value
		want string
	}{
		{"in place", v.With("b", Bool(true)), `{"a":1.0,"b":true,"c":3}`},
		{"at the end", v.With("d", Null()), `{"a":1.0,"b":{"x":"\/"},"c":3,"d":null}`},
		{"absent takes away", v.With("b", Value{}), `{"a":1.0,"c":3}`},
		{"absent and unknown changes nothing", v.With("d", Value{}), `{"a":1.0,"b":{"x":"\/"},"c":3}`},
		{"without", v.Without("c", "zzz", "a"), `{"b":{"x":"\/"}}`},
		{"without what it lacks", v.Without("zzz"), `{"a":1.0,"b":{"x":"\/"},"c":3}`},
		{"with on a string", String("x").With("a", Null()), `{"a":null}`},
		{"the value itself stays", v, `{"a":1.0,"b":{"x":"\/"},"c":3}`},
		{"a changed value stays", func() Value {
			w := v.With("d", Null())
			w.With("d", Bool(true))
			w.Without("a")
			w.With("e", Bool(true))
			return w
		}(), `{"a":1.0,"b":{"x":"\/"},"c":3,"d":null}`},
	}
	for _, tt := range tests {
		if got := string(tt.got.Append(nil)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestAny(t *testing.T) {
	v := mustParse(t, `{"n":9007199254740993,"l":["a",null,true],"o":{}}`)
	if got, want := fmt.Sprintf("%#v", v.Any()), `map[string]interface {}{"l":[]interface {}{"a", interface {}(nil), true}, "n":"9007199254740993", "o":map[string]interface {}{}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func ExampleParse() {
	v, err := Parse([]byte(`{"id":9007199254740993,"params":{"name":"echo"}}`), Limits{})
	if err != nil {
		panic(err)
	}
	fmt.Println(v.Get("id").Number(), v.Get("params").Get("name").Str())
	fmt.Println(string(v.With("method", String("tools/call")).Append(nil)))
	_, err = Parse([]byte(`{"name":"read_note","Name":"delete_all"}`), Limits{})
	fmt.Println(err)
	// Output:
	// 9007199254740993 echo
	// {"id":9007199254740993,"params":{"name":"echo"},"method":"tools/call"}
	// reading JSON: names of an object differ only in case at byte 26
}

func TestSizeIsEnoughForHonestTexts(t *testing.T) {
	long := strings.Repeat("a line of text\n", 1000)
	for _, v := range []Value{
		mustParse(t, `{"a":[1,2,{"b":"\/"}],"c":"`+"x"+`"}`), String(long), Object(Member{"text", String(long)}, Member{"n", Number("1.0")}),
		Array(String(long), Null(), mustParse(t, `"x"`)), {},
	} {
		if n, size := len(v.Append(nil)), v.Size(); size < n || size > 2*n+20 {
			t.Errorf("%d bytes, size %d: %.60s", n, size, v.Append(nil))
		}
	}
}
