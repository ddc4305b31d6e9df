package gateway

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/screen"
)

// Process is a server that runs.
type Process struct {
	Stdin          io.WriteCloser
	Stdout, Stderr io.ReadCloser
	// Terminate asks it to end, Kill ends it and all it started. Both may be called at any time, also after the end.
	Terminate, Kill func()
	// Wait returns when it has ended, with a description of how. It is called once.
	Wait func() string
}

// How long a server that should end may take for each step: its input closed, then asked, then killed. In all below two
// seconds, so that nothing outlives a client by more.
const (
	closeGrace     = 700 * time.Millisecond
	terminateGrace = 700 * time.Millisecond
)

// BaseEnv names the variables of the gateway's own environment that each server gets: what programs need to run at all,
// and nothing that could hold a secret.
var BaseEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "TMPDIR"}

// Environ returns a server's whole environment.
func (s Server) Environ() []string {
	var env []string
	for _, name := range append(slices.Clone(BaseEnv), s.PassEnv...) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, s.Env...)
}

// Exec starts a server as an ordinary process: with an environment of its own, in a process group of its own, and killed by
// the kernel when the gateway dies. It has the files and the network of the gateway.
func Exec(ctx context.Context, s Server) (*Process, error) {
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Env, cmd.Dir = s.Environ(), s.Dir
	p := new(Process)
	var err error
	if p.Stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// Own pipes for the output: cmd.Wait must not close them while something is still to be read.
	var ends []*os.File
	for _, out := range []struct {
		mine *io.ReadCloser
		its  *io.Writer
	}{{&p.Stdout, &cmd.Stdout}, {&p.Stderr, &cmd.Stderr}} {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(p.Stdin, p.Stdout)
			return nil, err
		}
		*out.mine, *out.its = r, w
		ends = append(ends, w)
	}
	widen(p.Stdout)
	wait, err := startGroup(cmd)
	for _, w := range ends {
		w.Close()
	}
	if err != nil {
		closeAll(p.Stdin, p.Stdout, p.Stderr)
		return nil, fmt.Errorf("starting server %s: %w", s.Server, err)
	}
	p.Terminate = func() { signalGroup(cmd, false) }
	p.Kill = func() { signalGroup(cmd, true) }
	p.Wait = func() string {
		wait()
		p.Kill() // what it left behind in its group
		return cmd.ProcessState.String()
	}
	return p, nil
}

func closeAll(files ...io.Closer) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// end lets a process end in order. closeInput is told to close its standard input; it may take its time.
func (p *Process) end(closeInput func(), ended <-chan struct{}) {
	go closeInput()
	for _, step := range []struct {
		grace time.Duration
		then  func()
	}{{closeGrace, p.Terminate}, {terminateGrace, p.Kill}} {
		timer := time.NewTimer(step.grace)
		select {
		case <-ended:
			timer.Stop()
			return
		case <-timer.C:
			step.then()
		}
	}
	<-ended
}

// cleanLine makes one log value of what a server wrote.
func cleanLine(s string) string {
	s, _ = screen.Clean(cut(s, 2*maxLine))
	return strings.ToValidUTF8(oneLine(s), "\uFFFD")
}
