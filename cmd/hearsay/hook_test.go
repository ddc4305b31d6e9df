package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

func TestHookKeepsThePrompt(t *testing.T) {
	repotest.Need(t, "a system that tells processes apart (Linux)", runtime.GOOS == "linux")
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	event := `{"session_id":"../../x","transcript_path":"/t.jsonl","cwd":"/w","hook_event_name":"UserPromptSubmit","prompt":" pay DE89370400440532013000 "}`
	code, out, errs := command(t, event, "hook")
	if code != 0 || out != "" || errs != "" {
		t.Fatalf("%d %q %q: a host may give the agent what a hook prints", code, out, errs)
	}
	found, err := filepath.Glob(filepath.Join(state, "hearsay", "journals", "*.jsonl"))
	if err != nil || len(found) == 0 {
		t.Fatal("no journal", err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil || string(data) != `{"said":"pay DE89370400440532013000"}`+"\n" {
		t.Errorf("%s %v", data, err)
	}
	for event, want := range map[string]string{
		`{"hook_event_name":"Stop"}`:             "UserPromptSubmit and SessionStart only",
		`{"hook_event_name":"UserPromptSubmit"}`: "no prompt",
		`{`:                                      "reading the hook's event",
		`{"hook_event_name":"UserPromptSubmit","prompt":"` + strings.Repeat("a", 600<<10) + `"}`: "reading the hook's event",
	} {
		if code, out, errs := command(t, event, "hook"); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%.60s: %d %q %q", event, code, out, errs)
		}
	}
}

func TestAConversationTakenUpAgainCountsAsRead(t *testing.T) {
	repotest.Need(t, "a system that tells processes apart (Linux)", runtime.GOOS == "linux")
	for source, want := range map[string]bool{"startup": false, "clear": false, "compact": false, "resume": true, "": true, "new-word": true} {
		state := t.TempDir()
		t.Setenv("XDG_STATE_HOME", state)
		if code, out, errs := command(t, `{"hook_event_name":"SessionStart","source":"`+source+`"}`, "hook"); code != 0 || out != "" || errs != "" {
			t.Fatalf("%q: %d %q %q", source, code, out, errs)
		}
		found, err := filepath.Glob(filepath.Join(state, "hearsay", "journals", "*.jsonl"))
		if err != nil || (len(found) > 0) != want {
			t.Errorf("%q: %v %v", source, found, err)
		}
		for _, path := range found {
			if data, err := os.ReadFile(path); err != nil || string(data) != `{"read":"a conversation taken up again"}`+"\n" {
				t.Errorf("%s %v", data, err)
			}
		}
	}
}

func TestTaskIsNamedBeforehand(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, test := range []struct {
		args []string
		code int
		out  string
	}{
		{nil, 0, ""},
		{[]string{"mail.send", "calendar.*"}, 0, ""},
		{nil, 0, "mail.send\ncalendar.*\n"},
		{[]string{"search"}, 2, ""},
		{[]string{"mail.send(to:x)"}, 2, ""},
		{[]string{"*"}, 2, ""},
		{nil, 0, "mail.send\ncalendar.*\n"},
		{[]string{"--clear", "mail.send"}, 2, ""},
		{[]string{"--clear"}, 0, ""},
		{[]string{"--clear"}, 0, ""},
		{nil, 0, ""},
	} {
		if code, out, errs := command(t, "", append([]string{"task"}, test.args...)...); code != test.code || out != test.out {
			t.Errorf("task %v: %d %q %s", test.args, code, out, errs)
		}
	}
}

// The test stands for the agent's host: it starts the gateway and the hook.
func TestTheUsersWordsReachTheGateway(t *testing.T) {
	repotest.Need(t, "a system that tells processes apart (Linux)", runtime.GOOS == "linux")
	file, env := demoHouse(t, "approvals:\n  timeout: 100ms\n")
	connect := func() *mcp.ClientSession {
		t.Helper()
		cmd := exec.Command("hearsay", "mcp", "-c", file)
		cmd.Env = env
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	mail := func(s *mcp.ClientSession, to string) bool {
		t.Helper()
		return strings.Contains(callText(t, s, "send_mail", map[string]any{"to": to, "body": "hello"}), "sent to "+to)
	}
	session := connect()
	callText(t, session, "read_inbox", nil)
	if mail(session, "new@friend.example") {
		t.Fatal("a mail to an address that nobody named")
	}
	hook := exec.Command("hearsay", "hook")
	hook.Env = env
	hook.Stdin = strings.NewReader(`{"session_id":"x","hook_event_name":"UserPromptSubmit","prompt":"say hello to new@friend.example"}`)
	if out, err := hook.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v %s", err, out)
	}
	if !mail(session, "new@friend.example") {
		t.Error("the user named the address, and the mail is refused")
	}
	if mail(session, "drop@collector.example") {
		t.Error("a mail to the attacker")
	}
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	// A gateway that starts again goes on where the one before ended.
	session = connect()
	defer session.Close()
	if mail(session, "drop@collector.example") {
		t.Error("a restart gave back what reading took")
	}
	if !mail(session, "new@friend.example") {
		t.Error("a restart forgot what the user said")
	}
}
