package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// role makes this test binary a process of the measurement: "origin", or "relay" and the addresses it relays to. A relay
// prints a listener for each, and one more that is told the address by CONNECT.
const role = "HEARSAY_BENCH_ROLE"

func TestMain(m *testing.M) {
	kind, rest, _ := strings.Cut(os.Getenv(role), " ")
	var err error
	switch kind {
	case "":
		os.Exit(m.Run())
	case "origin":
		var o origin
		if o, err = serveOrigin(); err == nil {
			fmt.Printf("%s\n%s\n%s\n", o.web, o.echo, o.source)
		}
	case "relay":
		err = relay(strings.Fields(rest))
	default:
		err = fmt.Errorf("unknown role %q", kind)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	io.Copy(io.Discard, os.Stdin) // until whoever started it is gone
}

// origin holds the addresses of the far side: a web server with one page, an echo, and a source of pull bytes.
type origin struct{ web, echo, source string }

var page = bytes.Repeat([]byte("x"), bodySize)

func serveOrigin() (o origin, err error) {
	if o.echo, err = listen(func(c net.Conn) { io.Copy(c, c) }); err != nil {
		return o, err
	}
	o.source, err = listen(func(c net.Conn) {
		piece := make([]byte, 256<<10)
		for range pull / len(piece) {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
	})
	if err != nil {
		return o, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return o, err
	}
	o.web = l.Addr().String()
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(page) }))
	return o, nil
}

// relay is the least a hop can do: it judges nothing and writes nothing down. Each connection is dialled on to a fixed address,
// or to the one that a CONNECT names, and copied both ways by the standard library, which splices on Linux.
func relay(targets []string) error {
	for _, target := range append(targets, "") {
		addr, err := listen(func(client net.Conn) {
			to := target
			if to == "" {
				head := make([]byte, 1024)
				n, err := client.Read(head) // small, and sent in one piece
				if err != nil {
					return
				}
				to = strings.Fields(string(head[:n]))[1]
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer far.Close()
			if target == "" {
				client.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
			}
			go func() {
				io.Copy(far, client)
				far.(*net.TCPConn).CloseWrite()
			}()
			io.Copy(client, far)
		})
		if err != nil {
			return err
		}
		fmt.Println(addr)
	}
	return nil
}

// startRole runs a role as a process of its own and reads the addresses it prints.
func startRole(t *testing.T, as string, addresses int) (addrs []string, pid int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+as)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for range addresses {
		if !lines.Scan() {
			t.Fatalf("the %s ended: %v", as, lines.Err())
		}
		addrs = append(addrs, lines.Text())
	}
	return addrs, cmd.Process.Pid
}

func startOrigin(t *testing.T) origin {
	a, _ := startRole(t, "origin", 3)
	return origin{a[0], a[1], a[2]}
}

// startRelay starts a relay and returns the ways through it: told nothing, and told where to by CONNECT.
func startRelay(t *testing.T, o origin) (fixed, told way) {
	targets := []string{o.web, o.echo, o.source}
	addrs, pid := startRole(t, "relay "+strings.Join(targets, " "), len(targets)+1)
	fixed = way{name: "bare relay", pid: pid, relays: map[string]string{}}
	for i, target := range targets {
		fixed.relays[target] = addrs[i]
	}
	return fixed, way{name: fixed.name, pid: pid, proxy: addrs[len(targets)]}
}

func listen(serve func(net.Conn)) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
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
	return l.Addr().String(), nil
}
