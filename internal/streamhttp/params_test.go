package streamhttp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

func TestArgumentsInHeadersMustBeThoseOfTheBody(t *testing.T) {
	parse := func(text string) strictjson.Value {
		v, err := strictjson.Parse([]byte(text), strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	s := newSession("", "")
	s.learn(parse(`{"tools":[{"name":"q","inputSchema":{"properties":{"region":{"x-mcp-header":"Region"},"n":{"x-mcp-header":"N"},"deep":{"properties":{"b":{"x-mcp-header":"B"}}}}}},{"name":"plain","inputSchema":{}}]}`))
	for _, tt := range []struct{ name, tool, args, headers, want string }{
		{"as they are", "q", `{"region":"eu","n":42,"deep":{"b":true}}`, "Region=eu N=42 B=true", ""},
		{"base64", "q", `{"region":"é"}`, "Region==?base64?w6k=?=", ""},
		{"another value", "q", `{"region":"eu"}`, "Region=us", "is not the argument"},
		{"another case", "q", `{"region":"eu"}`, "Region=EU", "is not the argument"},
		{"another number", "q", `{"n":42}`, "N=43", "is not the argument"},
		{"a number written otherwise", "q", `{"n":42}`, "N=042", ""},
		{"missing", "q", `{"region":"eu"}`, "", "is missing"},
		{"nested and missing", "q", `{"deep":{"b":false}}`, "", "is missing"},
		{"without argument", "q", `{}`, "Region=eu", "has no argument"},
		{"null argument", "q", `{"region":null}`, "Region=eu", "has no argument"},
		{"bad padding", "plain", `{}`, "X==?base64?w6k?=", "cannot be decoded"},
		{"a tool without such", "plain", `{"region":"eu"}`, "", ""},
		{"a tool that was not listed", "other", `{}`, "Region=eu", ""},
	} {
		h := http.Header{}
		for _, field := range strings.Fields(tt.headers) {
			name, value, _ := strings.Cut(field, "=")
			h.Set(headerParam+name, value)
		}
		m := jsonrpc.Message{Kind: jsonrpc.Request, Method: "tools/call", Params: parse(`{"name":"` + tt.tool + `","arguments":` + tt.args + `}`)}
		got := s.paramsDiffer(h, m)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
