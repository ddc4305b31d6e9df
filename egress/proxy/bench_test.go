package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// BenchmarkProxy measures each way through the proxy beside the direct one and a bare relay, in turns in one run, over loopback
// and in one process: "of-direct" is the direct time divided by the proxy's, so 1 would be a proxy that costs nothing, and
// "relay-of-direct" the same for a relay that copies bytes and does nothing else.
func BenchmarkProxy(b *testing.B) {
	body := make([]byte, 1024)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(body) }))
	defer origin.Close()
	u := start(b, proxy.Options{Record: func(proxy.Event) error { return nil }}, client(b, "*:*"))
	target := origin.URL + "/"
	relayed := "http://" + relayTo(b, origin.Listener.Addr().String()) + "/"
	for _, conns := range []int{1, 32} {
		b.Run(fmt.Sprintf("http/%d", conns), func(b *testing.B) {
			direct := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
			through := u.httpClient()
			through.Transport.(*http.Transport).MaxIdleConnsPerHost = conns
			round := func(c *http.Client, url string) func() {
				return func() { inParallel(conns, 8*conns, func() { get(b, c, url) }) }
			}
			inTurns(b, round(direct, target), round(direct, relayed), round(through, target))
		})
	}
	b.Run("connect", func(b *testing.B) {
		echo := echoServer(b)
		relayed := relayTo(b, echo)
		inTurns(b,
			func() { inParallel(4, 32, func() { pingDirect(b, echo) }) },
			func() { inParallel(4, 32, func() { pingDirect(b, relayed) }) },
			func() { inParallel(4, 32, func() { pingThrough(b, u.addr, echo) }) })
	})
	b.Run("tunnel", func(b *testing.B) {
		source := sourceServer(b, tunnelBytes)
		relayed := relayTo(b, source)
		pull := func(addr string) func() {
			return func() {
				c, err := net.Dial("tcp", addr)
				drain(b, c, c, err)
			}
		}
		inTurns(b, pull(source), pull(relayed),
			func() {
				c, r, err := connectTo(u.addr, source)
				drain(b, c, r, err)
			})
		b.SetBytes(tunnelBytes)
	})
}

// relayTo is a listener whose connections are dialled on to an address and copied both ways by the standard library.
func relayTo(b testing.TB, addr string) string {
	return listen(b, func(c net.Conn) {
		far, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer far.Close()
		go func() {
			_, _ = io.Copy(far, c)
			_ = far.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(c, far)
	})
}

const tunnelBytes = 256 << 20

// inTurns times three ways in turns and reports how they compare.
func inTurns(b *testing.B, direct, relay, through func()) {
	ways := []func(){direct, relay, through}
	var took [3]time.Duration
	for _, way := range ways {
		way() // connections are made outside the measure
	}
	n := 0
	for b.Loop() {
		n++
		for i, way := range ways {
			s := time.Now()
			way()
			took[i] += time.Since(s)
		}
	}
	b.ReportMetric(float64(took[0])/float64(took[2]), "of-direct")
	b.ReportMetric(float64(took[0])/float64(took[1]), "relay-of-direct")
	b.ReportMetric(float64(took[0].Microseconds())/float64(n), "direct-µs")
	b.ReportMetric(float64(took[2].Microseconds())/float64(n), "proxy-µs")
}

func inParallel(workers, times int, do func()) {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range times / workers {
				do()
			}
		})
	}
	wg.Wait()
}

func get(b *testing.B, c *http.Client, url string) {
	resp, err := c.Get(url)
	if err != nil {
		b.Error(err)
		return
	}
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != 1024 {
		b.Errorf("%d bytes, %v", n, err)
	}
	resp.Body.Close()
}

func listen(b testing.TB, serve func(net.Conn)) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

func echoServer(b testing.TB) string {
	return listen(b, func(c net.Conn) {
		buf := make([]byte, 2048) // not io.Copy, whose splice takes two more descriptors for each connection
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}

func sourceServer(b testing.TB, n int64) string {
	piece := make([]byte, 256<<10)
	return listen(b, func(c net.Conn) {
		for left := n; left > 0; left -= int64(len(piece)) {
			if _, err := c.Write(piece[:min(int64(len(piece)), left)]); err != nil {
				return
			}
		}
	})
}

func ping(b *testing.B, c net.Conn, r io.Reader, err error) {
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	buf := []byte("ping")
	if _, err := c.Write(buf); err != nil {
		b.Error(err)
	}
	if _, err := io.ReadFull(r, buf); err != nil {
		b.Error(err)
	}
}

func pingDirect(b *testing.B, addr string) {
	c, err := net.Dial("tcp", addr)
	ping(b, c, c, err)
}

func pingThrough(b *testing.B, via, addr string) {
	c, r, err := connectTo(via, addr)
	ping(b, c, r, err)
}

func connectTo(via, addr string) (net.Conn, *bufio.Reader, error) {
	c, err := net.Dial("tcp", via)
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", addr, addr)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
	if err == nil && resp.StatusCode != 200 {
		err = fmt.Errorf("status %s", resp.Status)
	}
	return c, r, err
}

func drain(b *testing.B, c net.Conn, r io.Reader, err error) {
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	buf := make([]byte, 256<<10)
	var n int64
	for {
		m, err := r.Read(buf)
		n += int64(m)
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Error(err)
			return
		}
	}
	if n != tunnelBytes {
		b.Errorf("%d bytes", n)
	}
}
