package gateway

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A call is sent by the goroutine that reads the client. A server that takes no more of them must not hold up the others.
func TestAServerThatReadsNothingDoesNotHoldUpTheOthers(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	r := world(t, map[string]fakeServer{
		"stuck": func(in *bufio.Scanner, out io.Writer) {
			in.Scan()
			id := strings.SplitN(strings.SplitN(in.Text(), `"id":`, 2)[1], ",", 2)[0]
			io.WriteString(out, `{"jsonrpc":"2.0","id":`+id+`,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`+"\n")
			<-release
		},
		"sound": offering("sound", []string{"t"}, nil, nil),
	})
	r.ask(initialize)
	for n := range 800 { // each is two messages to the server: more than may wait for it
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"stuck__t","arguments":{"a":"%s"}}}`, n, strings.Repeat("x", 1000)))
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n))
	}
	if v := string(r.ask(`{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"sound__t"}}`).Append(nil)); !strings.Contains(v, "answered by sound") {
		t.Errorf("answered %s", v)
	}
}
