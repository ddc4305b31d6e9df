package egress

import (
	"net/netip"
	"syscall"
)

// connectEarly begins to connect a socket from its Control function, behind the check of its address. Where the far side
// answers while the call runs, which is so on this host and never elsewhere, the connect that follows finds the work done: no
// goroutine to cancel it, no timer, and no wait for the poller. Any fault shows again in that connect.
func connectEarly(c syscall.RawConn, to netip.AddrPort) {
	var sa syscall.Sockaddr = &syscall.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	if to.Addr().Is4() {
		sa = &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	_ = c.Control(func(fd uintptr) { _ = syscall.Connect(int(fd), sa) }) // the socket does not block
}
