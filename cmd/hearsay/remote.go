package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/streamhttp"
)

// reach lets the servers of a file that have an address be reached over HTTP, through a dialer of their own that judges where the
// address leads. The headers are read at each connection, so a token that was renewed counts.
func reach(file *config.File, servers []gateway.Server) error {
	for i, s := range servers {
		section := file.Servers[s.Server]
		if section.URL == "" {
			continue
		}
		dialer, err := remoteDialer(section)
		if err != nil {
			return fmt.Errorf("servers: %s: %w", s.Server, err)
		}
		if _, err := section.HeaderValues(); err != nil {
			return fmt.Errorf("servers: %s: %w", s.Server, err)
		}
		transport := &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, Proxy: nil,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 16, MaxResponseHeaderBytes: 64 << 10,
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

// remoteDialer goes to the server's host and nowhere else, unless its egress section says more. A host that the operator wrote as
// an address, or as localhost, may lie inward: nobody else chose it.
func remoteDialer(section *config.Server) (*egress.Dialer, error) {
	if section.Egress != nil {
		policy, err := section.Egress.Policy()
		if err != nil {
			return nil, err
		}
		resolver, err := section.Egress.Resolver()
		return &egress.Dialer{Policy: policy, Resolver: resolver}, err
	}
	u, err := url.Parse(section.URL)
	if err != nil {
		return nil, err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	host := u.Hostname()
	opt := egress.PolicyOptions{}
	if addr, err := netip.ParseAddr(host); err == nil {
		opt.Inward = map[string][]string{host: {netip.PrefixFrom(addr, addr.BitLen()).String()}}
		if addr.Is6() {
			host = "[" + host + "]"
		}
	} else if host == "localhost" {
		opt.Inward = map[string][]string{host: {"127.0.0.0/8", "::1/128"}}
	}
	opt.Allow = []string{host + ":" + port}
	policy, err := egress.NewPolicy(opt)
	return &egress.Dialer{Policy: policy}, err
}
