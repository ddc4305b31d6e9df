package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// endOf says how the peer of a connection ended that has just read an end of input. The kernel tells a reset once, to
// whichever call comes first; afterwards a read sees an orderly end. An error that nobody has met yet is returned (and taken);
// met reports that there was one which somebody else has met.
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
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && n != 0 {
			unmet = syscall.Errno(n)
			return
		}
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		met = err == nil && info.State == tcpClose
	})
	return unmet, met
}

// tcpClose is the state of a connection that was reset: one whose peer has only ended its side is in CLOSE_WAIT.
const tcpClose = 7
