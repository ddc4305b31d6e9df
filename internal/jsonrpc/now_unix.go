//go:build unix

package jsonrpc

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// writeNow makes a function that writes to out as much as needs no waiting: for pipes and sockets in non-blocking mode, as Go
// opens them. It saves the switch to another goroutine, which is most of what a short message costs.
func writeNow(out io.Writer) func([]byte) int {
	none := func([]byte) int { return 0 }
	file, ok := out.(syscall.Conn)
	if !ok {
		return none
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return none
	}
	blocking := true
	raw.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		blocking = err != nil || flags&unix.O_NONBLOCK == 0
	})
	if blocking {
		return none
	}
	return func(data []byte) (n int) {
		raw.Write(func(fd uintptr) bool {
			n, _ = unix.Write(int(fd), data)
			return true // done, whatever came of it: the goroutine meets the error again
		})
		return max(n, 0)
	}
}
