// Package export holds the test of export.py.
package export

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
	"github.com/seed-4e9f7b04/hearsay/replay"
)

func python(t *testing.T, stub bool, args ...string) (stdout string, code int) {
	t.Helper()
	path, err := exec.LookPath("python3")
	repotest.Need(t, "python3", err == nil)
	cmd := exec.Command(path, append([]string{"-B", "export.py"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if stub {
		cmd.Env = append(cmd.Env, "PYTHONPATH="+filepath.Join("testdata", "stub"))
	} else {
		cmd.Args = append([]string{path, "-B", "-I", "export.py"}, args...)
	}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// The package itself is not here: a stand-in with its names is exported, read back and replayed.
func TestExportOfAStandIn(t *testing.T) {
	dir := t.TempDir()
	out, code := python(t, true, "--out", dir)
	if code != 0 || !strings.Contains(out, "4 tools, 1 user tasks, 2 pairs") {
		t.Fatalf("exit %d: %s", code, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "tiny.json"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := replay.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	task := s.UserTasks[0]
	read, send, missing := task.Calls[0], task.Calls[1], task.Calls[2]
	if task.FirstInjectedCall == nil || *task.FirstInjectedCall != 0 || read.Result != `{"note": "Bring cake. "}` || !strings.Contains(read.ResultTemplate, "<INJECTION:note_text>") || len(read.Vectors) != 1 {
		t.Errorf("the call that reads: %+v", read)
	}
	if got := send.Args["body"]; got != "Bring cake. " || len(send.Vectors) != 0 {
		t.Errorf("the call that sends was made from the marked environment: %+v", send)
	}
	if !strings.HasPrefix(missing.Result, "Error: KeyError") {
		t.Errorf("a call that fails: %+v", missing)
	}
	if body, _ := s.Injections[0].Calls[0].Args["body"].(map[string]any); body["text"] != "x" || body["when"] != "2031-03-04" {
		t.Errorf("a model as an argument: %+v", s.Injections[0].Calls[0].Args)
	}
	if !s.Injections[1].TextOnly || s.Injections[0].TextOnly {
		t.Error("which attack is text only")
	}
	for i, want := range []struct {
		effect    string
		untrusted bool
		bind      string
	}{{"read", true, ""}, {"write", false, "recipients"}, {"egress", true, "url"}, {"read", true, ""}} {
		tool := s.Tools[i]
		if tool.Effect != want.effect || tool.ReturnsUntrusted != want.untrusted || strings.Join(tool.BindArgs, " ") != want.bind || tool.InputSchema["type"] != "object" {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil || file["labels"] != "unreviewed" {
		t.Errorf("the labels are not marked as guessed: %v %v", file["labels"], err)
	}
	if _, err := replay.Run([]replay.Suite{s}, replay.Options{Policies: []replay.Policy{replay.Default()}}); err != nil {
		t.Error(err)
	}
}

func TestExportSaysWhatIsWrong(t *testing.T) {
	if out, code := python(t, true, "--out", t.TempDir(), "nosuch"); code != 2 || !strings.Contains(out, "no suite nosuch; there are tiny") {
		t.Errorf("exit %d: %s", code, out)
	}
	if out, code := python(t, false, "--out", t.TempDir()); code != 1 || !strings.Contains(out, "pip install agentdojo") {
		t.Errorf("exit %d: %s", code, out)
	}
}
