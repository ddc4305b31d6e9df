package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// egress runs the proxy on loopback, with a name server of its own, and tries three ways to a listener that stands for whatever
// must not be reached.
func (d *demo) egress(ctx context.Context) error {
	d.chapter(4, "The egress proxy decides by resolved address")
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var reached atomic.Int32
	inside := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reached.Add(1) })}
	insideAt, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go inside.Serve(insideAt)
	defer inside.Close()
	port := insideAt.Addr().(*net.TCPAddr).Port

	names, err := demoNames(ctx)
	if err != nil {
		return err
	}
	resolver, err := egress.NewResolver(egress.ResolverOptions{Servers: []string{names}})
	if err != nil {
		return err
	}
	allow := []string{fmt.Sprintf("cdn.partner.example:%d", port)}
	policy, err := egress.NewPolicy(egress.PolicyOptions{Allow: allow})
	if err != nil {
		return err
	}
	srv, err := proxy.New(proxy.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() {
		served <- srv.Serve(ctx, ln, proxy.Client{Name: "demo", Dialer: &egress.Dialer{Policy: policy, Resolver: resolver}})
	}()
	defer func() { stop(); <-served }()

	d.say("A service on this machine that nobody outside may reach. The one entry of the\nproxy's list: allow cdn.partner.example (and the port of that service)\n")
	through := http.ProxyURL(&url.URL{Scheme: "http", Host: ln.Addr().String()})
	for _, try := range []struct {
		how, host string
		proxy     func(*http.Request) (*url.URL, error)
	}{
		{"without the proxy", "127.0.0.1", nil},
		{"by a name that is not listed", "collector.example", through},
		{"by literal address", "127.0.0.1", through},
		{"by the listed name, which resolves to 127.0.0.1", "cdn.partner.example", through},
	} {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: try.proxy}}
		resp, err := client.Get(fmt.Sprintf("http://%s:%d/?notes=NOTES", try.host, port))
		if err != nil {
			return err
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		verdict := "REACHED"
		if resp.StatusCode == http.StatusForbidden {
			verdict = "refused"
		}
		d.say("   %-50s %s", try.how, verdict)
	}
	d.say("\nRequests that arrived: %d. The last is refused although its name is listed:\nthe address it resolves to lies inward.", reached.Load())
	return nil
}

// demoNames answers every question with 127.0.0.1, in real DNS packets on loopback.
func demoNames(ctx context.Context) (string, error) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { pc.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer, err := demoAnswer(buf[:n]); err == nil {
				pc.WriteTo(answer, from)
			}
		}
	}()
	return pc.LocalAddr().String(), nil
}

func demoAnswer(question []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil, errors.New("not a question")
	}
	q := m.Questions[0]
	answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	if q.Type == dnsmessage.TypeA {
		answer.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr("127.0.0.1").As4()},
		}}
	}
	return answer.Pack()
}

// sandboxed lets the server try the machine, outside and inside the sandbox.
func (d *demo) sandboxed(ctx context.Context) error {
	d.chapter(5, "The sandbox holds the server itself")
	key := filepath.Join(d.dir, "id_ed25519")
	if err := os.WriteFile(key, []byte("a private key\n"), 0o600); err != nil {
		return err
	}
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer outside.Close()
	neighbour := exec.Command(d.self, "demo-server")
	if _, err := neighbour.StdinPipe(); err != nil {
		return err
	}
	if err := neighbour.Start(); err != nil {
		return err
	}
	defer func() { neighbour.Process.Kill(); neighbour.Wait() }()
	server := d.server("--key", key, "--dial", outside.Addr().String(), "--neighbour", fmt.Sprint(neighbour.Process.Pid))

	try := func(opt gateway.Options) (string, error) {
		opt.Servers = []gateway.Server{server}
		agent, end, err := d.connect(ctx, opt)
		if err != nil {
			return "", err
		}
		defer end()
		text, err := agent.call(ctx, "reach_out", strictjson.Object())
		return lastLines(text, 3), err
	}
	d.say("The server does not ask the model. As an ordinary process:\n")
	free, err := try(gateway.Options{})
	if err != nil {
		return err
	}
	d.show(free)
	held, err := try(gateway.Options{Launch: d.launch})
	var layer *sandbox.LayerError
	if errors.As(d.noSandbox, &layer) || (err != nil && d.noSandbox != nil) {
		d.say("\nThis machine cannot make the sandbox, so hearsay would not start the server:\n   %v", d.noSandbox)
		return nil
	}
	if err != nil {
		return err
	}
	d.say("\nIn the sandbox, with no network listed:\n")
	d.show(held)
	d.say("")
	return nil
}

// launch starts a server in the sandbox, as the gateway does with the servers of a configuration.
func (d *demo) launch(ctx context.Context, s gateway.Server) (*gateway.Process, error) {
	// The sandbox outlives the call that starts it; the gateway ends it.
	p, err := sandbox.Start(context.WithoutCancel(ctx), sandbox.Spec{Args: s.Command, Env: s.Env, Read: []string{d.self}})
	if err == nil {
		err = p.Go()
		if err != nil {
			p.Wait()
		}
	}
	if err != nil {
		d.noSandbox = err
		return nil, err
	}
	return &gateway.Process{
		Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr,
		Terminate: func() { p.Kill() }, Kill: func() { p.Kill() },
		Wait: func() string {
			exit, err := p.Wait()
			if err != nil {
				return err.Error()
			}
			return strings.TrimSpace(exit.String())
		},
	}, nil
}
