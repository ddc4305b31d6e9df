package egress

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// ownAddrsFor is how long a reading of the interfaces is used: short, since an address added meanwhile is not yet inward.
const ownAddrsFor = 2 * time.Second

// HostAddrs reads the addresses of this host's interfaces. An IPv4 network on a loopback interface counts whole, since the
// kernel answers for all of it.
func HostAddrs() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs() // one question for all of them, however many interfaces there are
	if err != nil {
		return nil, fmt.Errorf("reading this host's addresses: %w", err)
	}
	own, err := appendOwn(nil, addrs, false)
	if err != nil {
		return nil, err
	}
	ifaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("reading this host's interfaces: %w", err)
	}
	for _, i := range ifaces {
		if i.Flags&net.FlagLoopback == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("reading the addresses of %s: %w", i.Name, err)
		}
		if own, err = appendOwn(own, addrs, true); err != nil {
			return nil, err
		}
	}
	return own, nil
}

func appendOwn(own []netip.Prefix, addrs []net.Addr, loopback bool) ([]netip.Prefix, error) {
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			return nil, fmt.Errorf("reading this host's addresses: unexpected %T", a)
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if !ok {
			return nil, fmt.Errorf("reading this host's addresses: one is malformed")
		}
		ip = ip.Unmap()
		bits := ip.BitLen()
		if loopback && ip.Is4() {
			bits, _ = n.Mask.Size()
		}
		own = append(own, netip.PrefixFrom(ip, bits).Masked())
	}
	return own, nil
}

// hostAddrs is HostAddrs, read at most once in ownAddrsFor by the whole process.
var hostAddrs = func() func() ([]netip.Prefix, error) {
	var mu sync.Mutex
	var own []netip.Prefix
	var read time.Time
	return func() ([]netip.Prefix, error) {
		mu.Lock()
		defer mu.Unlock()
		if !read.IsZero() && time.Since(read) < ownAddrsFor {
			return own, nil
		}
		fresh, err := HostAddrs()
		if err != nil {
			return nil, err
		}
		own, read = fresh, time.Now()
		return own, nil
	}
}()
