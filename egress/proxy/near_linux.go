package proxy

import (
	"net"

	"golang.org/x/sys/unix"
)

const (
	// nearControl is the congestion control for connections within this host: every kernel has it, and lets everyone choose it
	// unless the operator narrowed net.ipv4.tcp_allowed_congestion_control.
	nearControl = "reno"
	// nearUnsent is how many bytes may wait in a socket to a program on this host: one that gathers more fills the caches
	// with what nobody reads yet. Half of it is faster still. But splice(2) holds back what does not fill a segment while more
	// is in the pipe, and on loopback a segment has nearly 64 KiB: a smaller bound could be reached by what is held back.
	nearUnsent = 64 << 10
)

// hasten prepares a connection for much that is to be sent on it, if its peer is on this host. Nothing is congested between the
// two, but a congestion control made for the road (BBR, where it is the system's) paces even there: a timer for each piece, and
// a third of the throughput. Best effort: without it a tunnel is only slower.
func hasten(c *net.TCPConn) {
	if !near(c.LocalAddr(), c.RemoteAddr()) {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, nearControl)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, nearUnsent)
	})
}

// near reports whether the peer of a connection is on this host: on loopback, or at the address of this end. In a sandbox's namespace
// that holds for the program, whatever address it called. A container on this host has an address of its own, and counts as another
// host. A wrong answer would cost throughput and nothing else.
func near(local, remote net.Addr) bool {
	l, ok1 := local.(*net.TCPAddr)
	r, ok2 := remote.(*net.TCPAddr)
	return ok1 && ok2 && (r.IP.IsLoopback() || r.IP.Equal(l.IP))
}
