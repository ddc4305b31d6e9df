//go:build real && linux && (amd64 || arm64)

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// hearsayIn gives the command and a folder of the test's.
func hearsayIn(t *testing.T) (bin, dir string) {
	t.Helper()
	dir = t.TempDir()
	bin = filepath.Join(dir, "hearsay")
	linkHearsay(t, bin)
	return bin, dir
}

func code(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return -1
}

func TestRunExitCodes(t *testing.T) {
	bin, dir := hearsayIn(t)
	put(t, filepath.Join(dir, "plain"), "text")
	for _, r := range []struct {
		args []string
		want int
	}{
		{[]string{"--", "true"}, 0}, {[]string{"--", "sh", "-c", "exit 7"}, 7}, {[]string{"--", "sh", "-c", "kill -9 $$"}, 137},
		{[]string{"--", "no-such-command"}, 127}, {[]string{"--read", dir, "--", filepath.Join(dir, "plain")}, 126},
		{[]string{"--read", "/proc", "--", "true"}, 125}, {[]string{"--preset", "x", "--", "true"}, 2}, {[]string{}, 2},
	} {
		if out, err := exec.Command(bin, append([]string{"run"}, r.args...)...).CombinedOutput(); code(err) != r.want {
			t.Errorf("%q: %v, want %d\n%s", r.args, err, r.want, out)
		}
	}
}

// `hearsay run -- sh` without a file shows an empty world.
func TestRunShowsAnEmptyWorld(t *testing.T) {
	bin, dir := hearsayIn(t)
	put(t, filepath.Join(dir, "secret"), "planted")
	script := `ls -A ~; echo "home: $HOME"; ls /root /home/* ` + dir + ` 2>/dev/null; env | grep -c PLANTED; ls -d /proc/[0-9]* | wc -l; cat /etc/resolv.conf; echo "interfaces: $(ls /proc/sys/net/ipv4/conf)"`
	cmd := exec.Command(bin, "run", "--", "sh", "-c", script)
	cmd.Env = append(os.Environ(), "PLANTED=planted")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"home: /home/user\n", "\n0\n", "no network", "interfaces: all\ndefault\nlo\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(string(out), "planted") || strings.Contains(string(out), "secret") {
		t.Error("something of the host is visible")
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

// Files and pipes as standard streams: the output is complete, and through an input file nothing can be written.
func TestRunStreams(t *testing.T) {
	bin, dir := hearsayIn(t)
	big := strings.Repeat("0123456789abcde\n", 1<<16)
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	put(t, in, big)
	stdin, err := os.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	cmd := exec.Command(bin, "run", "--", "sh", "-c", "(echo evil >/proc/self/fd/0) 2>/dev/null; cat; echo error >&2")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if got, _ := os.ReadFile(out); string(got) != big || stderr.String() != "error\n" {
		t.Errorf("%d bytes of output, want %d; error output %q", len(got), len(big), stderr.String())
	}
	if got, _ := os.ReadFile(in); string(got) != big {
		t.Error("the input file was changed")
	}
}

func TestRunPassesSignals(t *testing.T) {
	bin, _ := hearsayIn(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		cmd := exec.Command(bin, "run", "--", "sh", "-c", fmt.Sprintf("trap 'echo caught; exit 9' %d; echo ready; while :; do sleep 0.05; done", int(sig)))
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out := bufio.NewReader(stdout)
		if line, err := out.ReadString('\n'); err != nil {
			t.Fatalf("%q %v", line, err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		line, _ := out.ReadString('\n')
		if err := cmd.Wait(); code(err) != 9 || line != "caught\n" {
			t.Errorf("%v: %v, it said %q", sig, err, line)
		}
	}
}

// The audit log has the sandbox with what was enforced, then each connection, and it verifies.
func TestRunAudit(t *testing.T) {
	bin, dir := hearsayIn(t)
	log := filepath.Join(dir, "audit.jsonl")
	put(t, filepath.Join(dir, "hearsay.yaml"), fmt.Sprintf("audit: {file: %q}\negress: {allow: [\"allowed.test\"]}\n", log))
	out, err := exec.Command(bin, "run", "-c", filepath.Join(dir, "hearsay.yaml"), "--", "curl", "-sS", "-m", "20", "https://denied.test/").CombinedOutput()
	if code(err) == 0 || !strings.Contains(string(out), "hearsay: refused a connection to denied.test:443: not-allowed") {
		t.Errorf("%v\n%s", err, out)
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var kinds []string
	err = audit.Entries(f, func(e audit.Entry, err error) bool {
		if err != nil {
			t.Error(err)
			return false
		}
		kinds = append(kinds, string(e.Kind)+" "+e.Answer)
		if len(kinds) == 1 {
			for _, layer := range []string{"namespaces", "network", "files", "capabilities", "landlock", "seccomp", "limits"} {
				if !strings.HasPrefix(e.Detail["layer "+layer], "enforced") {
					t.Errorf("layer %s: %q", layer, e.Detail["layer "+layer])
				}
			}
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	if len(kinds) < 2 || kinds[0] != "start " || kinds[1] != "decision deny" {
		t.Errorf("entries: %q", kinds)
	}
	if out, err := exec.Command(bin, "audit", "verify", log).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDoctor(t *testing.T) {
	bin, _ := hearsayIn(t)
	if out, err := exec.Command(bin, "doctor").CombinedOutput(); err != nil || !strings.Contains(string(out), "Everything holds.") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := exec.Command(bin, "doctor", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		OK     bool
		Checks []struct{ OK bool }
		Report struct{ Layers []struct{ State string } }
	}
	if err := json.Unmarshal(out, &found); err != nil || !found.OK || len(found.Checks) != 18 || len(found.Report.Layers) < 7 {
		t.Errorf("%v\n%s", err, out)
	}
}

// On a terminal the command has one of its own, relayed, with the size of the outer one.
func TestRunOnATerminal(t *testing.T) {
	bin, _ := hearsayIn(t)
	_, err := exec.LookPath("script")
	repotest.Need(t, "script (Debian package bsdutils)", err == nil)
	cmd := exec.Command("script", "-qec", "stty rows 33 cols 77; "+bin+" run -- sh -c 'tty; stty size; test -t 2 && echo all; exit 6'", "/dev/null")
	in, err := cmd.StdinPipe() // open to the end: script types the end of its input into the terminal
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.CombinedOutput()
	if code(err) != 6 || !strings.Contains(string(out), "/dev/pts/0\r\n33 77\r\nall\r\n") {
		t.Errorf("%v: %q", err, out)
	}
}

// The file in force, its pins and the secrets it reads lie in the project that the command may change.
func TestRunGuardsItsOwnFiles(t *testing.T) {
	bin, dir := hearsayIn(t)
	project := filepath.Join(dir, "project")
	put(t, filepath.Join(project, "rules.yaml"), "pins: {lock: pins/own.lock}\negress: {allow: [api.example.com]}\ncredentials:\n  - {host: api.example.com, header: Authorization, secret: \"file:"+project+"/token\"}\n")
	put(t, filepath.Join(project, "pins/own.lock"), "{}")
	put(t, filepath.Join(project, "token"), "planted-secret")
	script := `for f in rules.yaml pins/own.lock token; do echo x 2>/dev/null >>$f && echo "wrote $f"; rm $f && echo "removed $f"; done; mv pins p && echo "moved"; cat token; echo x >other && echo ordinary`
	cmd := exec.Command(bin, "run", "-c", "rules.yaml", "--preset", "project-rw", "--", "sh", "-c", "exec 2>/dev/null; "+script)
	cmd.Dir = project
	if out, err := cmd.Output(); err != nil || string(out) != "ordinary\n" {
		t.Errorf("%v: %s", err, out)
	}
}
