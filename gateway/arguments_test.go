package gateway

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/gate"
)

// Arguments that are no object cannot be judged by name: a server that reads them all the same must not get them.
func TestArgumentsAreAnObject(t *testing.T) {
	policy, err := gate.Compile(gate.Spec{Permissions: gate.Permissions{
		Allow: []gate.Source{{Text: "srv.write"}}, Deny: []gate.Source{{Text: "srv.write(path:/etc/**)"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*gate.Policy{policy, nil} {
		got := new(lockedBuffer)
		r := newRig(t, Options{Policy: p, Launch: launcher(nil, func(in *bufio.Scanner, out io.Writer) {
			mailServer(bufio.NewScanner(io.TeeReader(scanned{in}, got)), out)
		})})
		r.ask(sayHello)
		for i, args := range []string{`["/etc/passwd"]`, `"{\"path\":\"/etc/passwd\"}"`, `[{"path":"/etc/passwd"}]`, `7`, `true`} {
			for _, method := range []string{"tools/call", "prompts/get"} {
				answer := string(r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d%s","method":%q,"params":{"name":"write","arguments":%s}}`, i, method, method, args)).Append(nil))
				if strings.Contains(answer, "done") || !strings.Contains(answer, "arguments") {
					t.Errorf("%s %s: %s", method, args, answer)
				}
			}
		}
		if s := got.String(); strings.Contains(s, "passwd") {
			t.Errorf("the server got %s", s)
		}
		for i, args := range []string{`{"path":"/w/x"}`, `null`, `{}`} {
			answer := string(r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":"ok%d","method":"tools/call","params":{"name":"write","arguments":%s}}`, i, args)).Append(nil))
			if strings.Contains(answer, "must be an object") {
				t.Errorf("%s: %s", args, answer)
			}
		}
	}
}

// scanned reads the lines of a scanner.
type scanned struct{ in *bufio.Scanner }

func (s scanned) Read(p []byte) (int, error) {
	if !s.in.Scan() {
		return 0, io.EOF
	}
	return copy(p, s.in.Text()+"\n"), nil
}
