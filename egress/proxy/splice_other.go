//go:build !linux

package proxy

import "net"

// spliceSet is empty where the kernel has no splice(2).
type spliceSet struct{}

func (*spliceSet) enter() {}
func (*spliceSet) leave() {}

func relayTCP(dst, src *net.TCPConn, moved func(int) error, _ *spliceSet) error {
	return relayAny(dst, src, moved)
}
