//go:build real && linux

package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

const (
	manyTunnels = 10_000
	mostPerIdle = 40 << 10
	roleOf      = "HEARSAY_TEST_ROLE"
)

// helper is another process of this test binary, which prints its address and then answers lines.
type helper struct {
	addr string
	in   io.Writer
	out  *bufio.Reader
}

func startHelper(t *testing.T, role string) *helper {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestManyTunnels$")
	cmd.Env = append(os.Environ(), roleOf+"="+role)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	h := &helper{in: stdin, out: bufio.NewReader(stdout)}
	h.addr = h.line(t)
	return h
}

func (h *helper) line(t *testing.T) string {
	t.Helper()
	l, err := h.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(l)
}

// TestManyTunnels holds 10,000 tunnels open in a process of their own (as many as its descriptors allow, at two each), measures
// what an idle one costs, and sees that the proxy serves on meanwhile.
func TestManyTunnels(t *testing.T) {
	switch os.Getenv(roleOf) {
	case "proxy":
		serveMany(t)
		return
	case "echo":
		fmt.Println(echoServer(t))
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	n := min(manyTunnels, int(allowDescriptors(t, 2*manyTunnels+400)/2)-100)
	repotest.Need(t, "descriptors for 1,000 tunnels (raise ulimit -Hn)", n >= 1000)
	if n < manyTunnels {
		t.Logf("%d tunnels instead of %d: that is what the hard limit of descriptors allows this user (ulimit -Hn)", n, manyTunnels)
	}
	echo, p := startHelper(t, "echo").addr, startHelper(t, "proxy")
	addr := p.addr
	measure := func() (kib int) {
		fmt.Fprintln(p.in, "measure")
		if _, err := fmt.Sscan(p.line(t), &kib); err != nil {
			t.Fatal(err)
		}
		return kib
	}
	open := func() net.Conn {
		c, r, err := connectTo(addr, echo)
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, "ping")
		if _, err := io.ReadFull(r, make([]byte, 4)); err != nil {
			panic(err)
		}
		return c
	}
	for range 100 {
		open().Close()
	}
	before := measure()
	conns := make([]net.Conn, n)
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := w; i < n; i += 32 {
				conns[i] = open()
			}
		})
	}
	wg.Wait()
	after := measure()
	each := (after - before) * 1024 / n
	t.Logf("%d idle tunnels: %d KiB resident before, %d after, %d bytes each", n, before, after, each)
	if each > mostPerIdle {
		t.Errorf("an idle tunnel costs %d bytes, more than %d", each, mostPerIdle)
	}
	for _, i := range []int{0, n / 2, n - 1} { // they still work
		_, _ = io.WriteString(conns[i], "ping")
		if _, err := io.ReadFull(conns[i], make([]byte, 4)); err != nil {
			t.Errorf("tunnel %d: %v", i, err)
		}
	}
	open().Close()
	for _, c := range conns {
		c.Close()
	}
}

// allowDescriptors raises the limit for this process and those it starts, where it may, and returns what it then is.
func allowDescriptors(t *testing.T, want uint64) uint64 {
	t.Helper()
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	raised := syscall.Rlimit{Cur: max(want, lim.Cur), Max: max(want, lim.Max)}
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) != nil { // more than the hard limit is for root alone
		return lim.Max
	}
	return raised.Max
}

// serveMany is the proxy's process: it prints its address, then its resident memory at each line it reads.
func serveMany(t *testing.T) {
	srv, err := proxy.New(proxy.Options{Limits: proxy.Limits{Connections: 2 * manyTunnels}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	c := client(t, "*:*")
	go func() { done <- srv.Serve(ctx, l, c) }()
	fmt.Println(l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		time.Sleep(100 * time.Millisecond) // let what was just opened come to rest
		runtime.GC()
		debug.FreeOSMemory()
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "VmRSS:")
		fmt.Println(strings.Fields(rest)[0])
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
