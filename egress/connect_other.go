//go:build !linux

package egress

import (
	"net/netip"
	"syscall"
)

// connectEarly leaves connecting to the standard library.
func connectEarly(syscall.RawConn, netip.AddrPort) {}
