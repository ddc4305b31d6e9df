//go:build unix

package jsonrpc

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonBlocking gives what reads and writes a stream without waiting: a pipe or socket in non-blocking mode, as Go opens them;
// nil for any other. The mode belongs to the open file, not to the process: a terminal is one open file for every program on
// it, and the next shell that clears the mode would have a raw read hold a thread of the scheduler's for as long as nobody types.
func nonBlocking(stream any) syscall.RawConn {
	file, ok := stream.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil
	}
	ready := false
	raw.Control(func(fd uintptr) {
		var stat unix.Stat_t
		if unix.Fstat(int(fd), &stat) != nil {
			return
		}
		kind := stat.Mode & unix.S_IFMT
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		ready = err == nil && flags&unix.O_NONBLOCK != 0 && (kind == unix.S_IFIFO || kind == unix.S_IFSOCK)
	})
	if !ready {
		return nil
	}
	return raw
}

// writeNow makes a function that writes to out as much as needs no waiting. It saves the switch to another goroutine, which is
// most of what a short message costs. One goroutine at a time may call it.
func writeNow(out io.Writer) func([]byte) int {
	raw := nonBlocking(out)
	if raw == nil {
		return func([]byte) int { return 0 }
	}
	var data []byte
	n := 0
	once := func(fd uintptr) bool {
		n, _ = quickly(unix.SYS_WRITE, fd, data)
		return true // done, whatever came of it: the goroutine meets the error again
	}
	return func(part []byte) int {
		data, n = part, 0
		raw.Write(once)
		data = nil
		return max(n, 0)
	}
}

// readNow makes a reader of in whose system calls the scheduler does not hear of, see quickly.
func readNow(in io.Reader) io.Reader {
	raw := nonBlocking(in)
	if raw == nil {
		return in
	}
	r := &quickReader{raw: raw}
	r.some = func(fd uintptr) bool {
		r.n, r.err = quickly(unix.SYS_READ, fd, r.data)
		return r.err != unix.EAGAIN // otherwise wait until there is something
	}
	return r
}

// quickReader is such a reader; its function is made once, not for each call.
type quickReader struct {
	raw  syscall.RawConn
	some func(fd uintptr) bool
	data []byte
	n    int
	err  error
}

func (r *quickReader) Read(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	r.data, r.n, r.err = data, 0, nil
	ended := r.raw.Read(r.some)
	r.data = nil
	switch {
	case ended != nil:
		return 0, ended
	case r.err != nil:
		return 0, r.err
	case r.n == 0:
		return 0, io.EOF
	}
	return r.n, nil
}
