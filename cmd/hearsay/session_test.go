package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/gateway"
)

func TestSessionsAreForgivenByTheOperator(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_STATE_HOME", base)
	state := filepath.Join(base, "hearsay")
	log := filepath.Join(base, "audit.jsonl")
	file := write(t, "hearsay.yaml", "audit: {file: "+log+"}\n")
	if code, out, _ := command(t, "", "session"); code != 0 || out != "" {
		t.Fatalf("%d %q", code, out)
	}
	open := func(principal string) *gateway.StateFile {
		t.Helper()
		f, err := gateway.OpenState(state, gateway.StateKey{Principal: principal})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	ann, ben := open("ann"), open("ben\x1b[2J")
	s := gate.State{}.Observe(gate.Observation{Source: "web", Text: "x"})
	if err := ann.Save(s, gate.Budget{Used: 3}); err != nil {
		t.Fatal(err)
	}
	if err := ben.Save(gate.State{}, gate.Budget{Limit: 1, Used: 1}); err != nil {
		t.Fatal(err)
	}
	code, out, _ := command(t, "", "session")
	if code != 0 || !strings.Contains(out, "client ann  read: web  refused: 3\n") || !strings.Contains(out, "read: nothing untrusted  refused: 1, halted\n") || strings.Contains(out, "\x1b") {
		t.Fatalf("%d %q", code, out)
	}
	_, out, _ = command(t, "", "session", "--json")
	var list []struct{ Name, Principal string }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 2 {
		t.Fatal(out, err)
	}
	name := list[0].Name
	if list[0].Principal != "ann" {
		name = list[1].Name
	}
	yes := name[:6] + "\n"

	if code, _, errs := command(t, yes, "session", "reset", name, "-c", file); code != 1 || !strings.Contains(errs, "another gateway serves the same session") {
		t.Errorf("a session that runs: %d %s", code, errs)
	}
	ann.Close()
	ben.Close()
	for _, test := range []struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		{"", []string{name}, 1, "nothing was reset"},
		{"yes\n", []string{name}, 1, "nothing was reset"},
		{yes, nil, 2, "name one session"},
		{yes, []string{"zz"}, 2, "0 sessions"},
		{yes, []string{""}, 2, "2 sessions"},
		{yes, []string{name, "-c", file + "x"}, 1, "reading the configuration"},
		{yes, []string{name}, 0, "client ann  read: web"},
		{yes, []string{name}, 2, "0 sessions"},
	} {
		args := append([]string{"session", "reset"}, test.args...)
		if len(test.args) < 2 {
			args = append(args, "-c", file)
		}
		if code, out, errs := command(t, test.stdin, args...); code != test.code || !strings.Contains(errs, test.want) || out != "" {
			t.Errorf("%v %q: %d %q %s", args, test.stdin, code, out, errs)
		}
	}
	if again := open("ann"); again != nil {
		if s, b := again.State(); s.Tainted() || b.Used != 0 {
			t.Error("nothing was forgiven")
		}
		again.Close()
	}
	// The reset is on record, also that which the running gateway prevented; nothing else is.
	data, err := os.ReadFile(log)
	if err != nil || strings.Count(string(data), `"kind":"change"`) != 1 || !strings.Contains(string(data), `"forgiven":"web"`) || !strings.Contains(string(data), `"principal":"ann"`) {
		t.Errorf("%s %v", data, err)
	}
	// A full log stops the reset.
	ann = open("ann")
	if err := ann.Save(s, gate.Budget{}); err != nil {
		t.Fatal(err)
	}
	ann.Close()
	broken := write(t, "hearsay.yaml", "audit: {file: "+filepath.Join(base, "no", "such", "folder", "a.jsonl")+"}\n")
	if code, _, _ := command(t, yes, "session", "reset", name, "-c", broken); code != 1 {
		t.Error("a reset that cannot be recorded")
	}
	if kept, err := gateway.ListStates(state); err != nil || len(kept) != 2 {
		t.Error(kept, err)
	}
}
