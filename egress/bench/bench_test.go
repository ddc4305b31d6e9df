// Package bench measures the egress proxy beside smokescreen and the direct way. It is a module of its own, so that
// smokescreen is no dependency of hearsay.
package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	slice     = 250 * time.Millisecond // of one turn
	bodySize  = 1 << 10                // of a plain HTTP answer
	pull      = 128 << 20              // bytes through a tunnel in one turn
	setUppers = 4                      // parallel clients that set up tunnels
)

// way is how a client reaches an origin: dialled, through a relay's listener for it, or through a proxy.
type way struct {
	name   string
	proxy  string            // its address
	relays map[string]string // origin to listener
	pid    int               // 0 where nothing lies between
}

// dial connects to what stands for an origin: itself, a relay's listener, or the proxy.
func (w way) dial(origin string) (net.Conn, error) {
	switch {
	case w.proxy != "":
		origin = w.proxy
	case w.relays != nil:
		origin = w.relays[origin]
	}
	return net.Dial("tcp", origin)
}

// TestTable builds both proxies, runs each as a process of its own with a policy that allows the origin alone, beside a bare
// relay, and prints what each does in turns with the direct way, over the loopback interface. There are two tables: with every
// part in a process of its own, as they are in the field, and with client and origin in one process, where the direct way
// never wakes another process and so is faster than any way there is between two programs:
//
//	cd egress/bench && HEARSAY_BENCH=1 go test -run TestTable -v -timeout 20m .
//
// HEARSAY_BENCH_TURNS sets the turns of each way and measure, HEARSAY_BENCH_TUNNELS how many idle tunnels are held for the
// memory row.
func TestTable(t *testing.T) {
	if os.Getenv("HEARSAY_BENCH") == "" {
		t.Skip("a measurement, not a test: set HEARSAY_BENCH=1")
	}
	dir := t.TempDir()
	build(t, "../..", filepath.Join(dir, "hearsay"), "./cmd/hearsay")
	build(t, ".", filepath.Join(dir, "smokescreen"), "github.com/stripe/smokescreen")
	together, err := serveOrigin()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("apart", func(t *testing.T) { table(t, dir, startOrigin(t)) })
	t.Run("ends-together", func(t *testing.T) { table(t, dir, together) })
}

func table(t *testing.T, dir string, o origin) {
	fixed, told := startRelay(t, o)
	ways := []way{{name: "direct"}, fixed, startHearsay(t, dir), startSmokescreen(t, dir)}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "measure\tdirect\t")
	for _, way := range ways[1:] {
		fmt.Fprintf(w, "%s\tof direct\tCPU µs\t", way.name)
	}
	fmt.Fprintln(w)
	row := func(name, measure, unit string, turn func(way) (float64, time.Duration)) {
		t.Run(name, func(t *testing.T) {
			r := inTurns(t, ways, turn)
			fmt.Fprintf(w, "%s (%s)\t%.0f\t", measure, unit, r[0].rate)
			for _, r1 := range r[1:] {
				fmt.Fprintf(w, "%.0f\t%.2f\t%.1f\t", r1.rate, r1.rate/r[0].rate, r1.cpu)
			}
			fmt.Fprintln(w)
		})
	}
	row("http1", "plain HTTP, 1 connection", "requests/s", requests(t, o.web, 1))
	row("http32", "plain HTTP, 32 connections", "requests/s", requests(t, o.web, 32))
	row("setups", "CONNECT set-ups", "tunnels/s", setUps(t, o.echo))
	ways[1] = told
	row("setups-told", "the same, the relay told by CONNECT", "tunnels/s", setUps(t, o.echo))
	ways[1] = fixed
	row("tunnel", "one tunnel", "MiB/s", throughput(t, o.source))
	t.Run("memory", func(t *testing.T) {
		n := setting(t, "HEARSAY_BENCH_TUNNELS", 2000)
		fmt.Fprintf(w, "memory of %d idle tunnels (KiB each)\t\t", n)
		for _, kib := range measureMemory(t, ways[1:], o.echo, n) {
			fmt.Fprintf(w, "%.1f\t\t\t", kib)
		}
		fmt.Fprintln(w)
	})
	w.Flush()
}

// setting reads a number from the environment.
func setting(t *testing.T, name string, def int) int {
	s := os.Getenv(name)
	if s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s: %q is no positive number", name, s)
	}
	return n
}

// build makes a program of the module that holds the folder.
func build(t *testing.T, folder, out, pkg string) {
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, pkg)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, text)
	}
}

// freePort is a port that was free a moment ago, for a program that cannot say which one it took.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func startHearsay(t *testing.T, dir string) way {
	file := filepath.Join(dir, "hearsay.yaml")
	config := "egress:\n  allow: [\"127.0.0.1:*\"]\n  inward: {\"127.0.0.1\": [\"127.0.0.1\"]}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	return startWay(t, "hearsay", port, exec.Command(filepath.Join(dir, "hearsay"), "egress", "-c", file, "--listen", "127.0.0.1:"+port))
}

func startSmokescreen(t *testing.T, dir string) way {
	acl, file, port := filepath.Join(dir, "acl.yaml"), filepath.Join(dir, "smokescreen.yaml"), freePort(t)
	for path, text := range map[string]string{
		acl:  "version: v1\nservices: []\ndefault:\n  project: bench\n  action: enforce\n  allowed_domains: [\"127.0.0.1\"]\n",
		file: "ip: 127.0.0.1\nport: " + port + "\nacl_file: " + acl + "\nallow_missing_role: true\nallow_ranges: [127.0.0.0/8]\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startWay(t, "smokescreen", port, exec.Command(filepath.Join(dir, "smokescreen"), "--config-file", file))
}

// startWay runs a proxy with its log to a file, as in production, and waits until it accepts.
func startWay(t *testing.T, name, port string, cmd *exec.Cmd) way {
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		log.Close()
	})
	addr := "127.0.0.1:" + port
	for range 600 {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return way{name: name, proxy: addr, pid: cmd.Process.Pid}
		}
		time.Sleep(50 * time.Millisecond)
	}
	text, _ := os.ReadFile(log.Name())
	t.Fatalf("%s does not accept connections:\n%s", name, text)
	return way{}
}

// result is the median rate of a way over its turns, and the processor time of its proxy for each unit.
type result struct{ rate, cpu float64 }

// inTurns gives each way its turn, again and again: noise of the machine falls on all. A turn returns how many units it did
// and how long it took.
func inTurns(t *testing.T, ways []way, turn func(way) (units float64, took time.Duration)) []result {
	turns := setting(t, "HEARSAY_BENCH_TURNS", 12) // the median of them counts
	rates := make([][]float64, len(ways))
	units := make([]float64, len(ways))
	cpu := make([]time.Duration, len(ways))
	for i := range turns + 2 {
		for j, w := range ways {
			before := cpuTime(t, w.pid)
			n, took := turn(w)
			if i < 2 { // to warm up
				continue
			}
			rates[j] = append(rates[j], n/took.Seconds())
			units[j] += n
			cpu[j] += cpuTime(t, w.pid) - before
		}
	}
	out := make([]result, len(ways))
	for j := range ways {
		slices.Sort(rates[j])
		out[j] = result{rates[j][len(rates[j])/2], float64(cpu[j].Microseconds()) / units[j]}
	}
	return out
}

// cpuTime is what a process has used so far, in user and system time; 0 for no process. The kernel counts in 100ths of a second.
func cpuTime(t *testing.T, pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err1 != nil || err2 != nil {
		t.Fatalf("%v %v", err1, err2)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// during counts how often do is done by some workers in one slice of time.
func during(workers int, do func()) (float64, time.Duration) {
	var wg sync.WaitGroup
	counts := make([]int, workers)
	start := time.Now()
	for i := range workers {
		wg.Go(func() {
			for time.Since(start) < slice {
				do()
				counts[i]++
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total), took
}

// requests gets a page over and over on kept connections.
func requests(t *testing.T, addr string, conns int) func(way) (float64, time.Duration) {
	clients := map[string]*http.Client{}
	return func(w way) (float64, time.Duration) {
		c := clients[w.name]
		if c == nil {
			tr := &http.Transport{
				MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, DisableCompression: true,
				DialContext: func(_ context.Context, _, addr string) (net.Conn, error) { return w.dial(addr) },
			}
			if w.proxy != "" {
				tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: w.proxy})
			}
			t.Cleanup(tr.CloseIdleConnections)
			c = &http.Client{Transport: tr}
			clients[w.name] = c
		}
		return during(conns, func() {
			res, err := c.Get("http://" + addr)
			if err != nil {
				t.Error(err)
				return
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != 200 || len(body) != bodySize {
				t.Errorf("%s: %s, %d bytes, %v", w.name, res.Status, len(body), err)
			}
		})
	}
}

// open reaches addr by a way: dialled, or through a CONNECT.
func open(w way, addr string) (net.Conn, error) {
	conn, err := w.dial(addr)
	if err != nil || w.proxy == "" {
		return conn, err
	}
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", addr, addr)
	head := make([]byte, 0, 1024)
	for {
		n, err := conn.Read(head[len(head):cap(head)])
		if err != nil {
			conn.Close()
			return nil, err
		}
		head = head[:len(head)+n]
		if end := bytes.Index(head, []byte("\r\n\r\n")); end >= 0 {
			if !bytes.Contains(head[:end], []byte(" 200 ")) {
				conn.Close()
				return nil, fmt.Errorf("%s: %q", w.name, head)
			}
			return &tunnelled{conn, head[end+4:]}, nil
		}
	}
}

// tunnelled is a connection of which some bytes came with the proxy's answer.
type tunnelled struct {
	net.Conn
	early []byte
}

func (c *tunnelled) Read(p []byte) (int, error) {
	if len(c.early) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.early)
	c.early = c.early[n:]
	return n, nil
}

// setUps opens tunnels, sends four bytes there and back, and closes them.
func setUps(t *testing.T, addr string) func(way) (float64, time.Duration) {
	return func(w way) (float64, time.Duration) {
		return during(setUppers, func() {
			conn, err := open(w, addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			ping(t, conn)
		})
	}
}

func ping(t *testing.T, conn net.Conn) {
	buf := []byte("ping")
	if _, err := conn.Write(buf); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != "ping" {
		t.Error(err)
	}
}

// throughput pulls bytes through one tunnel.
func throughput(t *testing.T, addr string) func(way) (float64, time.Duration) {
	buf := make([]byte, 256<<10)
	return func(w way) (float64, time.Duration) {
		start := time.Now()
		conn, err := open(w, addr)
		if err != nil {
			t.Error(err)
			return 0, time.Since(start)
		}
		defer conn.Close()
		var got int
		for {
			n, err := conn.Read(buf)
			got += n
			if err != nil {
				break
			}
		}
		if got != pull {
			t.Errorf("%s: %d bytes", w.name, got)
		}
		return float64(got) / (1 << 20), time.Since(start)
	}
}

// measureMemory holds n idle tunnels open and returns what each adds to the proxy's resident memory, in KiB.
func measureMemory(t *testing.T, ways []way, addr string, n int) []float64 {
	var out []float64
	for _, w := range ways {
		before := resident(t, w.pid)
		conns := make([]net.Conn, 0, n)
		for range n {
			conn, err := open(w, addr)
			if err != nil {
				t.Errorf("after %d tunnels: %v", len(conns), err)
				break
			}
			ping(t, conn)
			conns = append(conns, conn)
		}
		out = append(out, float64(resident(t, w.pid)-before)/float64(len(conns)))
		for _, c := range conns {
			c.Close()
		}
	}
	return out
}

// resident reads the resident memory of a process in KiB.
func resident(t *testing.T, pid int) int {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
