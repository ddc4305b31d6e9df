package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

const (
	demoOpen  = "<!-- what `go run ./cmd/hearsay demo` prints; a test compares -->\n```text\n"
	demoClose = "```\n"
	lastPart  = "\n5. The sandbox"
)

// runSelf runs the command as a process of its own and gives its standard output.
func runSelf(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("hearsay", args...) // TestMain put this program into PATH under that name
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("hearsay %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// The demo runs the real gateway, gate, proxy and sandbox, and README shows what it prints.
func TestTheDemoIsWhatREADMEShows(t *testing.T) {
	if runtime.GOOS == "windows" {
		repotest.Need(t, "a Unix system", false)
	}
	got := runSelf(t, "demo")
	readme, err := os.ReadFile(filepath.Join(repotest.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), demoOpen)
	want, _, closed := strings.Cut(rest, "\n"+demoClose)
	if !ok || !closed {
		t.Fatal("README.md has no block with the demo's output")
	}
	want += "\n"
	if strings.Contains(got, "cannot make the sandbox") {
		repotest.Need(t, "a machine that can make the sandbox (hearsay doctor says why not)", false)
		got, _, _ = strings.Cut(got, lastPart)
		want, _, _ = strings.Cut(want, lastPart)
	}
	if strings.Trim(got, "\n") != strings.Trim(want, "\n") {
		t.Errorf("README.md shows another demo than this:\n%s", got)
	}
	for line := range strings.Lines(got) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
