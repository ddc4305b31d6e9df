package replay

import (
	"strings"
	"testing"
)

// What the gate alone says and what the whole gateway does must be the same, or the figures of one say nothing about the other:
// Run notes where they differ. Here they are made to.
func TestTheGatewayAndTheGateAreCompared(t *testing.T) {
	s := ownSuites(t)[0]
	c := cell{suite: &s, agent: Hijacked(), policy: Default(), labels: "given", words: "with"}
	w, err := newWorld(&s, c.policy, s.given(), true)
	if err != nil {
		t.Fatal(err)
	}
	task := &s.UserTasks[0]
	good := &tally{}
	r, err := w.start(task, false, once)
	if err != nil {
		t.Fatal(err)
	}
	c.attacks(w, r, r.toInjection(), "deny", good)
	if err := c.plays(w, task, 0, good); err != nil || len(c.differ) > 0 {
		t.Fatalf("they differ: %v %q", err, c.differ)
	}
	if good.asr.n != len(s.Injections) || good.asr.sum != 0 {
		t.Errorf("counted through the gateway: %+v", good.asr)
	}
	good.static[0] = attack{all: true, any: true, through: []string{"mail_send"}}
	if err := c.plays(w, task, 0, good); err != nil || len(c.differ) != 1 || !strings.Contains(c.differ[0], "mail_send") {
		t.Errorf("a difference is not seen: %v %q", err, c.differ)
	}
}

// The session is a whole one: results are framed, an attack's words are inside the frame, and a refusal is the gate's.
func TestOneSessionThroughTheGateway(t *testing.T) {
	s := ownSuites(t)[0]
	w, err := newWorld(&s, Default(), s.given(), true)
	if err != nil {
		t.Fatal(err)
	}
	task := &s.UserTasks[0]
	policy, err := w.gate(task)
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.open(task, policy)
	if err != nil {
		t.Fatal(err)
	}
	read := task.Calls[0]
	ran, shown, err := l.call(read, read.injected("OBEY\u200b ME"), false)
	if err != nil || !ran || !strings.Contains(shown, "namzu-untrusted") || !strings.Contains(shown, "OBEY ME") {
		t.Errorf("a result: ran %v, %v\n%s", ran, err, shown)
	}
	evil := s.Injections[0].Calls[1]
	ran, shown, err = l.call(evil, "sent", false)
	if err != nil || ran || !strings.Contains(shown, "not permitted") || l.questions() != 1 {
		t.Errorf("a refused call: ran %v, %d questions, %v\n%s", ran, l.questions(), err, shown)
	}
	if ran, _, err = l.call(evil, "sent", true); err != nil || !ran || l.questions() != 2 {
		t.Errorf("an approved call: ran %v, %d questions, %v", ran, l.questions(), err)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
}
