//go:build real && linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

func TestWithoutNamespaces(t *testing.T) {
	repotest.Need(t, fmt.Sprintf("Landlock ABI %d", minABI), landlockABI() >= minABI)
	c, err := Examine(t.Context(), FilesByLandlockNoNetwork)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range c.Checks {
		if !k.OK {
			t.Errorf("must %s: %s: %s", k.Must, k.Name, k.Answer)
		}
	}
	if c.Report.Full() || len(c.Checks) < 14 {
		t.Errorf("%d checks; the report: %+v", len(c.Checks), c.Report)
	}
	for _, uid := range users() {
		t.Run(called(uid), func(t *testing.T) {
			base := folder(t, uid)
			put(t, filepath.Join(base, "secret"), "secret")
			put(t, filepath.Join(base, "read/file"), "listed")
			must(t, os.MkdirAll(filepath.Join(base, "state"), 0o755))
			own(t, uid, base)
			mark := fmt.Sprintf("8%d.%d", os.Getpid(), uid)
			script := fmt.Sprintf(`cat %[1]s/read/file; cat %[1]s/secret; echo x >%[1]s/read/file; echo kept >$HEARSAY_STATE/kept && echo scratch >$HOME/x && echo $HOME
				(setsid sleep %[2]s </dev/null >/dev/null 2>&1 &); exit 5`, base, mark)
			cmd := driver(t, uid, driveOrder{Spec: Spec{Args: []string{"sh", "-c", script}, Read: []string{filepath.Join(base, "read")}, State: filepath.Join(base, "state"),
				Weaker: []Weaker{FilesByLandlockNoNetwork}}})
			out, err := cmd.CombinedOutput()
			text := string(out)
			if cmd.ProcessState.ExitCode() != 5 {
				t.Fatalf("%v\n%s", err, text)
			}
			if !strings.Contains(text, "listed") || strings.Contains(text, "secret\n") || strings.Count(text, "ermission denied") != 2 {
				t.Errorf("it said %s", text)
			}
			if data, err := os.ReadFile(filepath.Join(base, "state/kept")); err != nil || string(data) != "kept\n" {
				t.Errorf("kept: %q, %v", data, err)
			}
			home := strings.TrimSpace(text[strings.LastIndexByte(strings.TrimSpace(text), '\n')+1:])
			if _, err := os.Stat(home); err == nil || !filepath.IsAbs(home) {
				t.Errorf("the scratch folder %q is still there", home)
			}
			if running(mark) != 0 {
				t.Error("a daemon outlived the command")
			}
		})
	}
}

// What Landlock alone cannot hold is refused, never left open.
func TestWithoutNamespacesRefuses(t *testing.T) {
	repotest.Need(t, fmt.Sprintf("Landlock ABI %d", minABI), landlockABI() >= minABI)
	dir := folder(t, os.Geteuid())
	put(t, filepath.Join(dir, ".git/config"), "")
	for name, spec := range map[string]Spec{
		"a protected project": {Preset: ProjectRW, Project: dir},
		"a writable folder":   {Write: []string{dir}},
		"a hidden file":       {Read: []string{dir}, Hide: []string{filepath.Join(dir, ".git/config")}},
		"a network":           {Network: Egress},
		"a terminal":          {Terminal: true},
		"no Landlock either":  {Weaker: []Weaker{NoLandlock}},
		"unix sockets":        {Weaker: []Weaker{UnixSocketsInView}},
		"certificates":        {CA: []byte("x")},
	} {
		spec.Args = []string{"true"}
		spec.Weaker = append(spec.Weaker, FilesByLandlockNoNetwork)
		var le *LayerError
		if _, err := Start(t.Context(), spec); !errors.As(err, &le) || le.Remedy == "" {
			t.Errorf("%s: %v, want a LayerError with a remedy", name, err)
		}
	}
}
