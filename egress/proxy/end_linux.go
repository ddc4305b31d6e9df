package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// endOf says how the peer of a connection ended that has just read an end of input. The kernel tells a reset once, to
// whichever call comes first; afterwards a read sees an orderly end. An error that nobody has met yet is returned (and taken);
// met reports that there was one which somebody else has met, or that this end has ended its side as well.
func endOf(c net.Conn) (unmet error, met bool) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil, false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil, false
	}
	_ = raw.Control(func(fd uintptr) {
		p := [1]unix.PollFd{{Fd: int32(fd)}}
		if n, _ := unix.Poll(p[:], 0); n <= 0 {
			return
		}
		if p[0].Revents&unix.POLLERR != 0 {
			if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && n != 0 {
				unmet = syscall.Errno(n)
				return
			}
		}
		met = p[0].Revents&unix.POLLHUP != 0
	})
	return unmet, met
}
