//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// pollable makes a pipe or socket that goroutines wait for without a thread each, and whose reads and writes a close ends.
// restore undoes that: the other side of a dup would see it too. Other files stay as they are.
func pollable(f *os.File) (g *os.File, restore func()) {
	fi, err := f.Stat()
	if err != nil || fi.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return f, func() {}
	}
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		return f, func() {}
	}
	unix.CloseOnExec(fd)
	unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), f.Name()), func() { unix.SetNonblock(int(f.Fd()), false) }
}

// readerGone makes a function that says whether nobody can read any more what is written to f.
func readerGone(f *os.File) func() bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return func() (gone bool) {
		raw.Control(func(fd uintptr) {
			fds := []unix.PollFd{{Fd: int32(fd)}}
			n, err := unix.Poll(fds, 0)
			gone = err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
		})
		return gone
	}
}
