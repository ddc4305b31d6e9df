package jsonrpc

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

func parse(t testing.TB, text string) strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse([]byte(text), strictjson.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestDecodeAndAppend(t *testing.T) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1.50,"method":"ping","params":{"z":1,"a":[1e400]}}`,
		`{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`,
		`{"jsonrpc":"2.0","id":"\u0061","result":null}`,
		`{"jsonrpc":"2.0","id":"","error":{"code":-32601,"message":"no","data":{"x":18446744073709551617}}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`,
		`{"jsonrpc":"2.0","method":"notifications/x","params":[1],"trace":{"id":7}}`,
	} {
		m, err := Decode(parse(t, text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := string(m.Append(nil)); got != text {
			t.Errorf("%s\nbecame %s", text, got)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"an array":                  `[]`,
		"no version":                `{"id":1,"method":"ping"}`,
		"another version":           `{"jsonrpc":"1.0","id":1,"method":"ping"}`,
		"a version that is no text": `{"jsonrpc":2.0,"id":1,"method":"ping"}`,
		"id is an array":            `{"jsonrpc":"2.0","id":[1],"result":{}}`,
		"id is an object":           `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		"id is a bool":              `{"jsonrpc":"2.0","id":true,"result":{}}`,
		"id is too long":            `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 2000) + `","result":{}}`,
		"a request with a null id":  `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		"a result without id":       `{"jsonrpc":"2.0","result":{}}`,
		"a result with a null id":   `{"jsonrpc":"2.0","id":null,"result":{}}`,
		"result and error":          `{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}`,
		"neither":                   `{"jsonrpc":"2.0","id":1}`,
		"method and result":         `{"jsonrpc":"2.0","id":1,"method":"x","result":1}`,
		"method is null":            `{"jsonrpc":"2.0","id":1,"method":null}`,
		"params are text":           `{"jsonrpc":"2.0","id":1,"method":"x","params":"y"}`,
		"params are null":           `{"jsonrpc":"2.0","id":1,"method":"x","params":null}`,
		"a response with params":    `{"jsonrpc":"2.0","id":1,"result":1,"params":{}}`,
		"an empty error":            `{"jsonrpc":"2.0","id":1,"error":{}}`,
		"an error that is text":     `{"jsonrpc":"2.0","id":1,"error":"x"}`,
		"an error code 1.5":         `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}`,
		"a huge error code":         `{"jsonrpc":"2.0","id":1,"error":{"code":99999999999,"message":"x"}}`,
	} {
		if m, err := Decode(parse(t, text)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, %v", name, m, err)
		}
	}
}

func TestIDsKeepTheirDifference(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{`1`, `1.0`, `1e0`, `"1"`, `9007199254740992`, `9007199254740993`, `-0`, `0`, `""`, `"\""`, `"\"1"`} {
		id, ok := NewID(parse(t, text))
		if !ok {
			t.Errorf("%s is no id", text)
		}
		if other, twice := seen[id.Key()]; twice {
			t.Errorf("%s and %s are one id", text, other)
		}
		seen[id.Key()] = text
	}
	a, _ := NewID(parse(t, `"a"`))
	if b, _ := NewID(parse(t, `"\u0061"`)); a.Key() != b.Key() {
		t.Error("the same characters, written otherwise, are another id")
	}
	if (ID{}).Key() != "" || !(ID{}).IsZero() {
		t.Error("the zero id")
	}
}

func TestErrorCode(t *testing.T) {
	for lit, want := range map[string]int{"-32601": -32601, "0": 0, "-0": 0, "42": 42} {
		if got, ok := ErrorCode(NewError(0, "", strictjson.Value{}).With("code", strictjson.Number(lit))); !ok || got != want {
			t.Errorf("%s: %d, %v", lit, got, ok)
		}
	}
}
