//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// serve says that the sandbox is ready, waits for the order and runs the command to its end.
func (in *initer) serve(r ready, fds []int) error {
	if err := in.ctl.send(message{Ready: &r}, fds...); err != nil {
		return layerError("start", err)
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	for {
		m, _, err := in.ctl.receive()
		if err != nil {
			in.end(exitInit) // the parent is gone, or has thought better of it
		}
		if m.Go {
			break
		}
	}
	if err := in.start(); err != nil {
		return err
	}
	if err := in.ctl.send(message{Running: true}); err != nil {
		return layerError("start", err)
	}
	go in.obey()
	if in.guard != nil {
		go func() {
			err := in.guard.wait()
			_ = in.ctl.send(message{Failed: describe(layerError("files", err))})
			in.end(exitInit)
		}()
	}
	return in.reap()
}

// obey passes signals to the command. When the parent is gone, init ends, and the kernel ends everything inside with it.
func (in *initer) obey() {
	for {
		m, _, err := in.ctl.receive()
		if err != nil {
			in.end(exitInit)
		}
		if m.Signal != 0 {
			// To the command's session: Ctrl-C reaches every process of a pipeline.
			_ = unix.Kill(-in.target, m.Signal)
		}
	}
}

// start runs the command from the confined thread.
func (in *initer) start() error {
	p := &in.plan
	path, err := lookPath(p.Args[0], p.Env, p.Dir)
	if err != nil {
		return &CommandError{Command: p.Args[0], Err: err, NotFound: errors.Is(err, exec.ErrNotFound) || errors.Is(err, unix.ENOENT),
			Hint: "Only the system's folders and what is listed are there"}
	}
	attr := &syscall.ProcAttr{Dir: p.Dir, Env: p.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}
	if in.pty != nil {
		fd := in.pty.Fd()
		attr.Files = []uintptr{fd, fd, fd}
		attr.Sys.Setctty = true
	}
	args := slices.Clone(p.Args)
	if p.As != "" {
		args[0] = p.As
	}
	pid, err := syscall.ForkExec(path, args, attr)
	if err != nil {
		return &CommandError{Command: p.Args[0], Err: err, NotFound: errors.Is(err, unix.ENOENT),
			Hint: "Its interpreter or the working folder may be missing inside"}
	}
	in.target = pid
	if in.pty != nil {
		in.pty.Close()
	}
	// The command's streams are its own now: a reader outside must see their end when the command closes them.
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return layerError("start", err)
	}
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return layerError("start", err)
		}
	}
	return layerError("start", unix.Close(null))
}

// reap waits for every child and ends with the command: the kernel then ends what it left behind.
func (in *initer) reap() error {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return layerError("start", err)
		}
		if pid != in.target || !ws.Exited() && !ws.Signaled() {
			continue
		}
		var e exitStatus
		if ws.Signaled() {
			e.Signal = ws.Signal()
		} else {
			e.Code = ws.ExitStatus()
		}
		if in.plan.NoNamespaces {
			in.sweep() // before it is said that all is over
		}
		_ = in.ctl.send(message{Exit: &e})
		in.end(0)
	}
}

// end ends init. In a process namespace the kernel then ends everything inside.
func (in *initer) end(code int) {
	if in.plan.NoNamespaces {
		in.sweep()
	}
	os.Exit(code)
}

// lookPath finds a command in the PATH that the command itself gets.
func lookPath(name string, env []string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, executable(name)
	}
	var list string
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			list = v
		}
	}
	var first error
	for _, d := range filepath.SplitList(list) {
		if !filepath.IsAbs(d) {
			continue // the working folder is the project's, not the operator's
		}
		path := filepath.Join(d, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if first == nil && !errors.Is(err, unix.ENOENT) {
			first = err
		}
	}
	if first != nil {
		return "", first
	}
	return "", exec.ErrNotFound
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return unix.EISDIR
	}
	return unix.Access(path, unix.X_OK)
}
