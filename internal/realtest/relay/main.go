// Command relay starts a server and copies lines between it and standard input and output: what any process in between
// costs, whatever it does. With -sync FILE it writes down 500 bytes for each line of the client and syncs before it passes the
// line on, one sync for all lines that have come: what a record of each call costs, whoever keeps it. With -http URL it does the same on HTTP, and prints its address. The benchmark compares the gateway with it.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
)

func main() {
	if os.Args[1] == "-http" {
		relayHTTP(os.Args[2])
		return
	}
	args, record := os.Args[1:], (*os.File)(nil)
	if args[0] == "-sync" {
		var err error
		if record, err = os.Create(args[1]); err != nil {
			panic(err)
		}
		args = args[2:]
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	go func() {
		copyLines(in, os.Stdin, record)
		in.Close()
	}()
	copyLines(os.Stdout, out, nil)
	cmd.Wait()
}

func copyLines(w io.Writer, r io.Reader, record *os.File) {
	in := bufio.NewReaderSize(r, 64<<10)
	var lines [][]byte
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			lines = append(lines, line)
		}
		if record != nil && in.Buffered() > 0 && err == nil {
			continue
		}
		if record != nil && len(lines) > 0 {
			if _, err := record.Write(make([]byte, 500*len(lines))); err != nil {
				return
			}
			if err := record.Sync(); err != nil {
				return
			}
		}
		for _, line := range lines {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
		lines = lines[:0]
		if err != nil {
			return
		}
	}
}

func relayHTTP(to string) {
	at, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s%s\n", ln.Addr(), at.Path)
	panic(http.Serve(ln, &httputil.ReverseProxy{
		FlushInterval: -1,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 32},
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: at.Scheme, Host: at.Host}) },
	}))
}
