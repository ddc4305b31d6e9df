//go:build real && linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// minEscapes is how many attempts the suite must make: fewer means that rows were lost.
const minEscapes = 250

type escapeResult struct {
	Kind, Name, Answer string
	Held               bool
}

// tryEscapes runs the suite in a sandbox of a user, with some layers switched off.
func tryEscapes(t *testing.T, uid int, off layers) []escapeResult {
	t.Helper()
	base := folder(t, uid)
	marker := "planted-" + filepath.Base(base)
	project, readDir := filepath.Join(base, "project"), filepath.Join(base, "read")
	put(t, filepath.Join(base, "secret"), marker)
	put(t, filepath.Join(base, "input"), "standard input\n")
	put(t, filepath.Join(base, "home", ".ssh", "id_ed25519"), marker)
	put(t, filepath.Join(readDir, "file"), "text\n")
	build(t, "./testdata/escape", filepath.Join(readDir, "escape"))
	for path, text := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n", ".git/hooks/pre-commit.sample": "", ".git/objects/x": "", ".git/refs/heads/x": "",
		".git/info/exclude": "", "vault/secrets/key": marker, "vault/other/key": marker, ".bashrc": "", "dotfiles/profile": "",
	} {
		put(t, filepath.Join(project, path), text)
	}
	for link, to := range map[string]string{"link-out": filepath.Join(base, "secret"), ".profile": "dotfiles/profile", "ref": "vault/other"} {
		if err := os.Symlink(to, filepath.Join(project, link)); err != nil {
			t.Fatal(err)
		}
	}
	own(t, uid, base)

	abstract, err := net.Listen("unix", "@"+marker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { abstract.Close() })
	bait := map[string]any{
		"Secret": filepath.Join(base, "secret"), "Marker": marker, "Home": filepath.Join(base, "home"), "HostPID": os.Getpid(),
		"HostPort": hostListener(t), "HostAddr": hostAddr(), "Abstract": marker, "Read": readDir, "Project": project,
		"HiddenDir": filepath.Join(project, "vault/secrets"), "HiddenRef": filepath.Join(project, "ref"), "NearOnly": off.Network,
	}
	arg, err := json.Marshal(bait)
	if err != nil {
		t.Fatal(err)
	}
	cmd := driver(t, uid, driveOrder{
		Spec: Spec{
			Args: []string{filepath.Join(readDir, "escape"), string(arg)}, Preset: ProjectRW, Project: project,
			Read: []string{readDir}, Hide: []string{filepath.Join(project, "vault/secrets"), filepath.Join(project, "ref")},
		},
		Off: off, Stdin: filepath.Join(base, "input"),
	})
	cmd.Env = append(cmd.Env, "HOME="+filepath.Join(base, "home"), "LAUNCHER_SECRET="+marker)
	leak, err := os.Open(filepath.Join(base, "secret")) // a descriptor that the launcher's starter left open
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	cmd.ExtraFiles = []*os.File{leak, leak, leak, leak}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the suite did not run: %v\n%s", err, stderr.String())
	}
	var results []escapeResult
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var r escapeResult
		if err := dec.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("reading the results: %v\n%s", err, stderr.String())
		}
		results = append(results, r)
	}
	slices.SortStableFunc(results, func(a, b escapeResult) int {
		return strings.Compare(a.Kind+"\x00"+a.Name, b.Kind+"\x00"+b.Name)
	})
	// Nothing was left on the host, and nothing that was held came to be.
	for _, name := range []string{".mcp.json", ".claude", ".vscode", ".cursor", ".codex", ".gemini", ".git/worktrees", ".git/modules", ".git/commondir", ".git/config.worktree", ".git/hooks/post-checkout", "git.old", "moved", "hard"} {
		if _, err := os.Lstat(filepath.Join(project, name)); err == nil && off == (layers{}) {
			t.Errorf("%s was left in the project", name)
		}
	}
	return results
}

// hostAddr is an address of this machine besides the loopback's, if it has one.
func hostAddr() string {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	return ""
}

// TestEscapes prints the table of docs/sandbox.md:
//
//	go test -tags real -run 'TestEscapes$' -v ./sandbox
func TestEscapes(t *testing.T) {
	for _, uid := range users() {
		t.Run(called(uid), func(t *testing.T) {
			results := tryEscapes(t, uid, layers{})
			var table strings.Builder
			w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "kind\tattempt\tanswer\theld")
			held := 0
			for _, r := range results {
				fmt.Fprintf(w, "%s\t%s\t%s\t%v\n", r.Kind, r.Name, cutLine(r.Answer), r.Held)
				if r.Held {
					held++
				} else {
					t.Errorf("%s: %s: %s", r.Kind, r.Name, r.Answer)
				}
			}
			w.Flush()
			t.Logf("as %s, %d of %d attempts held\n%s", called(uid), held, len(results), table.String())
			if len(results) < minEscapes {
				t.Errorf("the suite made %d attempts, fewer than %d", len(results), minEscapes)
			}
		})
	}
}

func cutLine(s string) string {
	if len(s) > 60 {
		s = s[:57] + "…"
	}
	return s
}

// TestEscapesFindEachMissingLayer switches one layer off at a time: the suite must notice.
func TestEscapesFindEachMissingLayer(t *testing.T) {
	for _, uid := range users() {
		for i := range reflect.TypeFor[layers]().NumField() {
			name := reflect.TypeFor[layers]().Field(i).Name
			t.Run(called(uid)+"/without "+name, func(t *testing.T) {
				var off layers
				reflect.ValueOf(&off).Elem().Field(i).SetBool(true)
				var open []string
				for _, r := range tryEscapes(t, uid, off) {
					if !r.Held {
						open = append(open, r.Kind+": "+r.Name)
					}
				}
				if len(open) == 0 {
					t.Errorf("every attempt was held without %s: the suite cannot tell", name)
				}
				t.Logf("%d attempts open without %s: %s", len(open), name, strings.Join(open, "; "))
			})
		}
	}
}
