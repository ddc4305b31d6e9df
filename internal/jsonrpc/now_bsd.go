//go:build unix && !linux

package jsonrpc

import "golang.org/x/sys/unix"

// quickly reads or writes a descriptor in non-blocking mode.
func quickly(call, fd uintptr, data []byte) (int, error) {
	for {
		n, err := 0, error(nil)
		if call == unix.SYS_READ {
			n, err = unix.Read(int(fd), data)
		} else {
			n, err = unix.Write(int(fd), data)
		}
		if err != unix.EINTR {
			return n, err
		}
	}
}
