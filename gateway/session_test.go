package gateway

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// echo answers each request with what it got, as a tool's structured content that a first-party server may send.
func echo(_ string, m strictjson.Value) string {
	return `"result":{"structuredContent":` + string(m.Append(nil)) + `}`
}

func trusted(opt Options) Options {
	opt.Servers = []Server{{Source: Source{Server: "srv", Trust: FirstParty}, Command: []string{"fake"}}}
	return opt
}

// got is what echo got.
func got(v strictjson.Value) strictjson.Value { return v.Get("result").Get("structuredContent") }

func TestRequestsReachTheServerAsTheyWereRead(t *testing.T) {
	r := newRig(t, trusted(Options{Launch: launcher(nil, answering(echo))}))
	r.ask(initialize)
	for _, id := range []string{`1`, `1.50`, `9007199254740993`, `"1"`, `"\u0061\/"`, `-0`, `1e2`} {
		params := `{"z":18446744073709551617,"name":"t","arguments":{"b":1e400,"a":{"\u0078":[1.0,null]}},"_meta":{"vendor/x":1},"future":{"q":-0}}`
		v := r.ask(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":` + params + `,"trace":{"id":7}}`)
		if s := string(v.Get("id").Append(nil)); s != id {
			t.Errorf("id %s came back as %s", id, s)
		}
		if s := string(got(v).Get("params").Append(nil)); s != params {
			t.Errorf("the server got %s\nwant          %s", s, params)
		}
		if s := string(got(v).Get("trace").Append(nil)); s != `{"id":7}` {
			t.Errorf("a member beside the protocol's became %s", s)
		}
		if s := string(got(v).Get("id").Append(nil)); s == id && id != `1` {
			t.Errorf("the client's id %s reached the server", id)
		}
	}
}

func TestWhatIsAmbiguousOrUnknownNeverReachesTheServer(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	r := newRig(t, Options{Launch: launcher(nil, answering(func(method string, m strictjson.Value) string {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, method)
		return `"result":{"content":[]}`
	}))})
	r.ask(initialize)
	for _, tt := range []struct{ name, line, id, code string }{
		{"case twin of name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_note","Name":"delete_all","arguments":{}}}`, `1`, `-32600`},
		{"params by the long s", `{"jsonrpc":"2.0","id":2,"method":"tools/call","param\u017f":{"name":"delete_all"},"params":{"name":"read_note"}}`, `2`, `-32600`},
		{"name twice", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read_note","name":"delete_all"}}`, `3`, `-32600`},
		{"an argument twice, deep", `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"t","arguments":{"a":[{"b":1,"b":2}]}}}`, `4`, `-32600`},
		{"NUL in an argument's name", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t","arguments":{"a\u0000":1}}}`, `5`, `-32600`},
		{"lone surrogate in the tool's name", `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"read\ud800note"}}`, `6`, `-32600`},
		{"unknown method", `{"jsonrpc":"2.0","id":7,"method":"tools/delete","params":{}}`, `7`, `-32601`},
		{"a server's method", `{"jsonrpc":"2.0","id":8,"method":"sampling/createMessage","params":{}}`, `8`, `-32601`},
		{"a notification's method", `{"jsonrpc":"2.0","id":9,"method":"notifications/cancelled","params":{}}`, `9`, `-32601`},
		{"params are a list", `{"jsonrpc":"2.0","id":10,"method":"tools/call","params":[]}`, `10`, `-32602`},
		{"no version", `{"id":11,"method":"tools/call","params":{"name":"t"}}`, `11`, `-32600`},
		{"NaN", `{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"t","arguments":{"x":NaN}}}`, `12`, `-32700`},
		{"an id that is a list", `{"jsonrpc":"2.0","id":[1],"method":"tools/call","params":{"name":"t"}}`, `null`, `-32600`},
	} {
		r.send(tt.line)
		v := parsed(t, r.next())
		if id, code := string(v.Get("id").Append(nil)), v.Get("error").Get("code").Number(); id != tt.id || code != tt.code {
			t.Errorf("%s: answered %s", tt.name, v.Append(nil))
		}
	}
	r.ask(`{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"t"}}`) // all before it has been read by now
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(seen, []string{"tools/call"}) {
		t.Errorf("the server got %q", seen)
	}
}

func TestOneIDIsOneRequest(t *testing.T) {
	release := make(chan struct{})
	r := newRig(t, Options{Launch: launcher(nil, answering(func(_ string, m strictjson.Value) string {
		if m.Get("params").Get("name").Str() == "slow" {
			<-release
		}
		return `"result":{"content":[]}`
	}))})
	r.ask(initialize)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fast"}}`)
	if v := parsed(t, r.next()); !strings.Contains(v.Get("error").Get("message").Str(), "still open") {
		t.Errorf("the second request was answered %s", v.Append(nil))
	}
	close(release)
	if v := parsed(t, r.next()); v.Get("result").Kind() != strictjson.KindObject {
		t.Errorf("the first request was answered %s", v.Append(nil))
	}
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fast"}}`) // free again
}

func TestRequestsKeepTheirOrder(t *testing.T) {
	var order []string
	r := newRig(t, Options{Launch: launcher(nil, answering(func(method string, m strictjson.Value) string {
		order = append(order, m.Get("params").Get("name").Str())
		return `"result":{"content":[]}`
	}))})
	r.send(initialize)
	for i := range 100 { // some come before the server runs
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t%02d"}}`, i, i))
	}
	answers := map[string]bool{}
	for range 101 {
		answers[string(parsed(t, r.next()).Get("id").Append(nil))] = true
	}
	if len(answers) != 101 {
		t.Errorf("%d answers for 101 requests", len(answers))
	}
	if !slices.IsSorted(order) || len(order) != 100 {
		t.Errorf("the server got %d calls in the order %v", len(order), order)
	}
}

func TestNothingIsLostAmongManyCalls(t *testing.T) {
	r := newRig(t, Options{Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) { // answers out of order
		var held []string
		for in.Scan() {
			m := parsed(t, in.Text())
			id := string(m.Get("id").Append(nil))
			switch m.Get("method").Str() {
			case "initialize":
				io.WriteString(out, `{"jsonrpc":"2.0","id":`+id+`,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"f","version":"1"}}}`+"\n")
			case "tools/call":
				held = append(held, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"`+m.Get("params").Get("arguments").Get("n").Str()+`"}]}}`)
				if len(held) == 200 {
					for i := range held {
						io.WriteString(out, held[(i*37)%200]+"\n")
					}
					held = nil
				}
			}
		}
	})})
	r.ask(initialize)
	for i := range 200 {
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"t","arguments":{"n":"n%d."}}}`, i, i))
	}
	seen := map[string]bool{}
	for range 200 {
		line := r.next()
		id := parsed(t, line).Get("id").Str()
		seen[id] = true
		if !strings.Contains(line, "n"+strings.TrimPrefix(id, "c")+".") {
			t.Errorf("call %s was answered %s", id, line)
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d of 200 calls were answered", len(seen))
	}
}

func TestCancellationIsMappedAndEndsTheCall(t *testing.T) {
	got := make(chan string, 10)
	r := newRig(t, Options{Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) {
		open := ""
		answering(func(method string, m strictjson.Value) string {
			switch {
			case method == "notifications/cancelled":
				got <- string(m.Get("params").Append(nil)) + " open " + open
				io.WriteString(out, `{"jsonrpc":"2.0","id":`+open+`,"result":{"content":[{"type":"text","text":"late"}]}}`+"\n")
			case m.Get("params").Get("name").Str() == "slow":
				open = string(m.Get("id").Append(nil))
				return ""
			}
			return `"result":{"content":[]}`
		})(in, out)
	})})
	r.ask(initialize)
	r.send(`{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"slow"}}`)
	r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"other"}}`) // nobody's
	r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mine","reason":"the user \u003c said so","vendor":1}}`)
	g := <-got
	if _, open, _ := strings.Cut(g, " open "); open == "" || g != `{"requestId":`+open+`,"reason":"the user \u003c said so","vendor":1} open `+open {
		t.Errorf("the server was told %s", g)
	}
	if v := r.ask(`{"jsonrpc":"2.0","id":"next","method":"tools/call","params":{"name":"fast"}}`, func(line string) {
		t.Errorf("the client got %s", line)
	}); v.Get("result").Kind() != strictjson.KindObject {
		t.Errorf("the next call: %s", v.Append(nil))
	}
}

func TestProgressTokensAreMapped(t *testing.T) {
	r := newRig(t, Options{Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) {
		answering(func(method string, m strictjson.Value) string {
			token := m.Get("params").Get("_meta").Get("progressToken")
			for _, token := range []string{`"mine"`, string(token.Append(nil)), `77`} { // the client's own is not known here
				io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+token+`,"progress":1}}`+"\n")
			}
			return `"result":{"content":[]}`
		})(in, out)
	})})
	r.ask(initialize)
	var seen []string
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"mine","vendor/x":1}}}`, func(line string) {
		seen = append(seen, string(parsed(t, line).Get("params").Get("progressToken").Append(nil)))
	})
	r.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`, func(line string) { seen = append(seen, line) })
	if !slices.Equal(seen, []string{`"mine"`}) {
		t.Errorf("the client got progress for %q", seen)
	}
}

func TestRequestsOfAServer(t *testing.T) {
	replies := make(chan string, 10)
	send := make(chan string, 10)
	r := newRig(t, Options{Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) {
		go func() {
			for line := range send {
				io.WriteString(out, line+"\n")
			}
		}()
		answering(func(method string, m strictjson.Value) string {
			if method != "tools/call" {
				replies <- string(m.Append(nil))
			}
			return `"result":{"content":[]}`
		})(in, out)
	})})
	defer close(send)
	r.ask(initialize) // declares sampling, form elicitation and roots
	for _, refused := range []string{
		`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"send_mail"}}`,
		`{"jsonrpc":"2.0","id":"x","method":"tasks/list"}`,
		`{"jsonrpc":"2.0","id":"x","method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://example.com/","elicitationId":"1"}}`,
		`{"jsonrpc":"2.0","id":"x","method":"roots/delete"}`,
	} {
		send <- refused
		if v := parsed(t, <-replies); v.Get("error").Get("code").Number() != "-32601" || v.Get("id").Str() != "x" {
			t.Errorf("%s was answered %s", refused, v.Append(nil))
		}
	}
	send <- `{"jsonrpc":"2.0","id":1.0,"method":"roots/list","params":{"_meta":{"progressToken":"theirs"}}}`
	asked := parsed(t, r.next())
	if asked.Get("method").Str() != "roots/list" || string(asked.Get("id").Append(nil)) == `1.0` {
		t.Fatalf("the client was asked %s", asked.Append(nil))
	}
	token := string(asked.Get("params").Get("_meta").Get("progressToken").Append(nil))
	r.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":0.5}}`)
	if p := parsed(t, <-replies); p.Get("params").Get("progressToken").Str() != "theirs" {
		t.Errorf("the server was told of progress %s", p.Append(nil))
	}
	r.send(`{"jsonrpc":"2.0","id":` + string(asked.Get("id").Append(nil)) + `,"result":{"roots":[{"uri":"file:///a","vendor":1e400}]}}`)
	if p := <-replies; p != `{"jsonrpc":"2.0","id":1.0,"result":{"roots":[{"uri":"file:///a","vendor":1e400}]}}` {
		t.Errorf("the server was answered %s", p)
	}

	send <- `{"jsonrpc":"2.0","id":"gone","method":"roots/list"}`
	asked = parsed(t, r.next())
	send <- `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gone","reason":"over"}}`
	cancelled := parsed(t, r.next())
	if cancelled.Get("method").Str() != "notifications/cancelled" || string(cancelled.Get("params").Get("requestId").Append(nil)) != string(asked.Get("id").Append(nil)) {
		t.Errorf("the client was told %s", cancelled.Append(nil))
	}
}

func TestServersWithoutSessionsMayNotAsk(t *testing.T) {
	refused := make(chan string, 1)
	r := newRig(t, Options{Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) {
		answering(func(method string, m strictjson.Value) string {
			if method == "" {
				refused <- m.Get("error").Get("code").Number()
				return ""
			}
			io.WriteString(out, `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`+"\n")
			return `"result":{"resultType":"complete","content":[]}`
		})(in, out)
	})})
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`,
		func(line string) { t.Errorf("the client got %s", line) })
	if code := <-refused; code != "-32601" {
		t.Errorf("the server's request was answered with %s", code)
	}
}

func TestADyingServerFailsItsCallsAndIsStartedAgain(t *testing.T) {
	var again []string
	said := make(chan struct{}, 10)
	r := newRig(t, Options{Launch: launcher(nil,
		func(in *bufio.Scanner, out io.Writer) {
			for in.Scan() {
				m := parsed(t, in.Text())
				id := string(m.Get("id").Append(nil))
				switch m.Get("method").Str() {
				case "initialize":
					io.WriteString(out, `{"jsonrpc":"2.0","id":`+id+`,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"f","version":"1"}}}`+"\n")
				case "tools/call":
					io.WriteString(out, `{"jsonrpc":"2.0","id":`+id+`,"result":{"cont`) // half a line
					return
				case "notifications/initialized":
				default:
					io.WriteString(out, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`+"\n")
				}
			}
		},
		answering(func(method string, m strictjson.Value) string {
			again = append(again, method+" "+string(m.Get("params").Append(nil)))
			if method == "notifications/initialized" {
				said <- struct{}{}
			}
			return `"result":{"content":[]}`
		}))})
	r.ask(initialize)
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"warning"}}`)
	r.ask(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a://b"}}`)
	v := r.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}`)
	if v.Get("error").Get("code").Number() != "-32603" {
		t.Errorf("the call of a server that died was answered %s", v.Append(nil))
	}
	v = r.ask(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"t"}}`)
	if v.Get("result").Kind() != strictjson.KindObject {
		t.Errorf("the call after it was answered %s", v.Append(nil))
	}
	want := []string{`notifications/initialized null`, `logging/setLevel {"level":"warning"}`, `resources/subscribe {"uri":"a://b"}`, `tools/call {"name":"t"}`}
	if !slices.Equal(again, want) {
		t.Errorf("the second server got %q\nwant %q", again, want)
	}
}

func TestAServerThatKeepsDyingIsStartedEverLessOften(t *testing.T) {
	starts := 0
	r := newRig(t, Options{Launch: launcher(func(Server) { starts++ }, func(in *bufio.Scanner, out io.Writer) { in.Scan() })})
	for i := range 20 {
		v := r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i))
		if v.Get("error").Kind() != strictjson.KindObject {
			t.Errorf("answered %s", v.Append(nil))
		}
	}
	if starts > 4 { // at once, once more, and then after a second
		t.Errorf("started %d times for 20 requests", starts)
	}
}

func TestACallThatTakesTooLongIsGivenUp(t *testing.T) {
	told, asked := make(chan string, 1), make(chan string, 1)
	opt := Options{
		Servers: []Server{{Source: Source{Server: "srv"}, Command: []string{"fake"}, CallTimeout: 50 * time.Millisecond}},
		Launch: launcher(nil, answering(func(method string, m strictjson.Value) string {
			if method == "notifications/cancelled" {
				told <- string(m.Get("params").Get("requestId").Append(nil))
			}
			if m.Get("params").Get("name").Str() == "hang" {
				asked <- string(m.Get("id").Append(nil))
				return ""
			}
			return `"result":{"content":[]}`
		})),
	}
	r := newRig(t, opt)
	r.ask(initialize)
	v := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang"}}`)
	if !strings.Contains(v.Get("error").Get("message").Str(), "did not answer within 50ms") {
		t.Errorf("answered %s", v.Append(nil))
	}
	if id, want := <-told, <-asked; id != want {
		t.Errorf("the server was told to give up %s", id)
	}
}

func TestAnUnreadableAnswerFailsItsCallAtOnce(t *testing.T) {
	r := newRig(t, Options{Launch: launcher(nil, answering(func(method string, m strictjson.Value) string {
		switch m.Get("params").Get("name").Str() {
		case "twice":
			return `"result":{"content":[],"content":[]}`
		case "nan":
			return `"result":{"content":[],"x":NaN}`
		case "both":
			return `"result":{},"error":{"code":1,"message":"x"}`
		case "deep":
			return `"result":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
		}
		return `"result":{"content":[]}`
	}))})
	r.ask(initialize)
	for _, name := range []string{"twice", "nan", "both", "deep"} {
		if v := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `"}}`); !strings.Contains(v.Get("error").Get("message").Str(), "is refused") {
			t.Errorf("%s: answered %s", name, v.Append(nil))
		}
	}
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
}

func TestFloodsAreBounded(t *testing.T) {
	r := newRig(t, Options{Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) {
		answering(func(method string, m strictjson.Value) string {
			for range 20000 {
				io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`+"\n")
			}
			for range 5000 {
				io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n")
			}
			return `"result":{"content":[]}`
		})(in, out)
	})})
	r.ask(initialize)
	count := map[string]int{}
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`, func(line string) { count[parsed(t, line).Get("method").Str()]++ })
	if n := count["notifications/message"]; n < 1000 || n > 15000 {
		t.Errorf("%d of 20,000 log messages passed", n)
	}
	if n := count["notifications/tools/list_changed"]; n < 1 || n > 100 {
		t.Errorf("%d of 5,000 changes were told", n)
	}
}

func TestAFloodOfRequestsIsBounded(t *testing.T) {
	refused := make(chan int, 1)
	r := newRig(t, Options{Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) {
		count := 0
		answering(func(method string, m strictjson.Value) string {
			if method == "" {
				if m.Get("error").Get("code").Number() == "-32603" {
					count++
				}
				return ""
			}
			if m.Get("params").Get("name").Str() == "count" {
				refused <- count
				return `"result":{"content":[]}`
			}
			for i := range 3000 {
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"r%d","method":"roots/list"}`+"\n", i)
			}
			return `"result":{"content":[]}`
		})(in, out)
	})})
	r.ask(initialize)
	asked := 0
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"flood"}}`, func(line string) {
		asked++
		r.send(`{"jsonrpc":"2.0","id":` + string(parsed(t, line).Get("id").Append(nil)) + `,"result":{"roots":[]}}`)
	})
	r.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count"}}`, func(string) { asked++ })
	if n := <-refused; asked < 10 || asked > 1000 || n == 0 {
		t.Errorf("the client was asked %d of 3,000 times, the server was told so %d times", asked, n)
	}
}

func TestChangesAreToldAtOnceAndThenOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		began := time.Now()
		l := &link{}
		l.unasked.init()
		deliver := func() { told = append(told, time.Since(began)) }
		for range 10 {
			l.changes.tell("key", 1, deliver)
		}
		l.changes.tell("other", 1, deliver)
		time.Sleep(time.Minute)
		l.changes.tell("key", 1, deliver)
		time.Sleep(time.Minute)
		want := []time.Duration{0, 0, changeGap, time.Minute}
		if !slices.Equal(told, want) {
			t.Errorf("told at %v, want %v", told, want)
		}
	})
}

func TestSubscriptionsAreMapped(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	r := newRig(t, Options{Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) {
		answering(func(method string, m strictjson.Value) string {
			if method != "subscriptions/listen" {
				return `"result":{"resultType":"complete","content":[]}`
			}
			id := string(m.Get("id").Append(nil))
			note := func(method, id, more string) {
				io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/`+method+`","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":`+id+`}`+more+`}}`+"\n")
			}
			note("tools/list_changed", id, "")                                                                    // before the acknowledgement
			note("subscriptions/acknowledged", id, `,"notifications":{"toolsListChanged":true}`)                  //
			note("subscriptions/acknowledged", id, `,"notifications":{"toolsListChanged":true}`)                  // again
			note("prompts/list_changed", id, "")                                                                  // not asked for
			note("tools/list_changed", `"someone-else"`, "")                                                      // not this one
			note("resources/updated", id, `,"uri":"file:///etc/passwd"`)                                          // not asked for
			io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`+"\n") // no subscription
			note("resources/updated", id, `,"uri":"a://b"`)
			note("tools/list_changed", id, "")
			return `"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}`
		})(in, out)
	})})
	var seen []string
	v := r.ask(`{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://b"]},`+meta+`}}`, func(line string) {
		m := parsed(t, line)
		seen = append(seen, strings.TrimPrefix(m.Get("method").Str(), "notifications/")+" "+m.Get("params").Get("_meta").Get(metaSubscription).Str())
	})
	if want := []string{"subscriptions/acknowledged L", "resources/updated L", "tools/list_changed L"}; !slices.Equal(seen, want) {
		t.Errorf("the client got %q, want %q", seen, want)
	}
	if got := v.Get("result").Get("_meta").Get(metaSubscription).Str(); got != "L" {
		t.Errorf("the end: %s", v.Append(nil))
	}
}

func TestListsThatDoNotEnd(t *testing.T) {
	r := newRig(t, Options{Launch: launcher(nil, answering(func(method string, m strictjson.Value) string {
		next := `"again"`
		if method == "prompts/list" {
			next = `"` + m.Get("params").Get("cursor").Str() + `x"`
		}
		return `"result":{"tools":[],"prompts":[],"nextCursor":` + next + `}`
	}))})
	r.ask(initialize)
	pages := func(method string) int {
		params := `{}`
		for n := 1; ; n++ {
			v := r.ask(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
			next := v.Get("result").Get("nextCursor")
			if next.Kind() == strictjson.KindAbsent {
				return n
			}
			params = `{"cursor":` + string(next.Append(nil)) + `}`
		}
	}
	if n := pages("tools/list"); n != 2 {
		t.Errorf("a list in a circle has %d pages", n)
	}
	if n := pages("prompts/list"); n != maxPages+1 {
		t.Errorf("an endless list has %d pages", n)
	}
}

func TestAnswersReachAClientThatSendsNoMore(t *testing.T) {
	r := newRig(t, Options{Launch: launcher(nil, answering(func(method string, m strictjson.Value) string { return `"result":{"content":[]}` }))})
	r.send(initialize)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
	r.in.Close()
	seen := map[string]bool{}
	for r.lines.Scan() {
		seen[string(parsed(t, r.lines.Text()).Get("id").Append(nil))] = true
	}
	if want := map[string]bool{`"init"`: true, `1`: true}; !maps.Equal(seen, want) {
		t.Errorf("answers to %v", seen)
	}
}

func TestNewGatewayRefuses(t *testing.T) {
	one := Server{Source: Source{Server: "a"}, Command: []string{"x"}}
	for name, servers := range map[string][]Server{
		"no server":      nil,
		"no name":        {{Command: []string{"x"}}},
		"an odd name":    {{Source: Source{Server: "a b"}, Command: []string{"x"}}},
		"no command":     {{Source: Source{Server: "a"}}},
		"one name twice": {one, one},
	} {
		if _, err := NewGateway(Options{Servers: servers}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A server may use the id of its request again as soon as it has the answer.
func TestAServerMayUseAnIDAgain(t *testing.T) {
	const times = 150 // within the rate that a server may ask at
	r := newRig(t, trusted(Options{Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) {
		asked := 0
		for in.Scan() {
			m := parsed(t, in.Text())
			id := string(m.Get("id").Append(nil))
			switch {
			case m.Get("method").Str() == "initialize":
				io.WriteString(out, `{"jsonrpc":"2.0","id":`+id+`,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"fake","version":"1"}}}`+"\n")
			case m.Get("error").Kind() != strictjson.KindAbsent:
				t.Errorf("request %d was answered with %s", asked, m.Get("error").Append(nil))
				return
			case asked < times:
				asked++
				io.WriteString(out, `{"jsonrpc":"2.0","id":"q","method":"roots/list"}`+"\n")
			}
		}
	})}))
	r.ask(initialize)
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for range times {
		r.send(`{"jsonrpc":"2.0","id":` + string(parsed(t, r.next()).Get("id").Append(nil)) + `,"result":{"roots":[]}}`)
	}
}
