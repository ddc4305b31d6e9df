// Command relay starts a server and copies lines between it and standard input and output: what any process in between
// costs, whatever it does. With -http URL it does the same on HTTP, and prints its address. The benchmark compares the gateway with it.
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
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
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
		copyLines(in, os.Stdin)
		in.Close()
	}()
	copyLines(os.Stdout, out)
	cmd.Wait()
}

func copyLines(w io.Writer, r io.Reader) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
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
