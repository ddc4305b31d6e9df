package approve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/audit"
)

func question(args string) Question {
	q := Question{Session: "s1", Server: "mail", Tool: "send", Call: []byte(args)}
	if err := json.Unmarshal([]byte(args), &q.Args); err != nil {
		panic(err)
	}
	return q
}

// wait gives the one question that waits, once it does.
func wait(t *testing.T, d *Desk) Pending {
	t.Helper()
	for {
		changed := d.Changed()
		if list, _ := d.Waiting(); len(list) > 0 {
			return list[0]
		}
		<-changed
	}
}

func ask(d *Desk, q Question) <-chan Answer {
	got := make(chan Answer, 1)
	go func() { got <- d.Ask(context.Background(), q) }()
	return got
}

func TestAnswersReachTheAsker(t *testing.T) {
	for _, v := range []Verdict{Deny, Once, Session} {
		d := New(Options{})
		got := ask(d, question(`{"to":"a@b.example"}`))
		p := wait(t, d)
		if err := d.Answer(p.ID, p.Digest, v, "page"); err != nil {
			t.Fatal(err)
		}
		if a := <-got; a != (Answer{v, "page", "answered"}) {
			t.Errorf("%v: got %+v", v, a)
		}
		if err := d.Answer(p.ID, p.Digest, v, "page"); !errors.Is(err, ErrUnknown) {
			t.Errorf("a second answer afterwards: %v", err)
		}
	}
}

func TestNoAnswerInTimeDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Options{Timeout: time.Minute})
		if a := d.Ask(t.Context(), question(`{}`)); a.Verdict != Deny || a.Reason != "timeout" {
			t.Errorf("%+v", a)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan Answer)
		go func() { got <- d.Ask(ctx, question(`{}`)) }()
		synctest.Wait()
		cancel()
		if a := <-got; a.Verdict != Deny || a.Reason != "canceled" {
			t.Errorf("%+v", a)
		}
		if list, _ := d.Waiting(); len(list) != 0 {
			t.Errorf("%d still wait", len(list))
		}
	})
}

func TestTwoDifferentAnswersDeny(t *testing.T) {
	d := New(Options{})
	p, reason := d.put(question(`{}`)) // the asker has not woken yet
	if reason != "" {
		t.Fatal(reason)
	}
	if err := d.Answer(p.ID, p.Digest, Once, "page"); err != nil {
		t.Fatal(err)
	}
	if err := d.Answer(p.ID, p.Digest, Once, "terminal"); err != nil {
		t.Errorf("the same answer again: %v", err)
	}
	if err := d.Answer(p.ID, p.Digest, Deny, "terminal"); !errors.Is(err, ErrConflict) {
		t.Errorf("error %v", err)
	}
	if a := d.take(p, nil); a.Verdict != Deny || a.Reason != "conflict" {
		t.Errorf("%+v", a)
	}
}

func TestAnAnswerForAnotherCallIsRefused(t *testing.T) {
	d := New(Options{})
	got := ask(d, question(`{"n":1}`))
	p := wait(t, d)
	if err := d.Answer(p.ID, question(`{"n":2}`).Digest(), Once, "page"); !errors.Is(err, ErrDigest) {
		t.Errorf("error %v", err)
	}
	if err := d.Answer(p.ID, p.Digest, Deny, "page"); err != nil {
		t.Fatal(err)
	}
	<-got
}

// Each part of a call changes its digest, and parts cannot be moved between each other.
func TestTheDigestCoversEverything(t *testing.T) {
	base := question(`{"argv":["foo","bar"]}`)
	seen := map[string]string{base.Digest(): "base"}
	for name, change := range map[string]func(*Question){
		"server":    func(q *Question) { q.Server = "mails" },
		"tool":      func(q *Question) { q.Tool = "sen" },
		"moved":     func(q *Question) { q.Server, q.Tool = "mails", "end" },
		"directory": func(q *Question) { q.Directory = "/w" },
		"policy":    func(q *Question) { q.Policy = "2" },
		"empty arg": func(q *Question) { q.Call = []byte(`{"argv":["foo","","bar"]}`) },
		"nul":       func(q *Question) { q.Call = []byte(`{"argv":["foo","b\u0000ar"]}`) },
		"long tail": func(q *Question) { q.Call = []byte(`{"argv":["` + strings.Repeat("A", 512) + `; rm -r x"]}`) },
		"long":      func(q *Question) { q.Call = []byte(`{"argv":["` + strings.Repeat("A", 512) + `"]}`) },
	} {
		q := base
		change(&q)
		if other, dup := seen[q.Digest()]; dup {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[q.Digest()] = name
	}
}

func TestFloodsAndGiantsAreDenied(t *testing.T) {
	d := New(Options{})
	var asked []<-chan Answer
	for range maxPerSession {
		asked = append(asked, ask(d, question(`{}`)))
	}
	for {
		changed := d.Changed()
		if list, _ := d.Waiting(); len(list) == maxPerSession {
			break
		}
		<-changed
	}
	if a := d.Ask(context.Background(), question(`{}`)); a.Reason != "too-many" {
		t.Errorf("%+v", a)
	}
	other := question(`{}`)
	other.Session = "s2"
	asked = append(asked, ask(d, other)) // another session still gets through
	for {
		changed := d.Changed()
		if list, _ := d.Waiting(); len(list) == maxPerSession+1 {
			break
		}
		<-changed
	}
	d.Close()
	for _, got := range asked {
		if a := <-got; a.Verdict != Deny || a.Reason != "closed" {
			t.Errorf("%+v", a)
		}
	}
	if a := d.Ask(context.Background(), question(`{}`)); a.Reason != "closed" {
		t.Errorf("after Close: %+v", a)
	}
	giant := question(`{"body":"` + strings.Repeat("a", MaxShown) + `"}`)
	if a := New(Options{}).Ask(context.Background(), giant); a.Verdict != Deny || a.Reason != "too-large" {
		t.Errorf("%+v", a)
	}
}

func TestElicitationIsForLowRiskOnly(t *testing.T) {
	for _, high := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := New(Options{})
			q := question(`{"to":"x\u200by@b.example"}`)
			q.HighRisk = high
			elicited := false
			q.Elicit = func(_ context.Context, text string) (Verdict, error) {
				elicited = true
				if !strings.Contains(text, `x\u{200B}y@b.example`) {
					t.Errorf("hidden character not shown in %s", text)
				}
				return Once, nil
			}
			a := d.Ask(t.Context(), q)
			want := Answer{Once, "elicitation", "answered"}
			if high {
				want = Answer{Reason: "timeout"}
			}
			if a != want || elicited == high {
				t.Errorf("high risk %v: %+v", high, a)
			}
		})
	}
}

func TestAFailingElicitationLeavesTheQuestionOpen(t *testing.T) {
	d := New(Options{})
	q := question(`{}`)
	q.Elicit = func(context.Context, string) (Verdict, error) { return Once, errors.New("the client went away") }
	got := ask(d, q)
	p := wait(t, d)
	if err := d.Answer(p.ID, p.Digest, Deny, "page"); err != nil {
		t.Fatal(err)
	}
	if a := <-got; a.Verdict != Deny || a.Channel != "page" {
		t.Errorf("%+v", a)
	}
}

func TestAnAnswerThatCannotBeRecordedDenies(t *testing.T) {
	d := New(Options{Record: func(e audit.Event) error {
		if e.Answer != "once" || e.Kind != audit.Approval || e.Digest == "" {
			t.Errorf("%+v", e)
		}
		return errors.New("disk full")
	}})
	got := ask(d, question(`{}`))
	p := wait(t, d)
	if err := d.Answer(p.ID, p.Digest, Once, "page"); err != nil {
		t.Fatal(err)
	}
	if a := <-got; a.Verdict != Deny || a.Reason != "not-recorded" {
		t.Errorf("%+v", a)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, 語, é, naïve": "plain text, 語, é, naïve",
		"build\u200b":             `build\u{200B}`,
		"\u202egpj.x":             `\u{202E}gpj.x`,
		"/w\u2066":                `/w\u{2066}`,
		"a" + strings.Repeat(" ", 1800) + "; rm -r /": `a[1800 spaces]; rm -r /`,
		"x\U000E0100":      `x\u{E0100}`,
		"a\u00a0b":         `a\u{00A0}b`,
		"tidy\n\nApproved": `tidy\n\nApproved`,
		"\x1b[2J\x07":      `\u{001B}[2J\u{0007}`,
		"\xff":             `\xff`,
		"a\\nb":            `a\\nb`,
		"pаypal.com":       "pаypal[mixes Latin and Cyrillic].com", // the second letter is U+0430
		"Москва":           "Москва",
		"\u3164x":          `\u{3164}x`,
		"\u2800":           `\u{2800}`,
		"\U000E0041":       `\u{E0041}`,
		"tab\there":        `tab\there`,
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func FuzzVisibleIsPrintable(f *testing.F) {
	f.Add("a\x1b\u202e \n\\")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Visible(s) {
			if r != ' ' && hidden(r) {
				t.Fatalf("%q shows %U", s, r)
			}
		}
	})
}

// Everything that takes effect is shown, on every channel.
func TestEveryLeafIsShown(t *testing.T) {
	q := question(`{"name":"safe","command":"node","args":["-e","x"],"env":{"NODE_OPTIONS":"--require /tmp/x"},"deep":[{"a":null},[],{}],"n":12345678901234567890,"on":true,"":"no name"}`)
	text := q.Text()
	for _, want := range []string{`name = "safe"`, `args[0] = "-e"`, `env.NODE_OPTIONS = "--require /tmp/x"`, `deep[0].a = null`, `deep[1] = []`, `deep[2] = {}`, `on = true`, `"no name"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestTheSocketServesTheTerminal(t *testing.T) {
	dir, err := os.MkdirTemp("", "hs") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "approve-1.sock"), nil, 0o600); err != nil { // left by a process that is gone
		t.Fatal(err)
	}
	d := New(Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := Serve(ctx, d, dir); err != nil {
			t.Error(err)
		}
	})
	got := ask(d, question(`{"to":"a@b.example"}`))
	wait(t, d)
	var list []Waiting
	for len(list) == 0 { // until the socket listens
		if list, err = List(ctx, dir); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) != 1 || !strings.Contains(list[0].Text, `to = "a@b.example"`) {
		t.Fatalf("%+v", list)
	}
	wrong := list[0]
	wrong.Digest = "sha256:00"
	if err := Reply(ctx, wrong, Once); err == nil || !strings.Contains(err.Error(), "another call") {
		t.Errorf("wrong digest: %v", err)
	}
	if err := Reply(ctx, list[0], Once); err != nil {
		t.Fatal(err)
	}
	if a := <-got; a != (Answer{Once, "terminal", "answered"}) {
		t.Errorf("%+v", a)
	}
	cancel()
	serving.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("approve-%d.sock", os.Getpid()))); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSocketDirRefusesAnOpenFolder(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", base)
	if err := os.Mkdir(filepath.Join(base, "hearsay"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := SocketDir(); err == nil || !strings.Contains(err.Error(), "others may open it") {
		t.Fatalf("error %v", err)
	}
	os.Chmod(filepath.Join(base, "hearsay"), 0o700)
	if dir, err := SocketDir(); err != nil || dir != filepath.Join(base, "hearsay") {
		t.Fatal(dir, err)
	}
}
