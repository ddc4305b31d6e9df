package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/streamhttp"
)

// reach lets the servers of a file that have an address be reached over HTTP, through a dialer of their own that judges where the
// address leads. The headers are read at each connection, so a token that was renewed counts; a server with oauth gets the token of
// the person who signed in, and log is told when somebody has to.
func reach(file *config.File, servers []gateway.Server, stateDir string, log *slog.Logger) error {
	for i, s := range servers {
		section := file.Servers[s.Server]
		if section.URL == "" {
			continue
		}
		dialer, err := section.Dialer()
		if err != nil {
			return fmt.Errorf("servers: %s: %w", s.Server, err)
		}
		if _, err := section.HeaderValues(); err != nil {
			return fmt.Errorf("servers: %s: %w", s.Server, err)
		}
		var transport http.RoundTripper = &http.Transport{
			DialContext: dial(dialer), ForceAttemptHTTP2: true, Proxy: nil,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 16, MaxResponseHeaderBytes: 64 << 10,
		}
		if section.OAuth != nil {
			account, err := section.Account(s.Server, stateDir)
			if err != nil {
				return fmt.Errorf("servers: %s: %w", s.Server, err)
			}
			if st, err := account.Status(); err != nil {
				return fmt.Errorf("servers: %s: %w", s.Server, err)
			} else if !st.SignedIn {
				log.Warn("nobody is signed in; its calls fail until somebody runs hearsay login "+s.Server, "server", s.Server)
			}
			transport = account.Transport(transport, func(err error) { log.Warn("a call was not sent", "server", s.Server, "why", err) })
		}
		servers[i].Connect = func(context.Context) (jsonrpc.Transport, error) {
			headers, err := section.HeaderValues()
			if err != nil {
				return nil, err
			}
			return streamhttp.NewClient(streamhttp.ClientOptions{URL: section.URL, Transport: transport, Header: headers, SSE: section.SSE})
		}
	}
	return nil
}

// dial is the dialer's, but says in what words a caller hears that the egress rules are against it.
func dial(d *egress.Dialer) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, addr)
		if denied := (*egress.DeniedError)(nil); errors.As(err, &denied) {
			err = notDialled{denied}
		}
		return conn, err
	}
}

type notDialled struct{ *egress.DeniedError }

func (e notDialled) Refusal() string { return e.Error() }
