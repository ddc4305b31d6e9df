package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair is a TCP connection's two ends.
func pair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); d.Close() })
	for _, x := range []net.Conn{c, d} {
		_ = x.SetDeadline(time.Now().Add(time.Minute))
	}
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

// TestPipeIsNeverReusedFull has tunnels break with bytes in their pipes. No later tunnel may see them.
func TestPipeIsNeverReusedFull(t *testing.T) {
	var set spliceSet
	set.enter()
	defer set.leave()
	nothing := func(int) error { return nil }
	for range 8 {
		in, src := pair(t)
		dst, out := pair(t)
		go func() { _, _ = in.Write(bytes.Repeat([]byte("old"), 10<<20)) }()
		go func() { // reads a little and goes
			_, _ = io.ReadFull(out, make([]byte, 1<<20))
			_ = out.SetLinger(0)
			out.Close()
		}()
		if err := relayTCP(dst, src, nothing, &set); !errors.As(err, new(writeError)) {
			t.Fatalf("the broken tunnel ended with %v", err)
		}
		in.Close()
	}
	in, src := pair(t)
	dst, out := pair(t)
	want := bytes.Repeat([]byte("new"), 5<<20)
	go func() {
		_, _ = in.Write(want)
		in.Close()
	}()
	go func() {
		_ = relayTCP(dst, src, nothing, &set)
		dst.Close()
	}()
	got, err := io.ReadAll(out)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v, of another tunnel: %v", len(got), len(want), err, bytes.Contains(got, []byte("old")))
	}
}

// TestAnswerSurvivesLateWrites: the far side has sent all and is gone when the client, which has read nothing yet, still sends.
// What lies in the proxy must reach it.
func TestAnswerSurvivesLateWrites(t *testing.T) {
	client, clientSide := pair(t)
	farSide, far := pair(t)
	ended := make(chan error, 1)
	lingered := make(chan struct{})
	j := joint{
		client: clientSide, server: farSide, up: func(int) error { return nil }, down: func(int) error { return nil },
		recovered: func(*error) {}, linger: func() { close(lingered) }, // without pipes: the answer has to wait in the socket
	}
	go func() { ended <- j.run() }()
	want := bytes.Repeat([]byte("answer"), 50_000)
	if _, err := far.Write(want); err != nil {
		t.Fatal(err)
	}
	_ = far.CloseWrite()
	raw, err := far.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for queued := 1; queued > 0; { // until the proxy has it
		_ = raw.Control(func(fd uintptr) { queued, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
		if err != nil {
			t.Fatal(err)
		}
	}
	far.Close()
	for done := false; !done; { // until a write has met that it is gone
		if _, err := client.Write([]byte("more")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-lingered:
			done = true
		default:
		}
	}
	if _, err := client.Write(bytes.Repeat([]byte("more"), 1000)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(client)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	client.Close()
	<-ended
}
