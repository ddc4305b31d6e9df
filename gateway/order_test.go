package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

const progressSteps = 5

// stepping is a server that tells of five steps of each call before it answers, some with much more than can be treated where it
// was read.
func stepping(in *bufio.Scanner, out io.Writer) {
	n := 0
	answering(func(_ string, m strictjson.Value) string {
		token := string(m.Get("params").Get("_meta").Get("progressToken").Append(nil))
		for i := range progressSteps {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":"step %d"}}`+"\n", token, i, i)
		}
		text := "worked"
		if n++; n%3 == 0 {
			text = strings.Repeat("long ", 20_000)
		}
		return `"result":{"resultType":"complete","content":[{"type":"text","text":"` + text + `"}]}`
	})(in, out)
}

// inOrder checks what one client got for each call: all its steps, in order, and then the answer.
type inOrder struct {
	t     *testing.T
	steps map[string]int
}

func (o *inOrder) got(line string) (answered bool) {
	v, err := strictjson.ParseString(line, ServerLimits)
	if err != nil {
		o.t.Errorf("%v: %.200s", err, line)
		return false
	}
	if id := v.Get("id"); id.Kind() != strictjson.KindAbsent {
		if n := o.steps[id.Str()]; n != progressSteps || v.Get("result").Get("isError").Bool() || v.Get("error").Kind() != strictjson.KindAbsent {
			o.t.Errorf("%s was answered after %d steps: %.300s", id.Str(), n, line)
		}
		return true
	}
	token := v.Get("params").Get("progressToken").Str()
	if want := fmt.Sprint(o.steps[token]); v.Get("params").Get("progress").Number() != want {
		o.t.Errorf("%s: step %s instead of %s", token, v.Get("params").Get("progress").Number(), want)
	}
	o.steps[token]++
	return false
}

// Progress reaches the client before the answer it is about, whatever else goes on: with rules, a durable record, state that is
// kept, and answers that are treated elsewhere than they were read.
func TestProgressComesBeforeItsAnswer(t *testing.T) {
	const calls = 60
	options := func(t *testing.T, server fakeServer) Options {
		log, err := audit.Open(filepath.Join(t.TempDir(), "audit"), audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { log.Close() })
		dir := t.TempDir()
		return Options{
			Policy: mailPolicy(t), Audit: log, Launch: launcher(nil, server),
			Servers: []Server{{Source: Source{Server: "srv"}, Command: []string{"fake"}}},
			Keep:    func(string) (Keeper, error) { return OpenState(dir, StateKey{Principal: "p"}) },
		}
	}
	call := func(id string, modern bool) string {
		meta := `{"progressToken":"` + id + `"}`
		if modern {
			meta = strings.TrimSuffix(modernMeta, "}") + `,"progressToken":"` + id + `"}`
		}
		return `{"jsonrpc":"2.0","id":"` + id + `","method":"tools/call","params":{"name":"read","arguments":{},"_meta":` + meta + `}}`
	}
	t.Run("stdio", func(t *testing.T) {
		r := newRig(t, options(t, stepping))
		r.ask(initialize)
		go func() {
			for i := range calls {
				fmt.Fprintln(r.in, call(fmt.Sprintf("c%d", i), false))
			}
		}()
		o := inOrder{t, map[string]int{}}
		for answered := 0; answered < calls; {
			if o.got(r.next()) {
				answered++
			}
		}
	})
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("http, modern=%t", modern), func(t *testing.T) {
			g, err := NewGateway(options(t, func(in *bufio.Scanner, out io.Writer) {
				version := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}`
				toServer, fromTest := io.Pipe()
				defer fromTest.Close()
				inner := bufio.NewScanner(toServer)
				inner.Buffer(nil, 1<<20)
				go stepping(inner, out)
				for in.Scan() {
					if m, err := strictjson.Parse(in.Bytes(), strictjson.Limits{}); modern && err == nil && m.Get("method").Str() == "server/discover" {
						fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.Get("id").Append(nil), version)
						continue
					}
					fmt.Fprintln(fromTest, in.Text())
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			srv := onHTTP(t, g)
			post := func(body string, header map[string]string) *http.Response {
				req, err := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
				for name, value := range header {
					req.Header.Set(name, value)
				}
				resp, err := srv.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				return resp
			}
			header := map[string]string{"Mcp-Protocol-Version": modernVersion, "Mcp-Method": "tools/call", "Mcp-Name": "read"}
			if !modern {
				resp := post(initialize, nil)
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				header = map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id")}
			}
			var all sync.WaitGroup
			for i := range calls {
				all.Go(func() {
					resp := post(call(fmt.Sprintf("c%d", i), modern), header)
					defer resp.Body.Close()
					o, answered := inOrder{t, map[string]int{}}, false
					lines := bufio.NewScanner(resp.Body)
					lines.Buffer(nil, 1<<20)
					for lines.Scan() {
						if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
							answered = o.got(data)
						}
					}
					if !answered {
						t.Errorf("call %d has no answer at the end of %d %s", i, resp.StatusCode, resp.Header.Get("Content-Type"))
					}
				})
			}
			all.Wait()
		})
	}
}
