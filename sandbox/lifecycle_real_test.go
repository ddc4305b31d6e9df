//go:build real && linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// patience is how long the tests wait for what should take a fraction of a second.
const patience = time.Minute

// begin starts a sandbox in this process and lets its command run.
func begin(t *testing.T, spec Spec) *Process {
	t.Helper()
	p, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	return p
}

// output runs a command to its end and gives what it said.
func output(t *testing.T, spec Spec) (string, Exit) {
	t.Helper()
	p := begin(t, spec)
	p.Stdin.Close()
	var out, errOut []byte
	var both sync.WaitGroup
	both.Go(func() { out, _ = io.ReadAll(p.Stdout) })
	both.Go(func() { errOut, _ = io.ReadAll(p.Stderr) })
	exit, err := p.Wait()
	both.Wait()
	if err != nil {
		t.Fatalf("%v\n%s", err, errOut)
	}
	return string(out) + string(errOut), exit
}

func TestExitAndSignalsPass(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 125": 125, "kill -KILL $$": 137, "kill -SEGV $$": 139, "sleep 0.01 & wait; exit 3": 3} {
		if _, exit := output(t, Spec{Args: []string{"sh", "-c", script}}); exit.Status() != want {
			t.Errorf("%q: status %d, want %d", script, exit.Status(), want)
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1} {
		p := begin(t, Spec{Args: []string{"sh", "-c", "echo ready; exec sleep 1000"}})
		if _, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(); err != nil || exit.Signal != sig {
			t.Errorf("%v: %v, %v", sig, exit, err)
		}
	}
}

func TestCommandErrors(t *testing.T) {
	dir := folder(t, os.Geteuid())
	put(t, filepath.Join(dir, "plain"), "text")
	for name, notFound := range map[string]bool{"no-such-command": true, filepath.Join(dir, "nothing"): true, filepath.Join(dir, "plain"): false, dir: false} {
		p, err := Start(t.Context(), Spec{Args: []string{name}, Read: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Go()
		var ce *CommandError
		if !errors.As(err, &ce) || ce.NotFound != notFound {
			t.Errorf("%s: %v, want a CommandError with NotFound %v", name, err, notFound)
		}
		if _, err := p.Wait(); !errors.Is(err, ErrGone) {
			t.Errorf("%s: Wait gives %v", name, err)
		}
	}
}

func TestContextEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := Start(ctx, Spec{Args: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := p.Wait(); !errors.Is(err, ErrGone) || !errors.Is(err, context.Canceled) {
		t.Errorf("Wait gives %v", err)
	}
	if _, err := Start(ctx, Spec{Args: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a start after the end gives %v", err)
	}
}

// Nothing runs before Go, and nothing at all when it is not called.
func TestNothingRunsBeforeGo(t *testing.T) {
	dir := folder(t, os.Geteuid())
	p, err := Start(t.Context(), Spec{Args: []string{"touch", filepath.Join(dir, "ran")}, Write: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Report(); !r.Full() || r.LandlockABI == 0 {
		t.Errorf("the report before Go: %+v", r)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); !errors.Is(err, ErrGone) {
		t.Errorf("Wait gives %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the command ran")
	}
}

func TestTerminal(t *testing.T) {
	p, err := Start(t.Context(), Spec{Args: []string{"sh", "-c", "tty; read x; echo got $x; stty size"}, Terminal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Terminal.Close()
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p.Terminal, "typed\n"); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(p.Terminal) // ends with an error when the last process is gone
	if text := string(out); !strings.Contains(text, "/dev/pts/0") || !strings.Contains(text, "got typed") {
		t.Errorf("the terminal said %q", text)
	}
	if exit, err := p.Wait(); err != nil || exit.Status() != 0 {
		t.Errorf("%v, %v", exit, err)
	}
}

// The sockets that were passed out are what connections inside reach: the proxy's by its address, the transparent ones by any.
func TestWayOutIsThePassedSockets(t *testing.T) {
	_, err := exec.LookPath("bash")
	repotest.Need(t, "bash", err == nil)
	script := `
		exec 3<>/dev/tcp/127.0.0.1/3128 && echo proxy >&3 && read -r a <&3
		exec 4<>/dev/tcp/203.0.113.5/443 && echo four >&4 && read -r b <&4
		exec 5<>/dev/tcp/2001:db8::7/8443 && echo six >&5 && read -r c <&5
		exec 6<>/dev/udp/127.0.0.1/53 && echo name >&6 && d=$(head -c1 <&6)
		echo "$a $b $c $d"
		(exec 7<>/dev/tcp/203.0.113.5/22) 2>/dev/null && echo "a port that nobody serves answered"
		(exec 7<>/dev/tcp/203.0.113.5/3128) 2>/dev/null && echo "the proxy's port answered for another address"
		exit 0`
	p, err := Start(t.Context(), Spec{Args: []string{"bash", "-c", script}, Network: Egress, Ports: []uint16{8443}})
	if err != nil {
		t.Fatal(err)
	}
	var seen sync.Map
	answer := func(l net.Listener, mark string) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			seen.Store(strings.TrimSpace(line), c.LocalAddr().String())
			fmt.Fprintf(c, "%s\n", mark)
			c.Close()
		}
	}
	go answer(p.Listener(), "A")
	for _, l := range p.Transparent() {
		go answer(l, "B")
	}
	go func() {
		buf := make([]byte, 64)
		n, from, err := p.DNS().ReadFrom(buf)
		if err == nil {
			seen.Store(strings.TrimSpace(string(buf[:n])), "dns")
			_, _ = p.DNS().WriteTo([]byte("D"), from)
		}
	}()
	defer p.closeWayOut()
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(p.Stdout)
	problems, _ := io.ReadAll(p.Stderr)
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if string(out) != "A B B D\n" {
		t.Errorf("inside: %q\n%s", out, problems)
	}
	for line, want := range map[string]string{"proxy": "127.0.0.1:3128", "four": "203.0.113.5:443", "six": "[2001:db8::7]:8443", "name": "dns"} {
		if got, _ := seen.Load(line); got != want {
			t.Errorf("%s arrived for %v, want %s", line, got, want)
		}
	}
}

// running counts the processes of the machine with a mark in their command line.
func running(mark string) int {
	dirs, _ := os.ReadDir("/proc")
	n := 0
	for _, d := range dirs {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		if data, err := os.ReadFile("/proc/" + d.Name() + "/cmdline"); err == nil && bytes.Contains(data, []byte(mark)) {
			n++
		}
	}
	return n
}

// until waits for a state of the machine.
func until(t *testing.T, what string, ok func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for !ok() {
		if time.Since(begin) > patience {
			t.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(5 * time.Millisecond) // between two looks
	}
	return time.Since(begin)
}

// TestKillMatrix prints how long each end takes:
//
//	go test -tags real -run TestKillMatrix -v ./sandbox
func TestKillMatrix(t *testing.T) {
	const daemons = 1000
	kids := func(pid int) []int { // of the launcher: init and the janitor
		var pids []int
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, f := range tasks {
			data, _ := os.ReadFile(f)
			for _, field := range strings.Fields(string(data)) {
				if p, err := strconv.Atoi(field); err == nil {
					pids = append(pids, p)
				}
			}
		}
		return pids
	}
	initOf := func(t *testing.T, launcher int) int {
		for _, pid := range kids(launcher) {
			if data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.HasPrefix(data, []byte(initName)) {
				return pid
			}
		}
		t.Fatal("the launcher has no init")
		return 0
	}
	for _, uid := range users() {
		for i, event := range []struct {
			name string
			end  func(t *testing.T, launcher *os.Process, stdin io.Closer)
		}{
			{"the launcher is killed", func(t *testing.T, l *os.Process, _ io.Closer) { must(t, l.Kill()) }},
			{"init is killed", func(t *testing.T, l *os.Process, _ io.Closer) {
				must(t, syscall.Kill(initOf(t, l.Pid), syscall.SIGKILL))
			}},
			{"standard input ends", func(t *testing.T, _ *os.Process, in io.Closer) { must(t, in.Close()) }},
		} {
			t.Run(called(uid)+"/"+event.name, func(t *testing.T) {
				dir := folder(t, uid)
				mark := fmt.Sprintf("9%d.%d%d", os.Getpid(), uid, i) // an argument of sleep that nobody else uses
				script := fmt.Sprintf(`trap '' TERM HUP; i=0
					while [ $i -lt %d ]; do (setsid sleep %s </dev/null >/dev/null 2>&1 &); i=$((i+1)); done
					echo ready; while read -r x; do :; done`, daemons, mark)
				cmd := driver(t, uid, driveOrder{Spec: Spec{Args: []string{"sh", "-c", script}, Preset: ProjectRW, Project: dir}})
				in, err := cmd.StdinPipe()
				must(t, err)
				out, err := cmd.StdoutPipe()
				must(t, err)
				cmd.Stderr = os.Stderr
				must(t, cmd.Start())
				if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
					t.Fatalf("the command said %q: %v", line, err)
				}
				until(t, "daemons run", func() bool { return running(mark) >= daemons })
				if _, err := os.Lstat(filepath.Join(dir, ".claude")); err != nil {
					t.Errorf("no name is held: %v", err)
				}
				event.end(t, cmd.Process, in)
				took := until(t, "every process is gone", func() bool { return running(mark) == 0 })
				left := until(t, "the project is as it was", func() bool { names, err := os.ReadDir(dir); return err == nil && len(names) == 0 })
				_ = cmd.Wait()
				t.Logf("%d daemons gone after %v, the held names after %v", daemons, took.Round(time.Millisecond), (took + left).Round(time.Millisecond))
			})
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestManyAtOnce(t *testing.T) {
	const many = 200
	begin := time.Now()
	var all sync.WaitGroup
	errs := make(chan error, many)
	for range many {
		all.Go(func() {
			p, err := Start(t.Context(), Spec{Args: []string{"sh", "-c", "echo $$ >/tmp/x && cat /tmp/x >/dev/null"}, Network: Egress})
			if err != nil {
				errs <- err
				return
			}
			defer p.closeWayOut()
			go io.Copy(io.Discard, p.Stdout)
			go io.Copy(io.Discard, p.Stderr)
			if err := p.Go(); err != nil {
				errs <- err
			}
			if exit, err := p.Wait(); err != nil || exit.Status() != 0 {
				errs <- fmt.Errorf("%v, %w", exit, err)
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	t.Logf("%d sandboxes at once: %v", many, time.Since(begin).Round(time.Millisecond))
}
