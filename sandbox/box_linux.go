//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// watch reads what init says until it is gone, and then reaps it. It owns the end of the sandbox.
func (s *starter) watch() {
	for {
		m, _, err := s.ctl.receive()
		if err != nil {
			break
		}
		switch {
		case m.Running:
			s.running <- nil
		case m.Failed != nil:
			s.mu.Lock()
			s.failed = s.withHint(withRemedy(m.Failed.error()))
			s.mu.Unlock()
		case m.Exit != nil:
			s.mu.Lock()
			s.exit = m.Exit
			s.mu.Unlock()
		}
	}
	if !s.plan.NoNamespaces {
		_ = s.kill() // the socket is closed: init is going or gone
	}
	_ = s.cmd.Wait()
	s.clean()
	failed := ErrGone
	if s.failed != nil {
		failed = s.failed
	}
	select {
	case s.running <- failed:
	default:
	}
	close(s.ended)
}

// clean frees what outlives init.
func (s *starter) clean() {
	s.once.Do(func() {
		if s.stop != nil {
			s.stop()
		}
		s.group.remove()
		s.janitor.close()
		if s.plan.NoNamespaces {
			_ = os.RemoveAll(s.plan.Scratch.Base) // init did, unless it was killed
		}
		if s.ctl.f != nil {
			s.ctl.f.Close()
		}
	})
}

func (s *starter) run() error {
	_ = s.ctl.send(message{Go: true}) // when init is gone, watch says why
	return <-s.running
}

// complete adds to what init measured what only the parent knows.
func (s *starter) complete(r Report) Report {
	r.Weaker = s.spec.Weaker
	r.Notes = slices.Concat(s.view.notes, s.identityNotes(), r.Notes)
	r.View = shown(s.plan.Entries)
	if s.group != nil {
		r.Layers = append(r.Layers, Layer{"cgroup", Enforced, s.group.detail})
	}
	return r
}

func (s *starter) wait() (Exit, error) {
	<-s.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exit == nil {
		if err := s.ctx.Err(); err != nil {
			return Exit{}, fmt.Errorf("%w: %w", ErrGone, err)
		}
		if s.failed != nil {
			return Exit{}, fmt.Errorf("%w: %w", ErrGone, s.failed)
		}
		return Exit{}, ErrGone
	}
	return Exit{Code: s.exit.Code, Signal: s.exit.Signal}, nil
}

func (s *starter) signal(sig syscall.Signal) error {
	select {
	case <-s.ended:
		return os.ErrProcessDone
	default:
	}
	return s.ctl.send(message{Signal: sig})
}

func (s *starter) kill() error {
	if s.plan.NoNamespaces {
		// Init must find what it started before it goes: it does when the socket ends.
		return s.ctl.closeWrite()
	}
	err := s.cmd.Process.Kill() // of init: the kernel ends everything in its process namespace with it
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// shown is the view without the system's part.
func shown(entries []entry) []Mount {
	var mounts []Mount
	for _, e := range entries {
		if e.Listed && e.Access != pinned {
			mounts = append(mounts, Mount{e.Target, string(e.Access)})
		}
	}
	return mounts
}

// withHint says where a command is that was not found inside.
func (s *starter) withHint(err error) error {
	var ce *CommandError
	if !errors.As(err, &ce) || !ce.NotFound {
		return err
	}
	if path, lookErr := exec.LookPath(s.spec.Args[0]); lookErr == nil {
		ce.Hint = fmt.Sprintf("Outside it is %s: list its folder for reading, and what it needs, and give its path", path)
	}
	return err
}
