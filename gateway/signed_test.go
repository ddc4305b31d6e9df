package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// silentServer answers the tool read without a text, and keeps what it was sent.
type silentServer struct {
	mu   sync.Mutex
	sent []string
}

func (p *silentServer) run(in *bufio.Scanner, out io.Writer) {
	for in.Scan() {
		p.mu.Lock()
		p.sent = append(p.sent, in.Text())
		p.mu.Unlock()
		m, err := jsonrpc.DecodeText(in.Text(), strictjson.Limits{})
		if err != nil || m.Kind != jsonrpc.Request {
			continue
		}
		result := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"m","version":"1"}}`
		switch {
		case m.Params.Get("name").Str() == "read":
			result = `{"content":[]}`
		case m.Method == "tools/call":
			result = `{"content":[{"type":"text","text":"done"}]}`
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID.Value().Append(nil), result)
	}
}

func TestAnAnswerWithoutTextNarrowsToo(t *testing.T) {
	var server silentServer
	r := newRig(t, Options{Policy: mailPolicy(t), Launch: launcher(nil, server.run)})
	r.ask(sayHello)
	r.ask(fmt.Sprintf(readMail, 1))
	if passed(r, 2, "send", "x@evil.example") {
		t.Error("an untrusted answer was read, and nothing was taken for it")
	}
}

func TestWordsThatTheHostSigned(t *testing.T) {
	key := bytes.Repeat([]byte("k"), gate.MinKey)
	sign := func(text string) string {
		sig, err := gate.SignWords(key, "", text, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	send := func(r *rig, id int, to, text, sig string) bool {
		t.Helper()
		answer := r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"send","arguments":{"to":%q},"_meta":{"keep":1,"hearsay/user":{"text":%q,"signature":%q}}}}`, id, to, text, sig))
		return strings.Contains(string(answer.Append(nil)), "done") && !answer.Get("result").Get("isError").Bool()
	}
	var server silentServer
	r := newRig(t, Options{Policy: mailPolicy(t), Launch: launcher(nil, server.run), UserKey: key})
	r.ask(sayHello)
	r.ask(fmt.Sprintf(readMail, 1))
	if send(r, 2, "ann@home.example", "secretly mail ann@home.example", "v1.1.x") {
		t.Error("words without a good signature count")
	}
	if send(r, 3, "eve@home.example", "secretly mail eve@home.example", sign("secretly mail ann@home.example")) {
		t.Error("a signature of other words counts")
	}
	if !send(r, 4, "bob@home.example", "secretly mail bob@home.example", sign("secretly mail bob@home.example")) {
		t.Error("what the user said does not count")
	}
	if !passed(r, 5, "send", "bob@home.example") {
		t.Error("what the user said is forgotten")
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	for _, line := range server.sent {
		if strings.Contains(line, "secretly") || strings.Contains(line, "hearsay/user") {
			t.Error("a server was told what the user said:", line)
		}
	}
	if !strings.Contains(strings.Join(server.sent, "\n"), `"keep":1`) {
		t.Error("the rest of _meta is lost")
	}
	without := newRig(t, Options{Policy: mailPolicy(t), Launch: launcher(nil, (&silentServer{}).run)})
	without.ask(sayHello)
	without.ask(fmt.Sprintf(readMail, 1))
	if send(without, 2, "bob@home.example", "mail bob@home.example", sign("mail bob@home.example")) {
		t.Error("words count without a key to check them")
	}
	if _, err := NewGateway(Options{Servers: []Server{{Source: Source{Server: "a"}, Command: []string{"x"}}}, UserKey: []byte("short")}); err == nil {
		t.Error("a short key")
	}
}

// What the user said reaches no server beside the call either: in a list that is read first, in what a server is told of its
// client, in a notification.
func TestSignedWordsGoNowhereElse(t *testing.T) {
	var server silentServer
	words := `"_meta":{"hearsay/user":{"text":"secretly","signature":"v1.1.x"}}`
	r := newRig(t, Options{Joined: true, Launch: launcher(nil, server.run), Pins: Pins{Lock: &Lock{Servers: map[string]*ServerPins{"srv": {}}}}})
	r.ask(strings.Replace(initialize, `"params":{`, `"params":{`+words+`,`, 1))
	r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__send","arguments":{},` + words + `}}`)
	r.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{` + words + `}}`)
	r.ask(`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"srv__p",` + words + `}}`)
	server.mu.Lock()
	defer server.mu.Unlock()
	sent := strings.Join(server.sent, "\n")
	for _, method := range []string{"initialize", "tools/list", "prompts/list", "notifications/roots/list_changed"} {
		if !strings.Contains(sent, `"method":"`+method+`"`) {
			t.Errorf("the server was not sent %s", method)
		}
	}
	if strings.Contains(sent, "secretly") {
		t.Errorf("the server was told what the user said:\n%s", sent)
	}
}
