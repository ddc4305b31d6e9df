package proxy

import (
	"bytes"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNear is about which connections never leave this host: for any other the system's own way of sending is kept.
func TestNear(t *testing.T) {
	tcp := func(s string) *net.TCPAddr {
		a, err := net.ResolveTCPAddr("tcp", s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, c := range []struct {
		name, local, remote string
		want                bool
	}{
		{"loopback", "127.0.0.1:3128", "127.0.0.1:40000", true},
		{"loopback of IPv6", "[::1]:3128", "[::1]:40000", true},
		{"loopback on a socket of both families", "[::ffff:127.0.0.1]:3128", "[::ffff:127.0.0.1]:40000", true},
		{"a sandbox that called another host's address", "93.184.215.14:443", "127.0.0.1:40000", true},
		{"a sandbox whose end has that address", "93.184.215.14:443", "93.184.215.14:40000", true},
		{"the host's own address", "192.168.1.5:3128", "192.168.1.5:40000", true},
		{"a neighbour", "192.168.1.5:3128", "192.168.1.6:40000", false},
		{"a far host", "192.168.1.5:40000", "93.184.215.14:443", false},
		{"only this end on loopback", "127.0.0.1:3128", "192.168.1.6:40000", false},
	} {
		if got := near(tcp(c.local), tcp(c.remote)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if near(&net.UnixAddr{}, tcp("127.0.0.1:1")) || near(tcp("127.0.0.1:1"), nil) {
		t.Error("what is no TCP address is near")
	}
}

// TestOnlyBulkIsHastened: a tunnel with little to move is left as the system made it, and pays no call.
func TestOnlyBulkIsHastened(t *testing.T) {
	read := func(c *net.TCPConn) (control string, unsent int) {
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) {
			if control, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION); err == nil {
				unsent, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return control, unsent
	}
	for name, c := range map[string]struct {
		size int
		bulk bool
	}{"a few words": {1000, false}, "a download": {8 << 20, true}} {
		t.Run(name, func(t *testing.T) {
			in, src := pair(t)
			dst, out := pair(t)
			control, unsent := read(dst)
			want := bytes.Repeat([]byte("x"), c.size)
			go func() {
				_, _ = in.Write(want)
				_ = in.CloseWrite()
			}()
			ended := make(chan error, 1)
			go func() {
				var set spliceSet
				set.enter()
				defer set.leave()
				ended <- relayTCP(dst, src, func(int) error { return nil }, &set)
				_ = dst.CloseWrite()
			}()
			got, err := io.ReadAll(out)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if c.bulk {
				unsent = nearUnsent
				if mayChoose(t, src) {
					control = nearControl
				}
			}
			if gotControl, gotUnsent := read(dst); gotControl != control || gotUnsent != unsent {
				t.Errorf("%s and %d bytes unsent at most, want %s and %d", gotControl, gotUnsent, control, unsent)
			}
		})
	}
}

// mayChoose says whether the operator of this host lets everyone choose the congestion control. The tunnel works where he does not.
func mayChoose(t *testing.T, c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, nearControl)
	})
	return err == nil
}
