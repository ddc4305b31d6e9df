package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/realtest/dnstest"
)

func runExplain(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := newEgressExplain()
	var out, errOut bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	var coded *exitError
	switch {
	case err == nil:
		return exitDone, out.String(), errOut.String()
	case errors.As(err, &coded):
		return coded.code, out.String(), err.Error()
	}
	return exitFailed, out.String(), err.Error()
}

func TestEgressExplain(t *testing.T) {
	dns := dnstest.Start(t)
	dns.Set("api.example.com", dnstest.Record{Addrs: []string{"93.184.215.14"}, CNAME: []string{"edge.example.net"}})
	dns.Set("db.example.com", dnstest.Record{Addrs: []string{"10.0.0.5", "93.184.215.14"}})
	dns.Set("imds.example.com", dnstest.Record{Addrs: []string{"169.254.169.254"}})
	file := filepath.Join(t.TempDir(), "hearsay.yaml")
	config := "egress:\n  allow: [\"*.example.com\", \"GET http://web.test.example/v1/*\", \"93.184.215.14\"]\n  deny: [\"bad.example.com\"]\n  inward: {\"ok.example.com\": [\"10.0.0.0/8\"]}\n  dns: [\"" + dns.Addr.String() + "\"]\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	dns.Set("ok.example.com", dnstest.Record{Addrs: []string{"10.0.0.7"}})
	dns.Set("web.test.example", dnstest.Record{Addrs: []string{"93.184.215.14"}})
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"https://API.example.com./x", exitDone, []string{"api.example.com:443", `"*.example.com": every name under example.com, not example.com itself, port 443 or 80`, "edge.example.net", "93.184.215.14", "decision  allowed"}},
		{"ok.example.com:443", exitDone, []string{`exempted by inward "ok.example.com: 10.0.0.0/8"`, "decision  allowed"}},
		{"93.184.215.14:80", exitDone, []string{"literal", "allowed"}},
		{"http://web.test.example/v1/x", exitDone, []string{"plain HTTP requests only: GET on the path /v1/*"}},
		{"http://web.test.example/v2/x", exitRefused, []string{"no allow entry covers it", `add "web.test.example:80" to egress.allow`}},
		{"--method POST http://web.test.example/v1/x", exitRefused, []string{"no allow entry"}},
		{"db.example.com:443", exitRefused, []string{"10.0.0.5", "Private-Use 10.0.0.0/8 (refused: inward)", `add "db.example.com": ["10.0.0.5"] to egress.inward`}},
		{"imds.example.com:80", exitRefused, []string{"instance metadata", "credentials"}},
		{"bad.example.com:443", exitRefused, []string{`deny entry "bad.example.com"`, "deny beats allow"}},
		{"absent.example.com:443", exitRefused, []string{"no-such-name"}},
		{"127.1:80", exitRefused, []string{"address-spelling"}},
		{"api.example.com", exitRefused, []string{"name the port"}},
	} {
		code, out, errOut := runExplain(t, append(strings.Fields(c.args), "-c", file)...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d\n%s%s", c.args, code, c.code, out, errOut)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", c.args, want, out)
			}
		}
		code, out, _ = runExplain(t, append(strings.Fields(c.args), "--json", "-c", file)...)
		var got struct {
			Target  string
			Allowed bool
			Reason  string
			Message string
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Allowed != (c.code == exitDone) || code != c.code || !got.Allowed && got.Reason == "" {
			t.Errorf("%s --json: exit %d, %v\n%s", c.args, code, err, out)
		}
	}
}

func TestEgressExplainWrongUse(t *testing.T) {
	if code, _, _ := runExplain(t); code != exitUsage {
		t.Errorf("no destination: exit %d", code)
	}
	if code, out, _ := runExplain(t, "api.example.com:443"); code != exitRefused || !strings.Contains(out, "no allow entry") {
		t.Errorf("no file: exit %d\n%s", code, out)
	}
	file := filepath.Join(t.TempDir(), "hearsay.yaml")
	if err := os.WriteFile(file, []byte("egress:\n  allow: [\"*example.com\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := runExplain(t, "-c", file, "api.example.com:443"); code != exitFailed || !strings.Contains(errOut, "[2:11]") {
		t.Errorf("a malformed entry: exit %d %s", code, errOut)
	}
}
