package streamhttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// toolList answers tools/list with a tool that has arguments in headers, and anything else with nothing.
func toolList(s *Session, m jsonrpc.Message) {
	result := `{}`
	if m.Method == "tools/list" {
		result = `{"tools":[{"name":"t","inputSchema":{"properties":{"region":{"x-mcp-header":"Region"},"deep":{"properties":{"n":{"x-mcp-header":"N"}}}}}}]}`
	}
	v, err := strictjson.ParseString(result, strictjson.Limits{})
	if err != nil {
		panic(err)
	}
	s.Write(context.Background(), jsonrpc.Message{Kind: jsonrpc.Response, ID: m.ID, Result: v})
}

func TestHeadersRepeatTheArguments(t *testing.T) {
	url, _ := serve(t, toolList)
	call := func(args string, header map[string]string) int {
		h := map[string]string{headerVersion: Modern, headerMethod: "tools/call", headerName: "t"}
		for name, value := range header {
			h[name] = value
		}
		resp, _ := do(t, url, request{header: h, body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":` + args + `,"_meta":{"` + metaVersion + `":"2026-07-28"}}}`})
		return resp.StatusCode
	}
	if got := call(`{"region":"eu"}`, nil); got != http.StatusOK {
		t.Errorf("before the client knew the schema: %d", got)
	}
	do(t, url, request{header: map[string]string{headerVersion: Modern, headerMethod: "tools/list"},
		body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"` + metaVersion + `":"2026-07-28"}}}`})
	for _, tt := range []struct {
		name, args string
		header     map[string]string
		want       int
	}{
		{"the same", `{"region":"eu"}`, map[string]string{"Mcp-Param-Region": "eu"}, 200},
		{"the same, encoded", `{"region":"é"}`, map[string]string{"Mcp-Param-Region": "=?base64?w6k=?="}, 200},
		{"deeper", `{"deep":{"n":7}}`, map[string]string{"Mcp-Param-N": "7"}, 200},
		{"an argument that is not there", `{}`, nil, 200},
		{"another header", `{"region":"eu"}`, map[string]string{"Mcp-Param-Region": "eu", "Mcp-Param-Other": "x"}, 200},
		{"another value", `{"region":"eu"}`, map[string]string{"Mcp-Param-Region": "us"}, 400},
		{"no header", `{"region":"eu"}`, nil, 400},
		{"a header for nothing", `{}`, map[string]string{"Mcp-Param-Region": "eu"}, 400},
		{"a header for null", `{"region":null}`, map[string]string{"Mcp-Param-Region": "eu"}, 400},
		{"not encoded", `{"region":"é"}`, map[string]string{"Mcp-Param-Region": "é"}, 400},
		{"encoded badly", `{"region":"eu"}`, map[string]string{"Mcp-Param-Region": "=?base64?*?="}, 400},
		{"deeper, another value", `{"deep":{"n":7}}`, map[string]string{"Mcp-Param-N": "8"}, 400},
	} {
		if got := call(tt.args, tt.header); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A client that puts the event stream first gets one, in the older era with an event to come back with.
func TestAStreamForThoseWhoPreferIt(t *testing.T) {
	url, _ := serve(t, echo)
	resp, _ := do(t, url, request{body: initialize})
	session := resp.Header.Get(headerSession)
	streamFirst := "text/event-stream, application/json"
	resp, body := do(t, url, request{body: strings.Replace(initialize, "initialize", "ping", 1),
		header: map[string]string{headerSession: session, headerVersion: "2025-11-25", "Accept": streamFirst}})
	var events []event
	readEvents(strings.NewReader(body), 1<<20, func(e event, _ error) bool { events = append(events, e); return true })
	if resp.Header.Get("Content-Type") != "text/event-stream" || len(events) != 2 || events[0].data != "" || !events[0].hasID || !strings.Contains(events[1].data, "ping") {
		t.Fatalf("%s: %q", resp.Header.Get("Content-Type"), body)
	}
	for i, want := range []int{1, 0} { // what is behind the first event, and behind the last
		req, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{headerSession: session, headerLastEvent: events[i].id, "Accept": "text/event-stream", "Authorization": "Bearer ann", headerVersion: "2025-06-18"} {
			req.Header.Set(name, value)
		}
		again, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(again.Body)
		again.Body.Close()
		if err != nil || strings.Count(string(rest), "data: {") != want {
			t.Errorf("behind event %d (%v): %q", i, err, rest)
		}
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"` + metaVersion + `":"2026-07-28"}}}`
	resp, body = do(t, url, request{body: list, header: map[string]string{headerVersion: Modern, headerMethod: "tools/list", "Accept": streamFirst}})
	if got := fmt.Sprint(resp.StatusCode, resp.Header.Get("Content-Type")); got != "200text/event-stream" && got != "200 text/event-stream" || strings.Contains(body, "id: ") {
		t.Errorf("modern: %s %q", got, body)
	}
}

func TestArgumentsInHeadersMustBeThoseOfTheBody(t *testing.T) {
	parse := func(text string) strictjson.Value {
		v, err := strictjson.Parse([]byte(text), strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var known mirrors
	known.learn(parse(`{"tools":[{"name":"q","inputSchema":{"properties":{"region":{"x-mcp-header":"Region"},"n":{"x-mcp-header":"N"},"deep":{"properties":{"b":{"x-mcp-header":"B"}}}}}},{"name":"plain","inputSchema":{}}]}`))
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
		got := known.differ(m, h)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
