//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// readerGone makes a function that says whether nobody can read any more what is written to f.
func readerGone(f *os.File) func() bool {
	return func() bool {
		fds := []unix.PollFd{{Fd: int32(f.Fd())}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
	}
}
