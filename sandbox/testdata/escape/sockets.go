package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

func socket(domain, kind, proto uintptr) func() error {
	return func() error { return call(unix.SYS_SOCKET, domain, kind, proto) }
}

func dial(network, addr string) func() error {
	return func() error {
		c, err := net.DialTimeout(network, addr, 3*time.Second)
		if err != nil {
			return err
		}
		c.Close()
		return nil
	}
}

// udp succeeds when nothing says that a datagram did not arrive.
func udp(addr string) func() error {
	return func() error {
		c, err := net.DialTimeout("udp", addr, 3*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("escaped")); err != nil {
			return err
		}
		_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		_, err = c.Read(make([]byte, 1))
		var ne net.Error
		if err == nil || errors.As(err, &ne) && ne.Timeout() {
			return nil
		}
		return err
	}
}

func sockets() {
	const k = "sockets"
	perm := errs(unix.EPERM)
	family := errs(unix.EAFNOSUPPORT)
	add(k, "unix stream", perm, socket(unix.AF_UNIX, unix.SOCK_STREAM, 0))
	add(k, "unix datagram", perm, socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0))
	add(k, "unix packet", perm, socket(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0))
	add(k, "unix stream, with a high bit set", perm, socket(1<<32|unix.AF_UNIX, unix.SOCK_STREAM, 0))
	add(k, "unix datagram, with a high bit set in the type", perm, socket(unix.AF_UNIX, 1<<32|unix.SOCK_DGRAM, 0))
	add(k, "an abstract socket of the host", perm, dial("unix", "@"+bait.Abstract))
	add(k, "unix datagram pair", perm, func() error {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		return err
	})
	add(k, "unix raw pair", perm, func() error {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_RAW, 0)
		return err
	})
	for name, f := range map[string]uintptr{"packet": unix.AF_PACKET, "vsock": unix.AF_VSOCK, "kernel crypto": unix.AF_ALG, "key management": unix.AF_KEY, "TIPC": unix.AF_TIPC,
		"CAN": unix.AF_CAN, "bluetooth": unix.AF_BLUETOOTH, "XDP": unix.AF_XDP, "RDS": unix.AF_RDS, "NFC": unix.AF_NFC, "QRTR": unix.AF_QIPCRTR, "SMC": unix.AF_SMC,
		"KCM": unix.AF_KCM, "X.25": unix.AF_X25, "LLC": unix.AF_LLC, "PPP": unix.AF_PPPOX, "RxRPC": unix.AF_RXRPC, "phonet": unix.AF_PHONET, "MCTP": unix.AF_MCTP} {
		add(k, name, family, socket(f, unix.SOCK_DGRAM, 0))
	}
	for name, proto := range map[string]uintptr{"audit": unix.NETLINK_AUDIT, "netfilter": unix.NETLINK_NETFILTER, "device events": unix.NETLINK_KOBJECT_UEVENT,
		"generic": unix.NETLINK_GENERIC, "IPsec": unix.NETLINK_XFRM, "socket list": unix.NETLINK_SOCK_DIAG, "crypto": unix.NETLINK_CRYPTO} {
		add(k, "netlink "+name, family, socket(unix.AF_NETLINK, unix.SOCK_RAW, proto))
	}
	add(k, "raw", perm, socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW))
	add(k, "raw v6", perm, socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW))
	add(k, "ping", perm, socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP))
	add(k, "UDP-Lite", perm, socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE))
	add(k, "SCTP", errs(unix.EPROTONOSUPPORT), socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP))
	add(k, "MPTCP", errs(unix.EPROTONOSUPPORT), socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP))
	add(k, "DCCP", perm, socket(unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP))

	const n = "network"
	nowhere := errs(unix.ECONNREFUSED, unix.ENETUNREACH)
	add(n, "a listener on the host's loopback", nowhere, dial("tcp", fmt.Sprintf("127.0.0.1:%d", bait.HostPort)))
	add(n, "a listener on the host's loopback, by v6", nowhere, dial("tcp", fmt.Sprintf("[::ffff:127.0.0.1]:%d", bait.HostPort)))
	if bait.HostAddr != "" && !bait.NearOnly {
		add(n, "a listener on the host's address", nowhere, dial("tcp", fmt.Sprintf("%s:%d", bait.HostAddr, bait.HostPort)))
	}
	if !bait.NearOnly {
		add(n, "TCP to the world", nowhere, dial("tcp", "192.0.2.1:443"))
		add(n, "TCP to the world by v6", nowhere, dial("tcp", "[2001:db8::1]:443"))
		add(n, "a cloud's metadata", nowhere, dial("tcp", "169.254.169.254:80"))
		add(n, "UDP to the world", nowhere, udp("192.0.2.1:53"))
		add(n, "UDP multicast", nowhere, udp("224.0.0.251:5353"))
		add(n, "QUIC to the world", nowhere, udp("192.0.2.1:443"))
	}
	add(n, "an interface besides the loopback", errs(errNothing), func() error {
		ifs, err := net.Interfaces()
		if err != nil {
			return err
		}
		return unless(len(ifs) != 1 || ifs[0].Name != "lo", "lo alone")
	})
	add(n, "listen on a port of the system", errs(unix.EACCES), func() error {
		l, err := net.Listen("tcp4", "127.0.0.1:22")
		if err != nil {
			return err
		}
		l.Close()
		return nil
	})
	add(n, "switch the loopback off", perm, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		req, _ := unix.NewIfreq("lo")
		req.SetUint16(0)
		return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
	})
	add(n, "make a network card", perm, func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		// RTM_NEWLINK without anything in it: EPERM comes before the kernel reads it.
		msg := make([]byte, 32)
		msg[0], msg[4], msg[6] = 32, unix.RTM_NEWLINK, unix.NLM_F_REQUEST|unix.NLM_F_ACK
		msg[7] = (unix.NLM_F_CREATE | unix.NLM_F_EXCL) >> 8
		if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return err
		}
		buf := make([]byte, 256)
		got, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil || got < 20 {
			return fmt.Errorf("no answer: %w", err)
		}
		if code := int32(uint32(buf[16]) | uint32(buf[17])<<8 | uint32(buf[18])<<16 | uint32(buf[19])<<24); code != 0 {
			return unix.Errno(-code)
		}
		return nil
	})
}
