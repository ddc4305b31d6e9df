package screen

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

type row struct {
	ID, Label, Kind, Category, Text, Plain, Template string
}

func readCorpus(tb testing.TB, name string) []row {
	tb.Helper()
	path := filepath.Join("testdata", "corpora", name+".jsonl")
	if _, err := os.Stat(path); err != nil {
		path = repotest.Shared(tb, "corpora/"+name+".jsonl")
	}
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var rows []row
	s := bufio.NewScanner(f)
	s.Buffer(nil, 8<<20)
	for s.Scan() {
		if len(s.Bytes()) == 0 {
			continue
		}
		var r row
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			tb.Fatal(err)
		}
		rows = append(rows, r)
	}
	if s.Err() != nil || len(rows) == 0 {
		tb.Fatal(name, s.Err(), len(rows))
	}
	return rows
}

func newSet(tb testing.TB, o Options) *Set {
	tb.Helper()
	s, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// onlyHidden is hidden_text alone.
var onlyHidden = Options{Secrets: Off, OverridePhrases: Off, RestatesRequest: Off}

func TestHiddenTextIsFound(t *testing.T) {
	s := newSet(t, onlyHidden)
	for _, r := range readCorpus(t, "hidden_text") {
		result := s.Check(t.Context(), Input{Text: r.Text})
		if len(result.Findings) == 0 {
			t.Errorf("%s: nothing found in %q", r.ID, r.Text)
		}
		if again := s.Check(t.Context(), Input{Text: result.Text}); again.Verdict != Pass {
			t.Errorf("%s: after rewriting there is still %+v in %q", r.ID, again.Findings, result.Text)
		}
	}
}

func TestBenignTextIsLeftAlone(t *testing.T) {
	s := newSet(t, onlyHidden)
	for _, name := range []string{"benign_unicode", "notinject_benign", "bipia_benign"} {
		t.Run(name, func(t *testing.T) {
			for _, r := range readCorpus(t, name) {
				result := s.Check(t.Context(), Input{Text: r.Text})
				if result.Verdict != Pass || len(result.Findings) > 0 || result.Text != r.Text {
					t.Errorf("%s: %s, %+v", r.ID, result.Verdict, result.Findings)
				}
				if label, found := Clean(r.Text); label != r.Text || found != nil {
					t.Errorf("%s: Clean changes it: %+v", r.ID, found)
				}
			}
		})
	}
}
