package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/approve"
)

func TestApproveCommand(t *testing.T) {
	base, err := os.MkdirTemp("", "hs") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	t.Setenv("XDG_RUNTIME_DIR", base)
	dir, err := approve.SocketDir()
	if err != nil {
		t.Fatal(err)
	}
	if code, out, _ := hearsay(t, "approve", "--json"); code != exitDone || out != "[]\n" {
		t.Errorf("nothing waits: code %d, %q", code, out)
	}
	desk := approve.New(approve.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { approve.Serve(ctx, desk, dir) })
	defer serving.Wait()
	defer cancel()
	for {
		if found, _ := filepath.Glob(filepath.Join(dir, "*.sock")); len(found) == 1 {
			break
		}
	}
	ask := func(to string) <-chan approve.Answer {
		got := make(chan approve.Answer, 1)
		before, _ := desk.Waiting()
		go func() {
			got <- desk.Ask(ctx, approve.Question{Server: "mail", Tool: "send", Args: map[string]any{"to": to}, Call: []byte(to)})
		}()
		for {
			changed := desk.Changed()
			if now, _ := desk.Waiting(); len(now) > len(before) {
				return got
			}
			<-changed
		}
	}
	first, second, third := ask("a@b.example"), ask("x\x1b[2J@b.example"), ask("c@d.example")
	var out, errs bytes.Buffer
	// Nonsense first, then an answer for each but the last.
	if code := run(ctx, []string{"approve"}, strings.NewReader("what\no\nd\n\n"), &out, &errs); code != exitDone {
		t.Fatalf("code %d: %s", code, errs.String())
	}
	if a := <-first; a.Verdict != approve.Once || a.Channel != "terminal" {
		t.Errorf("first: %+v", a)
	}
	if a := <-second; a.Verdict != approve.Deny {
		t.Errorf("second: %+v", a)
	}
	if strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), `x\u{001B}[2J@b.example`) {
		t.Errorf("escapes are not shown:\n%s", out.String())
	}
	_, text, _ := hearsay(t, "approve", "--json")
	var list []approve.Waiting
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 1 {
		t.Fatalf("%v in %s", err, text)
	}
	if code, _, stderr := hearsay(t, "approve", list[0].ID, "--answer", "once", "--digest", "sha256:00"); code != exitFailed || !strings.Contains(stderr, "another call") {
		t.Errorf("wrong digest: code %d, %s", code, stderr)
	}
	if code, _, _ := hearsay(t, "approve", list[0].ID, "--answer", "perhaps"); code != exitUsage {
		t.Errorf("unknown answer: code %d", code)
	}
	if code, _, stderr := hearsay(t, "approve", list[0].ID, "--answer", "session"); code != exitDone {
		t.Errorf("code %d, %s", code, stderr)
	}
	if a := <-third; a.Verdict != approve.Session {
		t.Errorf("third: %+v", a)
	}
	if code, _, _ := hearsay(t, "approve", "NOSUCH", "--answer", "once"); code != exitFailed {
		t.Errorf("unknown ID: code %d", code)
	}
	if code, _, _ := hearsay(t, "approve", "--answer", "once"); code != exitUsage {
		t.Errorf("no ID: code %d", code)
	}
}
