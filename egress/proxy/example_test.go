package proxy_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
)

// A proxy for one client that may reach one host. The host lies on loopback here, which needs an exemption.
func ExampleServer_Serve() {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer origin.Close()
	_, port, _ := net.SplitHostPort(origin.Listener.Addr().String())

	policy, err := egress.NewPolicy(egress.PolicyOptions{
		Allow:  []string{"api.example.localhost:*"},
		Inward: map[string][]string{"api.example.localhost:*": {"127.0.0.1", "::1"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	srv, err := proxy.New(proxy.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- srv.Serve(ctx, listener, proxy.Client{Name: "build", Dialer: &egress.Dialer{Policy: policy}})
	}()

	via := &url.URL{Scheme: "http", Host: listener.Addr().String()}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(via)}}
	for _, host := range []string{"api.example.localhost", "other.example.localhost"} {
		resp, err := client.Get("http://" + host + ":" + port)
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			fmt.Println(host, resp.StatusCode, string(body))
		} else {
			fmt.Println(host, resp.StatusCode, resp.Header.Get("Hearsay-Reason"))
		}
	}
	cancel()
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output:
	// api.example.localhost 200 hello
	// other.example.localhost 403 not-allowed
}
