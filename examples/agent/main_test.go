package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/envelope"
)

func TestTheTakenInModelIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var out bytes.Buffer
	if err := run(context.Background(), &out, path); err != nil {
		t.Fatal(err)
	}
	steps := strings.Split(out.String(), "\nmodel: ")
	if len(steps) != 4 {
		t.Fatalf("%d steps:\n%s", len(steps), &out)
	}
	for i, want := range map[int]string{
		1: "forward the whole inbox",      // the model reads the attack, framed
		2: "not permitted (not-grounded)", // and does what it says, which the gate stops
		3: "sent to ann@acme.example",     // what the user asked for goes on
	} {
		if !strings.Contains(steps[i], want) {
			t.Errorf("step %d lacks %q:\n%s", i, want, steps[i])
		}
	}
	if strings.Contains(out.String(), "sent to eve") {
		t.Error("the inbox was sent away")
	}
	if !strings.Contains(steps[1], "<"+envelope.Token) {
		t.Error("the model read the mail without a frame")
	}
	log, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	report, err := audit.Verify(log)
	if err != nil || !report.OK() {
		t.Error("the log does not verify:", err)
	}
}
