//go:build real

package realtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tasks between the TypeScript SDK's client and server-everything: begun, followed to the end, fetched, listed, cancelled. Directly, behind the
// gateway, and behind one with several servers.
func TestFeatureTasks(t *testing.T) {
	p := newParts(t)
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	file := filepath.Join(dir, "hearsay.yaml")
	text := fmt.Sprintf(`servers:
  everything: {command: [node, %q], sandbox: off}
  filesystem: {command: [node, %q, %q], sandbox: off}
permissions: {allow: ["everything.*"]}
tools:
  everything.simulate-research-query: {effects: [read]}
`, p.everything[1], p.filesystem[1], p.dir)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, prefix string
		command      []string
		framed       bool
	}{
		{"directly", "", p.everything, false},
		{"behind", "", p.behind(p.everything), true},
		{"several", "everything__", []string{p.hearsay, "mcp", "-c", file}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PREFIX", tt.prefix)
			out := p.typescript(t, "tasks", tt.command, nil)
			for name, want := range map[string]string{"cancel": `"cancelled"`, "get": `"completed"`, "list": `["cancelled","completed"]`} {
				if got := string(out[name]); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			for _, name := range []string{"run", "result"} {
				var result struct{ Content []struct{ Text string } }
				if err := json.Unmarshal(out[name], &result); err != nil || len(result.Content) == 0 {
					t.Fatalf("%s: %v, %s", name, err, out[name])
				}
				said := result.Content[0].Text
				if tt.framed {
					said = unframed(t, said)
				}
				if !strings.Contains(said, "whales") {
					t.Errorf("%s: %q", name, said)
				}
			}
			if !strings.Contains(string(out["none"]), "error") {
				t.Errorf("a task that is not: %s", out["none"])
			}
		})
	}
}
