package replay

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// claim is one line of testdata/claims.txt.
type claim struct {
	line, run, suite, mode, labels, words, agent, attack, figure string
	least                                                        bool // the bound is a lower one
	bound                                                        float64
}

func claims(t *testing.T) []claim {
	t.Helper()
	f, err := os.Open("testdata/claims.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []claim
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		w := strings.Fields(line)
		if len(w) != 10 || w[8] != "<=" && w[8] != ">=" {
			t.Fatalf("claims.txt: %q", line)
		}
		bound, err := strconv.ParseFloat(w[9], 64)
		if err != nil {
			t.Fatalf("claims.txt: %q: %v", line, err)
		}
		out = append(out, claim{line, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8] == ">=", bound})
	}
	return out
}

func (c claim) check(r *Report) error {
	f, ok := r.find(c.suite, Default().Name, c.mode, c.labels, c.words, c.agent, c.attack, c.figure)
	switch {
	case !ok:
		return fmt.Errorf("no such figure: %s", c.line)
	case c.least && f.Value < c.bound, !c.least && f.Value > c.bound:
		return fmt.Errorf("%s is claimed, counted were %v of n = %d", c.line, f.Value, f.N)
	}
	return nil
}

// The figures that the documents claim. The suites handed beside the project are held to them where they are there: a clone
// without them is whole.
func TestFiguresAreAsClaimed(t *testing.T) {
	if race {
		return
	}
	runs := map[string][]Suite{"own": ownSuites(t)}
	base := os.Getenv("HEARSAY_SHARED")
	if base == "" {
		base = filepath.Join(repotest.Root(t), "..", "shared")
	}
	dir := filepath.Join(base, "agentdojo")
	if _, err := os.Stat(dir); err == nil {
		var files []string
		for _, name := range []string{"banking.json", "workspace.json"} { // what the claims are about; there may be more
			files = append(files, filepath.Join(dir, name))
		}
		suites, err := Load(files...)
		if err != nil {
			t.Fatal(err)
		}
		runs["shared"] = suites
	} else {
		t.Logf("not there, so only the program's own suites are counted: %s", dir)
	}
	for name, suites := range runs {
		r := replayed(t, suites, Options{Policies: []Policy{Default()}})
		for _, d := range r.Differ {
			t.Error(d)
		}
		for _, c := range claims(t) {
			if c.run != name {
				continue
			}
			if err := c.check(r); err != nil {
				t.Error(err)
			}
		}
	}
}

// A claim that cannot fail claims nothing.
func TestClaimsCanFail(t *testing.T) {
	r := &Report{Figures: []Figure{{Suite: "s", Policy: Default().Name, Mode: "deny", Labels: "given", Words: "with", Agent: "hijacked", Attack: "static", Name: "asr", Value: 0.5}}}
	c := claim{suite: "s", mode: "deny", labels: "given", words: "with", agent: "hijacked", attack: "static", figure: "asr"}
	for _, tt := range []struct {
		least bool
		bound float64
		want  bool
	}{{false, 0.4, false}, {false, 0.5, true}, {true, 0.6, false}, {true, 0.5, true}} {
		c.least, c.bound = tt.least, tt.bound
		if err := c.check(r); (err == nil) != tt.want {
			t.Errorf("least %v, bound %v: %v", tt.least, tt.bound, err)
		}
	}
	c.figure = "utility"
	if c.check(r) == nil {
		t.Error("a claim about no figure holds")
	}
}

// The documents say what the claims say, no more.
func TestTheDocumentQuotesTheClaims(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(repotest.Root(t), "docs", "replay.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims(t) {
		if !strings.Contains(string(doc), c.line) {
			t.Errorf("docs/replay.md lacks %q", c.line)
		}
	}
}
