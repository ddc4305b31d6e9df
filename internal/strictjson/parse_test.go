package strictjson_test

import (
	"errors"
	"strings"
	"testing"

	. "github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

func TestParseRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := func(last string) string {
		var b strings.Builder
		b.WriteString("{")
		for i := range 100 {
			b.WriteString(`"name` + strings.Repeat("x", i) + `":0,`)
		}
		return b.String() + last + ":1}"
	}
	tests := []struct {
		name, text string
		lim        Limits
		want       error
	}{
		{"a name twice", `{"a":1,"b":2,"a":3}`, Limits{}, ErrDuplicate},
		{"a name twice, once escaped", `{"a":1,"\u0061":3}`, Limits{}, ErrDuplicate},
		{"a name twice at depth", `[{"x":[{"a":1,"a":1}]}]`, Limits{}, ErrDuplicate},
		{"a name twice where twins are kept", `{"a":1,"A":1,"a":2}`, Limits{KeepCaseTwins: true}, ErrDuplicate},
		{"a name twice among many", many(`"namexxx"`), Limits{}, ErrDuplicate},
		{"a name twice among many, twins kept", many(`"namexxx"`), Limits{KeepCaseTwins: true}, ErrDuplicate},
		{"case twins", `{"name":1,"Name":2}`, Limits{}, ErrCaseTwin},
		{"case twins among many", many(`"nAmexxx"`), Limits{}, ErrCaseTwin},
		{"case twins by long s", `{"params":1,"param\u017f":2}`, Limits{}, ErrCaseTwin},
		{"case twins by the Kelvin sign among many", many(`"Token":0,"to\u212Aen"`), Limits{}, ErrCaseTwin},
		{"NUL in a name", `{"a\u0000":1}`, Limits{}, ErrName},
		{"C1 in a name", "{\"a\u0085\":1}", Limits{}, ErrName},
		{"DEL in a name", "{\"a\x7f\":1}", Limits{}, ErrName},
		{"lone surrogate in a name", `{"a\ud800":1}`, Limits{RepairSurrogates: true}, ErrName},
		{"lone high surrogate in a string", `["a\ud800"]`, Limits{}, ErrSurrogate},
		{"lone low surrogate in a string", `["\udc00a"]`, Limits{}, ErrSurrogate},
		{"surrogates in the wrong order", `["\udc00\ud800"]`, Limits{}, ErrSurrogate},
		{"byte order mark", "\uFEFF{}", Limits{}, ErrBOM},
		{"NaN", `{"a":NaN}`, Limits{}, ErrNumber},
		{"Infinity", `[Infinity]`, Limits{}, ErrNumber},
		{"minus Infinity", `[-Infinity]`, Limits{}, ErrNumber},
		{"plus sign", `[+1]`, Limits{}, ErrNumber},
		{"leading zero", `[01]`, Limits{}, ErrSyntax},
		{"no digits after the point", `[1.]`, Limits{}, ErrNumber},
		{"no digits in the exponent", `[1e]`, Limits{}, ErrNumber},
		{"hexadecimal", `[0x10]`, Limits{}, ErrSyntax},
		{"number over the bound", strings.Repeat("9", 5000), Limits{}, ErrNumber},
		{"second value", `{}{}`, Limits{}, ErrTrailing},
		{"garbage after the value", `{} x`, Limits{}, ErrTrailing},
		{"nothing", ``, Limits{}, ErrSyntax},
		{"white space only", " \n", Limits{}, ErrSyntax},
		{"comma before the end of an array", `[1,]`, Limits{}, ErrSyntax},
		{"comma before the end of an object", `{"a":1,}`, Limits{}, ErrSyntax},
		{"missing comma", `[1 2]`, Limits{}, ErrSyntax},
		{"missing colon", `{"a" 1}`, Limits{}, ErrSyntax},
		{"name without quotes", `{a:1}`, Limits{}, ErrSyntax},
		{"single quotes", `{'a':1}`, Limits{}, ErrSyntax},
		{"comment", `[1/**/]`, Limits{}, ErrSyntax},
		{"array that does not end", `[1`, Limits{}, ErrSyntax},
		{"object that does not end", `{"a":`, Limits{}, ErrSyntax},
		{"string that does not end", `"abc`, Limits{}, ErrSyntax},
		{"escape cut off", `"abc\`, Limits{}, ErrSyntax},
		{"unicode escape cut off", `"\u12`, Limits{}, ErrSyntax},
		{"unknown escape", `"\x41"`, Limits{}, ErrSyntax},
		{"raw line break in a string", "\"a\nb\"", Limits{}, ErrSyntax},
		{"raw NUL in a string", "\"a\x00b\"", Limits{}, ErrSyntax},
		{"literal cut off", `[tru]`, Limits{}, ErrSyntax},
		{"too deep", deep(DefaultMaxDepth + 1), Limits{}, ErrTooDeep},
		{"very much too deep", strings.Repeat(`{"a":`, 1<<20), Limits{}, ErrTooDeep},
		{"too deep for a bound of the caller", deep(4), Limits{MaxDepth: 3}, ErrTooDeep},
		{"too long", `[1,2]`, Limits{MaxBytes: 4}, ErrTooLarge},
		{"too many values", `[1,2,3]`, Limits{MaxValues: 3}, ErrTooMany},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Parse([]byte(tt.text), tt.lim)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if v.Kind() != KindAbsent {
				t.Errorf("a refused text gave a value: %s", v.Append(nil))
			}
			if at := new(Error); !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(tt.text) {
				t.Errorf("no place in the text: %v", err)
			}
		})
	}
}

func TestAppendWritesWhatWasRead(t *testing.T) {
	deepest := strings.Repeat("[", DefaultMaxDepth) + strings.Repeat("]", DefaultMaxDepth)
	same := []string{
		`null`, `true`, `false`, `""`, `[]`, `{}`, deepest,
		`1.0`, `-0`, `1e400`, `9007199254740993`, `18446744073709551617`, strings.Repeat("9", 400),
		`{"z":1,"a":{"y":[1,2,{"b":"\/\u0041\ud83d\ude00"}]}}`,
		`"` + "caf\u00e9 \u2028 \U0001F600" + `"`, `{"a" : [ 1 , 2 ]}`,
		`"` + "\uFEFF" + `"`,
	}
	for _, text := range same {
		v, err := Parse([]byte(text), Limits{})
		if err != nil {
			t.Errorf("%.40s: %v", text, err)
		} else if got := string(v.Append(nil)); got != text {
			t.Errorf("%.40s became %.40s", text, got)
		}
	}
	changed := []struct {
		text string
		lim  Limits
		want string
	}{
		{"{\"a\":\n[1,\r\n 2], \"b\" : {\"c\" : 1}}", Limits{}, `{"a":[1,2],"b":{"c" : 1}}`}, // one line
		{"\"a\xffb\xc3\"", Limits{}, "\"a\uFFFDb\uFFFD\""},
		{`{"a":"x\ud800\n","b":"\/"}`, Limits{RepairSurrogates: true}, "{\"a\":\"x\uFFFD\\n\",\"b\":\"\\/\"}"},
		{`{"a":1,"A":2}`, Limits{KeepCaseTwins: true}, `{"a":1,"A":2}`},
	}
	for _, tt := range changed {
		v, err := Parse([]byte(tt.text), tt.lim)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
		} else if got := string(v.Append(nil)); got != tt.want {
			t.Errorf("%q became %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestParseKeepsNothingOfItsInput(t *testing.T) {
	data := []byte(`{"name":"value"}`)
	v, err := Parse(data, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	copy(data, `{"evil":"other"}`)
	if got := v.Get("name").Str(); got != "value" {
		t.Errorf("got %q after the caller changed its bytes", got)
	}
}
