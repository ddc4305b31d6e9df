//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// loopbackUp brings the sandbox's own loopback up.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return fmt.Errorf("reading the loopback's flags: %w", err)
	}
	req.SetUint16(req.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("bringing the loopback up: %w", err)
	}
	return nil
}

// anyAddressLocal makes every address of a family the sandbox's own, so that a connection to any address reaches a listener
// inside, or is refused at once.
func anyAddressLocal(family byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("opening a route socket: %w", err)
	}
	defer unix.Close(fd)
	const (
		loopbackIndex = 1 // the first interface of every network namespace
		header        = unix.SizeofNlMsghdr
		length        = header + unix.SizeofRtMsg + 8
	)
	le := binary.NativeEndian
	msg := make([]byte, length)
	le.PutUint32(msg[0:], length)
	le.PutUint16(msg[4:], unix.RTM_NEWROUTE)
	le.PutUint16(msg[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	le.PutUint32(msg[8:], 1)
	rt := msg[header:]
	rt[0] = family // destination length 0: everything
	rt[4] = unix.RT_TABLE_LOCAL
	rt[5] = unix.RTPROT_STATIC
	rt[6] = unix.RT_SCOPE_HOST
	rt[7] = unix.RTN_LOCAL
	attr := rt[unix.SizeofRtMsg:]
	le.PutUint16(attr[0:], 8)
	le.PutUint16(attr[2:], unix.RTA_OIF)
	le.PutUint32(attr[4:], loopbackIndex)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("adding a route: %w", err)
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return fmt.Errorf("adding a route: %w", err)
	}
	if n < header+4 || le.Uint16(buf[4:]) != unix.NLMSG_ERROR {
		return errors.New("adding a route: no answer")
	}
	if code := -int32(le.Uint32(buf[header:])); code != 0 {
		return fmt.Errorf("adding a route: %w", unix.Errno(code))
	}
	return nil
}

// listenBacklog is what one sandbox may have waiting.
const listenBacklog = 256

// openWayOut makes the sockets that the parent serves: the proxy's, those for programs that know no proxy, and the
// resolver's, in this order.
func openWayOut(ports []uint16) (fds []int, notes []string, err error) {
	if err := anyAddressLocal(unix.AF_INET); err != nil {
		return nil, nil, err
	}
	v6 := true
	if err := anyAddressLocal(unix.AF_INET6); err != nil {
		v6 = false
		notes = append(notes, "the kernel has no IPv6, so there is none inside")
	}
	loopback := [4]byte{127, 0, 0, 1}
	fd, err := listen(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Port: ProxyPort, Addr: loopback})
	if err != nil {
		return nil, nil, err
	}
	fds = append(fds, fd)
	all := slices.Concat([]uint16{80, 443}, ports)
	slices.Sort(all)
	for _, port := range slices.Compact(all) {
		if port == ProxyPort {
			continue // the proxy's listener is there, for the loopback; other addresses at this port are refused
		}
		if v6 {
			fd, err = listen(unix.AF_INET6, unix.SOCK_STREAM, &unix.SockaddrInet6{Port: int(port)})
		} else {
			fd, err = listen(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Port: int(port)})
		}
		if err != nil {
			return nil, nil, err
		}
		fds = append(fds, fd)
	}
	fd, err = listen(unix.AF_INET, unix.SOCK_DGRAM, &unix.SockaddrInet4{Port: 53, Addr: loopback})
	if err != nil {
		return nil, nil, err
	}
	return append(fds, fd), notes, nil
}

func listen(family, kind int, addr unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("opening a socket: %w", err)
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, listenBacklog)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listening inside: %w", err)
	}
	return fd, nil
}
