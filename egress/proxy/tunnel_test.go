package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// tunnel opens one to an address and returns the client's side, with nothing read ahead.
func (u *under) tunnel(t testing.TB, target string) *net.TCPConn {
	t.Helper()
	c, r, resp := u.connect(t, target)
	if resp.StatusCode != 200 {
		t.Fatalf("CONNECT %s: %s", target, resp.Status)
	}
	if r.Buffered() > 0 {
		t.Fatal("bytes behind the answer")
	}
	return c.(*net.TCPConn)
}

// TestHalfClose: the client ends its side, the far side answers afterwards.
func TestHalfClose(t *testing.T) {
	addr := listen(t, func(c net.Conn) {
		b, err := io.ReadAll(c)
		if err == nil {
			fmt.Fprintf(c, "read %d", len(b))
		}
	})
	u := start(t, proxy.Options{}, client(t, "*:*"))
	c := u.tunnel(t, addr)
	_, _ = c.Write(bytes.Repeat([]byte("x"), 300_000))
	_ = c.CloseWrite()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "read 300000" {
		t.Errorf("got %q, %v", got, err)
	}
	ev := u.events.wait(t, func(e proxy.Event) bool { return e.Kind == proxy.KindClosed })
	if ev.Reason != proxy.ReasonDone || ev.Up < 300_000 || ev.Down < 11 || ev.Protocol != proxy.ProtocolConnect || ev.Target.String() != addr {
		t.Errorf("closed as %+v", ev)
	}
}

// TestFarSideClosesFirst: it sends much and closes at once, to a client that goes on sending and reads late.
func TestFarSideClosesFirst(t *testing.T) {
	data := make([]byte, 10<<20)
	for i := range data {
		data[i] = byte(i * 7)
	}
	addr := listen(t, func(c net.Conn) {
		b := make([]byte, 4)
		_, _ = io.ReadFull(c, b)
		_, _ = c.Write(data)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.ReadAll(c)
	})
	u := start(t, proxy.Options{}, client(t, "*:*"))
	c := u.tunnel(t, addr)
	_, _ = c.Write([]byte("go!!more"))
	_, _ = c.Write([]byte("and more"))
	_ = c.CloseWrite()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d of %d bytes, %v", len(got), len(data), err)
	}
}

// TestFarSideGoneWhileSending: the far side has sent all and is gone, and resets what still comes. Its answer must arrive.
func TestFarSideGoneWhileSending(t *testing.T) {
	data := bytes.Repeat([]byte("answer "), 10_000)
	gone := make(chan struct{})
	addr := listen(t, func(c net.Conn) {
		defer close(gone)
		b := make([]byte, 1)
		_, _ = io.ReadFull(c, b)
		_, _ = c.Write(data)
		_ = c.(*net.TCPConn).CloseWrite()
		// The end is known to be received once the next byte comes.
		_, _ = io.ReadFull(c, b)
	})
	u := start(t, proxy.Options{}, client(t, "*:*"))
	c := u.tunnel(t, addr)
	_, _ = c.Write([]byte("x"))
	got := make([]byte, len(data))
	if _, err := io.ReadFull(c, got[:1]); err != nil {
		t.Fatal(err)
	}
	if n, err := io.ReadFull(c, got[1:]); err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	_, _ = c.Write([]byte("y"))
	<-gone
	for range 100 { // into the void
		if _, err := c.Write([]byte("more")); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.CloseWrite()
	if b, err := io.ReadAll(c); err != nil || len(b) > 0 || !bytes.Equal(got, data) {
		t.Errorf("%d bytes more, %v", len(b), err)
	}
}

// TestResetMetByAWrite: the far side is reset in the middle of its answer while the client is sending. Whichever direction of
// the tunnel meets the reset, the client must not take the half for the whole.
func TestResetMetByAWrite(t *testing.T) {
	data := bytes.Repeat([]byte("answer "), 200_000)
	addr := listen(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 1))
		_, _ = c.Write(data) // and closes on what it has not read: a reset, which drops what is not yet sent
	})
	u := start(t, proxy.Options{}, client(t, "*:*"))
	for range 40 {
		c := u.tunnel(t, addr)
		wrote := make(chan error, 1)
		go func() {
			for {
				if _, err := c.Write([]byte("more")); err != nil {
					wrote <- err
					return
				}
			}
		}()
		got, err := io.ReadAll(c)
		if err := errors.Join(err, <-wrote); len(got) < len(data) && !errors.Is(err, syscall.ECONNRESET) { // the client's kernel, too, tells it once
			t.Fatalf("%d of %d bytes and %v", len(got), len(data), err)
		}
		c.Close()
	}
}

// TestResetIsPassedOn: a cut stream must not look like a whole one.
func TestResetIsPassedOn(t *testing.T) {
	ready := make(chan *net.TCPConn, 1)
	done := make(chan struct{})
	defer close(done)
	addr := listen(t, func(c net.Conn) {
		ready <- c.(*net.TCPConn)
		<-done
	})
	u := start(t, proxy.Options{}, client(t, "*:*"))
	t.Run("from the far side", func(t *testing.T) {
		c := u.tunnel(t, addr)
		far := <-ready
		_ = far.SetLinger(0)
		far.Close()
		if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the client sees %v", err)
		}
	})
	t.Run("from the client", func(t *testing.T) {
		c := u.tunnel(t, addr)
		far := <-ready
		_ = c.SetLinger(0)
		c.Close()
		_ = far.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadAll(far); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the far side sees %v", err)
		}
	})
}

// TestFarSideSpeaksFirst: protocols that greet must not wait for the client, nor the client for them.
func TestFarSideSpeaksFirst(t *testing.T) {
	addr := listen(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "220 ready\r\n")
		l, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, "got "+l)
	})
	u := start(t, proxy.Options{}, client(t, "*:*"))
	c, r, _ := u.connect(t, addr)
	if l, err := r.ReadString('\n'); l != "220 ready\r\n" {
		t.Fatalf("%q, %v", l, err)
	}
	_, _ = io.WriteString(c, "HELO\n")
	if l, err := r.ReadString('\n'); l != "got HELO\n" {
		t.Fatalf("%q, %v", l, err)
	}
}

// TestEarlyData: what comes in one piece with the request for a tunnel belongs to the tunnel.
func TestEarlyData(t *testing.T) {
	addr := echoServer(t)
	u := start(t, proxy.Options{}, client(t, "*:*"))
	big := strings.Repeat("early ", 3000)
	got := u.raw(t, "CONNECT "+addr+" HTTP/1.1\r\n\r\n")
	if status(got) != "400" {
		t.Errorf("a request without Host: %q", got)
	}
	got = u.raw(t, "CONNECT "+addr+" HTTP/1.1\r\nHost: x\r\n\r\n"+big)
	if !strings.HasSuffix(got, "\r\n\r\n"+big) {
		t.Errorf("got %d bytes", len(got))
	}
}

// TestBytesAreExact moves random pieces both ways, ending each direction at a random moment: what arrives is what was sent.
func TestBytesAreExact(t *testing.T) {
	u := start(t, proxy.Options{}, client(t, "*:*"))
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{1, 5, 100, 4095, 4096, 4097, 40_000, 65_536, 200_000, 1_500_000}), 0, 6)
		up, down := sizes.Draw(rt, "up"), sizes.Draw(rt, "down")
		waits := rapid.Bool().Draw(rt, "the far side waits for the end")
		farSum := make(chan [32]byte, 1)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			rt.Fatal(err)
		}
		defer l.Close()
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			read := func() { farSum <- sum(c) }
			if waits {
				read()
			} else {
				go read()
			}
			send(c, down, 2)
			_ = c.(*net.TCPConn).CloseWrite()
			if !waits {
				s := <-farSum
				farSum <- s
			}
		}()
		c, r, err := connectTo(u.addr, l.Addr().String())
		if err != nil {
			rt.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		go func() {
			send(c, up, 1)
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		if got := sum(r); got != sumOf(down, 2) {
			rt.Error("what came back differs")
		}
		if got := <-farSum; got != sumOf(up, 1) {
			rt.Error("what went up differs")
		}
	})
}

func pieces(sizes []int, seed uint64) io.Reader {
	var readers []io.Reader
	src := rand.NewChaCha8([32]byte{byte(seed)})
	for _, n := range sizes {
		readers = append(readers, io.LimitReader(src, int64(n)))
	}
	return io.MultiReader(readers...)
}

func send(c net.Conn, sizes []int, seed uint64) {
	all, _ := io.ReadAll(pieces(sizes, seed))
	for _, n := range sizes {
		if _, err := c.Write(all[:n]); err != nil {
			return
		}
		all = all[n:]
	}
}

func sum(r io.Reader) (s [32]byte) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return s
	}
	return [32]byte(h.Sum(nil))
}

func sumOf(sizes []int, seed uint64) [32]byte { return sum(pieces(sizes, seed)) }

// TestNothingIsLeft opens 1,000 tunnels that end in each way there is, and looks for goroutines and descriptors afterwards.
func TestNothingIsLeft(t *testing.T) {
	addr := echoServer(t)
	u := start(t, proxy.Options{}, client(t, "*:*"))
	one := func(i int) {
		c, r, err := connectTo(u.addr, addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		msg := bytes.Repeat([]byte{byte(i)}, 1+i*131%100_000)
		go func() { _, _ = c.Write(msg) }()
		if _, err := io.ReadFull(r, make([]byte, len(msg))); err != nil {
			t.Error(err)
		}
		switch i % 3 {
		case 0:
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.ReadAll(r)
		case 1:
			_ = c.(*net.TCPConn).SetLinger(0)
		}
	}
	one(0) // what is made once is not a leak
	before := descriptors(t)
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			for i := range 50 {
				one(50*w + i)
			}
		})
	}
	wg.Wait()
	u.stop()
	deadline := time.Now().Add(time.Minute)
	for goroutinesIn("egress/proxy.(*") > 0 || descriptors(t) > before {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d descriptors (before: %d)\n%s", goroutinesIn("egress/proxy.(*"), descriptors(t), before, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
	u.events.mu.Lock()
	defer u.events.mu.Unlock()
	closed := 0
	for _, e := range u.events.list {
		if e.Kind == proxy.KindClosed {
			closed++
		}
	}
	if closed != 1001 {
		t.Errorf("%d closed connections in the record, want 1001", closed)
	}
}

func goroutinesIn(what string) int {
	buf := make([]byte, 4<<20)
	n := 0
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, what) && !strings.Contains(g, "testing.tRunner") {
			n++
		}
	}
	return n
}

func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // no such folder on this system: goroutines are counted all the same
	}
	return len(d)
}
