// Package bench measures the egress proxy beside smokescreen and the direct way. It is a module of its own, so that
// smokescreen is no dependency of hearsay.
package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
	turns     = 24                     // of each way and measure, in turns; the median of the turns counts
	slice     = 250 * time.Millisecond // of one turn
	bodySize  = 1 << 10                // of a plain HTTP answer
	pull      = 128 << 20              // bytes through a tunnel in one turn
	setUppers = 4                      // parallel clients that set up tunnels
)

// way is how a client reaches the origin: proxy is its address, "" for the direct way.
type way struct {
	name  string
	proxy string
	pid   int
}

// TestTable builds both proxies, runs each as a process of its own with a policy that allows the origin alone, and prints what
// each does in turns with the direct way, over the loopback interface:
//
//	cd egress/bench && go test -run TestTable -v -timeout 20m .
//
// HEARSAY_BENCH_TUNNELS sets how many idle tunnels are held for the memory row (default 2000).
func TestTable(t *testing.T) {
	if os.Getenv("HEARSAY_BENCH") == "" {
		t.Skip("a measurement, not a test: set HEARSAY_BENCH=1")
	}
	dir := t.TempDir()
	build(t, "../..", filepath.Join(dir, "hearsay"), "./cmd/hearsay")
	build(t, ".", filepath.Join(dir, "smokescreen"), "github.com/stripe/smokescreen")
	ways := []way{{name: "direct"}, startHearsay(t, dir), startSmokescreen(t, dir)}

	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(page) }))
	defer web.Close()
	echo := listen(t, func(c net.Conn) { io.Copy(c, c) })
	source := listen(t, func(c net.Conn) {
		piece := make([]byte, 256<<10)
		for range pull / len(piece) {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
	})

	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "measure\tdirect\thearsay\tof direct\tCPU µs\tsmokescreen\tof direct\tCPU µs\thearsay / smokescreen\t")
	row := func(measure, unit string, r []result) {
		fmt.Fprintf(w, "%s (%s)\t%.0f\t%.0f\t%.2f\t%.1f\t%.0f\t%.2f\t%.1f\t%.2f\t\n", measure, unit,
			r[0].rate, r[1].rate, r[1].rate/r[0].rate, r[1].cpu, r[2].rate, r[2].rate/r[0].rate, r[2].cpu, r[1].rate/r[2].rate)
	}
	row("plain HTTP, 1 connection", "requests/s", measureHTTP(t, ways, web.URL, 1))
	row("plain HTTP, 32 connections", "requests/s", measureHTTP(t, ways, web.URL, 32))
	row("CONNECT set-ups", "tunnels/s", measureSetUps(t, ways, echo))
	row("one tunnel", "MiB/s", measureTunnel(t, ways, source))
	tunnels, memory := measureMemory(t, ways[1:], echo)
	fmt.Fprintf(w, "memory of %d idle tunnels (KiB each)\t\t%.1f\t\t\t%.1f\t\t\t%.2f\t\n", tunnels, memory[0], memory[1], memory[0]/memory[1])
	w.Flush()
}

var page = bytes.Repeat([]byte("x"), bodySize)

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

func measureHTTP(t *testing.T, ways []way, target string, conns int) []result {
	clients := map[string]*http.Client{}
	for _, w := range ways {
		tr := &http.Transport{MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, DisableCompression: true}
		if w.proxy != "" {
			tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: w.proxy})
		}
		clients[w.name] = &http.Client{Transport: tr}
		t.Cleanup(tr.CloseIdleConnections)
	}
	return inTurns(t, ways, func(w way) (float64, time.Duration) {
		return during(conns, func() {
			res, err := clients[w.name].Get(target)
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
	})
}

// open reaches addr by a way: dialled, or through a CONNECT.
func open(w way, addr string) (net.Conn, error) {
	if w.proxy == "" {
		return net.Dial("tcp", addr)
	}
	conn, err := net.Dial("tcp", w.proxy)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", addr, addr)
	// Byte by byte to the end of the head, so that what follows stays in the connection.
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); {
		if _, err := conn.Read(one); err != nil {
			conn.Close()
			return nil, err
		}
		head = append(head, one[0])
	}
	if !bytes.Contains(head[:min(len(head), 16)], []byte(" 200 ")) {
		conn.Close()
		return nil, fmt.Errorf("%s: %q", w.name, head)
	}
	return conn, nil
}

func measureSetUps(t *testing.T, ways []way, addr string) []result {
	return inTurns(t, ways, func(w way) (float64, time.Duration) {
		return during(setUppers, func() {
			conn, err := open(w, addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			ping(t, conn)
		})
	})
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

func measureTunnel(t *testing.T, ways []way, addr string) []result {
	buf := make([]byte, 256<<10)
	return inTurns(t, ways, func(w way) (float64, time.Duration) {
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
	})
}

// measureMemory holds idle tunnels open and returns what each adds to the proxy's resident memory, in KiB.
func measureMemory(t *testing.T, ways []way, addr string) (int, []float64) {
	n := 2000
	if s := os.Getenv("HEARSAY_BENCH_TUNNELS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
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
	return n, out
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

func listen(t *testing.T, serve func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
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
