//go:build unix

package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// passedSignals reach the command.
var passedSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}

const resizeSignal = syscall.SIGWINCH

// resized gives the terminal inside the size of the one outside, when sig is about that.
func (s *streams) resized(sig syscall.Signal, p *sandbox.Process) bool {
	if sig != resizeSignal {
		return false
	}
	if s.terminal == nil || p.Terminal == nil {
		return true
	}
	if w, h, err := term.GetSize(int(s.terminal.Fd())); err == nil {
		if raw, err := p.Terminal.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(h), Col: uint16(w)})
			})
		}
	}
	return true
}
