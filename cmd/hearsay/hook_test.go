package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

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
		`{"hook_event_name":"SessionStart"}`:     "UserPromptSubmit only",
		`{"hook_event_name":"UserPromptSubmit"}`: "no prompt",
		`{`:                                      "reading the hook's event",
		`{"hook_event_name":"UserPromptSubmit","prompt":"` + strings.Repeat("a", 600<<10) + `"}`: "reading the hook's event",
	} {
		if code, out, errs := command(t, event, "hook"); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%.60s: %d %q %q", event, code, out, errs)
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
