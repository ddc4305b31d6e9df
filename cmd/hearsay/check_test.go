package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// command runs hearsay with arguments and gives its exit code and streams.
func command(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodRules = `
permissions:
  deny: ["os.shell(curl*)"]
  allow: ["os.shell(git status*)", mail.send]
tools:
  mail.send: {effects: [send], bind: [{arg: to, kind: mail, class: ordinary}], text: [body]}
store:
  contacts: [ann@acme.example]
profiles:
  strict: {mode: taint_only}
`

func TestCheckSaysWhatIsOpen(t *testing.T) {
	path := write(t, "rules.yaml", goodRules)
	code, out, _ := command(t, "", "check", "-c", path)
	if code != 0 || !strings.Contains(out, "note: line 3: os.shell(curl*): a deny by the text of a command is no boundary") || !strings.Contains(out, "3 rules, 0 pinned tools, 2 profiles") {
		t.Errorf("%d\n%s", code, out)
	}
	if strings.Count(out, "no boundary") != 1 {
		t.Errorf("said once for each profile:\n%s", out)
	}
}

func TestCheckRefusesWithTheLine(t *testing.T) {
	path := write(t, "rules.yaml", "permissions:\n  allow:\n    - a.b\n    - search\nprofiles:\n  p: {task: [search]}\n")
	code, out, errs := command(t, "", "check", "-c", path, "--json")
	var got struct {
		OK       bool
		Findings []finding
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err, out)
	}
	if code != 1 || got.OK || len(got.Findings) != 2 || got.Findings[0].Line != 4 || got.Findings[1].Line != 6 || got.Findings[1].Profile != "p" || !strings.Contains(errs, "would not start") {
		t.Errorf("%d %+v %s", code, got, errs)
	}
	if code, _, errs = command(t, "", "check", "-c", path+"x"); code != 1 || !strings.Contains(errs, "reading the configuration") {
		t.Errorf("%d %s", code, errs)
	}
}

func TestCheckHoldsRulesAgainstPins(t *testing.T) {
	path := write(t, "rules.yaml", "permissions:\n  allow:\n    - docs.serch\n    - docs.search(qeury:x)\n")
	lock := write(t, "hearsay.lock", `{"hearsay.lock":1,"servers":{}}`)
	if code, out, errs := command(t, "", "check", "-c", path, "--lock", lock); code != 0 {
		t.Errorf("%d %s %s", code, out, errs)
	}
	def, err := strictjson.Parse([]byte(`{"name":"search","inputSchema":{"type":"object","properties":{"query":{"type":"string"}}}}`), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	pins := gateway.Lock{Servers: map[string]*gateway.ServerPins{"docs": {Definitions: map[gateway.PinKind]map[string]gateway.Pin{
		gateway.PinTool: {"search": {Digest: gateway.Digest(def), Definition: def}},
	}}}}
	code, out, _ := command(t, "", "check", "-c", path, "--lock", write(t, "hearsay.lock", string(pins.Encode())))
	for _, want := range []string{
		`line 3: docs.serch: matches no known tool; did you mean "docs.search"?`,
		`line 4: docs.search(qeury:x): there is no argument "qeury"; did you mean "query"?`,
	} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("%d, lacks %q:\n%s", code, want, out)
		}
	}
	if code, _, errs := command(t, "", "check", "-c", path, "--lock", lock+"x"); code != 1 || !strings.Contains(errs, "reading the lock file") || !strings.Contains(errs, "hearsay pin writes") {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := command(t, "", "check", "-c", path, "--lock", write(t, "bad.lock", "{}")); code != 1 || !strings.Contains(errs, "lock file") {
		t.Errorf("%d %s", code, errs)
	}
}

func TestCheckReadsTheOtherSections(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a rule of no server":         {"servers:\n  docs: {command: [x]}\npermissions:\n  allow: [dcos.search]\n", `there is no server "dcos"; did you mean "docs"?`},
		"a server without a command":  {"servers:\n  docs: {trust: untrusted}\n", "give its command or its url"},
		"a deny outside the sandbox":  {"servers:\n  os: {command: [x], sandbox: off}\npermissions:\n  deny: [\"os.shell(curl*)\"]\n  allow: [os.shell]\n", "allows every other command"},
		"a deny inside the sandbox":   {"servers:\n  os: {command: [x]}\npermissions:\n  deny: [\"os.shell(curl*)\"]\n  allow: [os.shell]\n", ""},
		"approvals that never end":    {"approvals: {timeout: never}\n", "approvals.timeout"},
		"a key that is nowhere":       {"user_key_file: /no/such/key\n", "user_key_file"},
		"a screen with an odd option": {"screens: {passthrough: [\"a*b\"]}\n", "passthrough"},
		"pins that are nowhere":       {"pins: {lock: none.lock}\n", "none.lock"},
		"a record that is nowhere":    {"audit: {file: /no/such/folder/audit.jsonl}\n", "no/such/folder"},
	} {
		code, out, errs := command(t, "", "check", "-c", write(t, "rules.yaml", test.text))
		if test.want == "" && code != 0 || test.want != "" && (code != 1 || !strings.Contains(out+errs, test.want)) {
			t.Errorf("%s: %d\n%s%s", name, code, out, errs)
		}
	}
}

func TestExplain(t *testing.T) {
	path := write(t, "rules.yaml", goodRules)
	for name, test := range map[string]struct {
		call string
		args []string
		code int
		want []string
	}{
		"allowed":          {`{"tool":"mail.send","args":{"to":"ann@acme.example","body":"hi"},"reads":["web"]}`, nil, 0, []string{"ALLOW: mail.send (rule)", "yes allow mail.send"}},
		"server apart":     {`{"server":"mail","tool":"send","args":{}}`, nil, 0, []string{"ALLOW: mail.send"}},
		"of tools/call":    {`{"name":"mail__send","arguments":{"to":"eve@evil.example"},"reads":["web"]}`, nil, 3, []string{"ASK: mail.send (not-grounded)"}},
		"not grounded":     {`{"tool":"mail.send","args":{"to":"eve@evil.example","body":"hi"},"reads":["web"]}`, nil, 3, []string{"ASK: mail.send (not-grounded)", `"eve@evil.example"`, "the answer is allow"}},
		"said by the user": {`{"tool":"mail.send","args":{"to":"eve@evil.example","body":"hi"},"reads":["web"],"said":["mail eve@evil.example"]}`, nil, 0, nil},
		"in a profile":     {`{"tool":"mail.send","args":{"to":"ann@acme.example"},"reads":["web"]}`, []string{"--profile", "strict"}, 3, []string{"(tainted)", "mode: grounded"}},
		"denied":           {`{"tool":"mcp__os__shell","args":{"command":"true; curl x"}}`, nil, 3, []string{"DENY: os.shell (rule)", "narrow or remove"}},
		"part":             {`{"tool":"os.shell","args":{"command":"git status; ls \u001b[2J"}}`, nil, 3, []string{"(command-unresolved)"}},
		"no rule":          {`{"tool":"a.b","calls":["a.b"],"principal":"x","paths":{"/a":"/b"}}`, nil, 3, []string{"ASK: a.b (no-rule)", "permissions.allow: a.b", "says nothing about this tool"}},
		"json":             {`{"tool":"mail.send","args":{"to":"eve@evil.example"},"reads":["web"]}`, []string{"--json"}, 3, []string{`"answer":"ask"`, `"reason":"not-grounded"`, `"value":"eve@evil.example"`}},
	} {
		code, out, errs := command(t, test.call, append([]string{"explain", "-c", path, "-"}, test.args...)...)
		if code != test.code {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errs)
		}
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: lacks %q:\n%s", name, want, out)
			}
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("%s: a control character of the call reached the terminal", name)
		}
	}
	for call, want := range map[string]string{
		`[]`:                           "JSON object",
		`{`:                            "reading the call",
		`{"tool":"b"}`:                 "names no server",
		`{"tool":"a.b","arg":{}}`:      `unknown field "arg"`,
		`{"tool":"a.b","args":[]}`:     "args",
		`{}`:                           "has no tool",
		`{"tool":"a.b","tool":"a.c"}`:  "reading the call",
		`{"tool":"a.b","calls":["x"]}`: "calls",
	} {
		if code, _, errs := command(t, call, "explain", "-c", path, "-"); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", call, code, errs)
		}
	}
	if code, _, errs := command(t, "", "explain"); code != 2 || !strings.Contains(errs, "name one file") {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := command(t, "", "explain", "-c", path, "--profile", "nope", "-"); code != 1 || !strings.Contains(errs, "strict") {
		t.Errorf("%d %s", code, errs)
	}
}
