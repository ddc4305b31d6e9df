package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/audit"
)

func hearsay(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func writeLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []audit.Event{
		{Kind: audit.Start, Session: "one", Detail: map[string]string{"command": "mcp"}},
		{Kind: audit.Decision, Session: "one", Server: "mail", Tool: "send\x1b[2J", Answer: "deny", Reason: "not-grounded"},
		{Kind: audit.Stop, Session: "two"},
	} {
		if err := log.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAuditVerifyCommand(t *testing.T) {
	path := writeLog(t)
	code, out, stderr := hearsay(t, "audit", "verify", path)
	if code != exitDone || !strings.HasPrefix(out, "ok: 3 lines, head 3:") {
		t.Fatalf("code %d\n%s%s", code, out, stderr)
	}
	head := strings.TrimSpace(out[strings.LastIndex(out, "head ")+5:])
	if code, out, _ := hearsay(t, "audit", "verify", "--head", head, path); code != exitDone {
		t.Fatalf("code %d with its own head\n%s", code, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Both files go back to two lines: only the head noted elsewhere shows it.
	lines := bytes.SplitAfter(data, []byte("\n"))
	if err := os.WriteFile(path, bytes.Join(lines[:2], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := hearsay(t, "audit", "verify", path); code != exitVerify || !strings.Contains(out, "cut: the head names line 3") {
		t.Fatalf("code %d\n%s", code, out)
	}
	if err := os.Remove(path + ".head"); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := hearsay(t, "audit", "verify", path); code != exitDone || !strings.Contains(out, "would not show") {
		t.Fatalf("code %d\n%s", code, out)
	}
	if code, out, _ := hearsay(t, "audit", "verify", "--json", "--head", head, path); code != exitVerify || !strings.Contains(out, `"ok":false`) {
		t.Fatalf("code %d\n%s", code, out)
	}
	for _, args := range [][]string{{"audit", "verify"}, {"audit", "verify", "--head", "x", path}, {"audit", "show"}, {"audit", "what"}} {
		if code, _, stderr := hearsay(t, args...); code != exitUsage || stderr == "" {
			t.Errorf("%q: code %d, %q", args, code, stderr)
		}
	}
	if code, _, stderr := hearsay(t, "audit", "verify", filepath.Join(t.TempDir(), "none")); code != exitFailed || !strings.Contains(stderr, "none") {
		t.Errorf("a missing file: code %d, %q", code, stderr)
	}
}

func TestAuditVerifyVouchesForNothingElse(t *testing.T) {
	logged := writeLog(t)
	data, err := os.ReadFile(logged)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ content, says string }{
		"empty":         {"", "there is no line to vouch for"},
		"garbage":       {"garbage", "the last 7 bytes are no line"},
		"garbage after": {string(data) + "garbage", "the last 7 bytes are no line"},
	} {
		for _, head := range []string{"with its head", "without"} {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if head != "without" {
				if err := os.Link(logged+".head", path+".head"); err != nil {
					t.Fatal(err)
				}
			}
			code, out, _ := hearsay(t, "audit", "verify", path)
			if code != exitVerify || !strings.Contains(out, tt.says) || !strings.Contains(out, "\nNOT WHOLE: ") {
				t.Errorf("%s, %s: code %d\n%s", name, head, code, out)
			}
		}
	}
}

func TestAuditShowCommand(t *testing.T) {
	path := writeLog(t)
	code, out, stderr := hearsay(t, "audit", "show", "--session", "on", path)
	if code != exitDone || strings.Count(out, "\n") != 2 {
		t.Fatalf("code %d\n%s%s", code, out, stderr)
	}
	for _, want := range []string{"DENY", `mail__send\u{001B}[2J`, "reason=not-grounded", "command=mcp"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("a raw escape went to the terminal")
	}
}

func TestAuditShowFollowsAcrossRotations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, audit.Options{MaxBytes: 1}) // each line in a file of its own
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"audit", "show", "--follow", path}, strings.NewReader(""), w, w)
		w.Close()
	}()
	lines := bufio.NewReader(r)
	for _, session := range []string{"a1", "b2", "c3"} {
		if err := log.Append(audit.Event{Kind: audit.Decision, Session: session}); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, "session="+session) {
			t.Fatalf("%q, %v", line, err)
		}
	}
	cancel()
	if code := <-done; code != exitDone {
		t.Errorf("code %d", code)
	}
}
