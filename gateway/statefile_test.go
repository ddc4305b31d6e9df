package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

func openState(t *testing.T, dir string, key StateKey) *StateFile {
	t.Helper()
	f, err := OpenState(dir, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestStateOutlivesTheGateway(t *testing.T) {
	dir := t.TempDir()
	key := StateKey{Principal: "ann", Gateway: "/etc/hearsay.yaml"}
	f := openState(t, dir, key)
	s, b := f.State()
	if s.Tainted() || b.Used != 0 {
		t.Fatal("a new session has a past")
	}
	s = s.Observe(gate.Observation{Source: "user", Trust: gate.User, Text: "mail ann@acme.example"})
	s = s.Observe(gate.Observation{Source: "web", Text: "x"})
	b, _ = b.Spend(gate.Decision{})
	if err := f.Save(s, b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	g := openState(t, dir, key)
	s2, b2 := g.State()
	one, _ := json.Marshal(s)
	two, _ := json.Marshal(s2)
	if string(one) != string(two) || b2 != b {
		t.Errorf("kept %s %v, read %s %v", one, b, two, b2)
	}
	other := openState(t, dir, StateKey{Principal: "ben", Gateway: key.Gateway})
	if s, _ := other.State(); s.Tainted() {
		t.Error("another principal has the state")
	}
	if data, err := os.ReadFile(g.path); err != nil || strings.Contains(string(data), "acme.example") {
		t.Error("the file holds the user's words", err)
	}
	if info, err := os.Stat(g.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error("the file is not private", err)
	}
}

// A session that read nothing leaves nothing, and neither does one that was killed; a lock that is held stays.
func TestLocksDoNotPileUp(t *testing.T) {
	host, err := HostOf(os.Getpid())
	repotest.Need(t, "the processes of this system", err == nil)
	dir := t.TempDir()
	locks := func() int {
		paths, err := filepath.Glob(filepath.Join(dir, "sessions/*.lock"))
		if err != nil {
			t.Fatal(err)
		}
		return len(paths)
	}
	held := openState(t, dir, StateKey{Principal: "ann"})
	killed := filepath.Join(dir, "sessions", strings.Repeat("0", 32)+".json.lock")
	if err := os.WriteFile(killed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := openState(t, dir, StateKey{Host: host})
	if _, err := os.Stat(killed); !errors.Is(err, os.ErrNotExist) || locks() != 2 {
		t.Errorf("%d locks, that of a killed gateway: %v", locks(), err)
	}
	waiting := make(chan error)
	go func() {
		g, err := openStateWithin(dir, StateKey{Host: host}, time.Minute)
		if err == nil {
			if _, e := openStateWithin(dir, StateKey{Host: host}, 0); !errors.Is(e, ErrStateHeld) {
				err = fmt.Errorf("two hold it: %v", e)
			}
			err = errors.Join(err, g.Close())
		}
		waiting <- err
	}()
	f.Close()
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	f.Close() // once more, which is nobody's
	if err := held.Close(); err != nil || locks() != 0 {
		t.Errorf("%d locks left, %v", locks(), err)
	}
}

func TestStateIsHeldByOneGateway(t *testing.T) {
	dir := t.TempDir()
	key := StateKey{Principal: "ann"}
	openState(t, dir, key)
	if _, err := openStateWithin(dir, key, 0); !errors.Is(err, ErrStateHeld) {
		t.Error("a client could run two states beside each other:", err)
	}
	if _, err := OpenState(dir, StateKey{}); err == nil {
		t.Error("a state of nobody")
	}
}

func TestDamageGivesNothing(t *testing.T) {
	dir := t.TempDir()
	key := StateKey{Principal: "ann"}
	f := openState(t, dir, key)
	if err := f.Save(gate.State{}.Observe(gate.Observation{Trust: gate.User, Text: "a@b.example"}), gate.Budget{}); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, damage := range []string{"", "{", `{"state":{"version":999}}`, `{"state":{"version":1,"known":"!"}}`} {
		if err := os.WriteFile(f.path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		g := openState(t, dir, key)
		s, _ := g.State()
		labels := gate.ToolLabels{Effects: gate.Send, Bind: []gate.Binding{{Path: "to", Kind: gate.Mail, Class: gate.Ordinary}}}
		if !s.Tainted() || len(s.Ungrounded(labels, map[string]any{"to": "a@b.example"})) == 0 {
			t.Errorf("%q: the session starts with authority", damage)
		}
		if _, err := os.Stat(g.path + ".broken"); err != nil {
			t.Errorf("%q: the damaged file was not kept", damage)
		}
		g.Close()
	}
}

func TestSaveThatFailsSaysSo(t *testing.T) {
	dir := t.TempDir()
	f := openState(t, dir, StateKey{Principal: "ann"})
	if err := os.RemoveAll(filepath.Join(dir, "sessions")); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(gate.State{}.Observe(gate.Observation{Source: "web"}), gate.Budget{}); err == nil {
		t.Error("nothing was written, and nobody was told")
	}
}

// thisHost is the process that started the test: what a gateway or hook run by the test would be started by is the test itself.
func thisHost(t *testing.T) Host {
	t.Helper()
	repotest.Need(t, "a system that tells processes apart (Linux)", runtime.GOOS == "linux")
	h, err := HostOf(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestWordsAndTaintAreSharedByTheGatewaysOfOneAgent(t *testing.T) {
	dir := t.TempDir()
	host := thisHost(t)
	web := openState(t, dir, StateKey{Host: host, Gateway: "web"})
	mail := openState(t, dir, StateKey{Host: host, Gateway: "mail"})
	stranger := openState(t, dir, StateKey{Principal: "ben"})
	if err := KeepWords(dir, os.Getpid(), "write to ann@acme.example\nplease"); err != nil {
		t.Fatal(err)
	}
	heard := func(f *StateFile) []gate.Observation {
		t.Helper()
		o, err := f.Heard()
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, f := range []*StateFile{web, mail} {
		if o := heard(f); len(o) != 1 || o[0].Trust != gate.User || o[0].Text != "write to ann@acme.example\nplease" {
			t.Fatal(o)
		}
		if o := heard(f); len(o) != 0 {
			t.Fatal("heard twice", o)
		}
	}
	if o := heard(stranger); len(o) != 0 {
		t.Fatal("another session hears the words", o)
	}
	if err := web.Save(gate.State{}.Observe(gate.Observation{Source: "web", Text: "x"}), gate.Budget{}); err != nil {
		t.Fatal(err)
	}
	if o := heard(mail); len(o) != 1 || o[0].Trust != gate.Untrusted || o[0].Source != "web" {
		t.Fatal("the other gateway does not shrink:", o)
	}
	if err := appendLine(journalPath(dir, host), []byte("{\"said\":\"a\",\"read\":\"b\"}\nnoise\nhalf a li")); err != nil {
		t.Fatal(err)
	}
	o := heard(mail) // its own line, and two that cannot be read
	if len(o) != 2 || o[0].Trust != gate.Untrusted || o[1].Trust != gate.Untrusted {
		t.Fatal(o)
	}
}

func TestHeldBackWords(t *testing.T) {
	dir := t.TempDir()
	thisHost(t)
	if err := KeepWords(dir, os.Getpid(), strings.Repeat("a", gate.MaxWords+1)); err == nil {
		t.Error("a prompt without bound")
	}
	if err := KeepWords(dir, os.Getpid(), ""); err != nil {
		t.Error(err)
	}
	if err := KeepWords(dir, -1, "a"); err == nil {
		t.Error("words of no process")
	}
	if err := KeepRead(dir, -1, "a"); err == nil {
		t.Error("read by no process")
	}
	path := filepath.Join(t.TempDir(), "full")
	if err := os.WriteFile(path, make([]byte, maxJournal), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := appendLine(path, []byte("x\n")); err == nil {
		t.Error("a journal without bound")
	}
}

func TestStatesOfEndedProcessesAreSwept(t *testing.T) {
	dir := t.TempDir()
	host := thisHost(t)
	gone := host
	gone.Start++ // the number lives, the process does not
	f := openState(t, dir, StateKey{Host: gone})
	if err := f.Save(gate.State{}.Observe(gate.Observation{Source: "web"}), gate.Budget{}); err != nil {
		t.Fatal(err)
	}
	f.Close()
	kept := openState(t, dir, StateKey{Principal: "ann"})
	if err := kept.Save(gate.State{}, gate.Budget{Used: 1}); err != nil {
		t.Fatal(err)
	}
	openState(t, dir, StateKey{Host: host})
	for path, want := range map[string]bool{f.path: false, journalPath(dir, gone): false, kept.path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: there: %v", filepath.Base(path), err == nil)
		}
	}
}

func TestForgetting(t *testing.T) {
	dir := t.TempDir()
	f := openState(t, dir, StateKey{Principal: "ann"})
	if err := f.Save(gate.State{}.Observe(gate.Observation{Source: "web"}), gate.Budget{}); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(filepath.Base(f.path), ".json")
	fine := func(KeptState) error { return nil }
	if err := ForgetState(dir, name, fine); !errors.Is(err, ErrStateHeld) {
		t.Error("a session that runs:", err)
	}
	f.Close()
	for _, bad := range []string{"", "..", "../x", "a/b", `a\b`, "none"} {
		if err := ForgetState(dir, bad, fine); err == nil {
			t.Errorf("%q", bad)
		}
	}
	if err := ForgetState(dir, name, func(k KeptState) error {
		if k.Principal != "ann" || !k.State.Tainted() {
			t.Error(k)
		}
		return errors.New("no room")
	}); err == nil {
		t.Error("forgotten without a record")
	}
	if kept, err := ListStates(dir); err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sessions", "noise.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if kept, err := ListStates(dir); err != nil || len(kept) != 1 {
		t.Fatal("noise is no session:", kept, err)
	}
	if err := ForgetState(dir, "noise", fine); err == nil {
		t.Error("noise was forgotten")
	}
	if err := ForgetState(dir, name, fine); err != nil {
		t.Fatal(err)
	}
	if s, _ := openState(t, dir, StateKey{Principal: "ann"}).State(); s.Tainted() {
		t.Error("nothing was forgotten")
	}
}
