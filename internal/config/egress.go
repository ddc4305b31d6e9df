package config

import (
	"fmt"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

// Egress says where connections may go. Absent or empty lists allow nothing.
type Egress struct {
	Allow         []string            `yaml:"allow"`
	Deny          []string            `yaml:"deny"`
	Inward        map[string][]string `yaml:"inward"`
	NAT64Prefixes []string            `yaml:"nat64_prefixes"`
	ReportOnly    bool                `yaml:"report_only"`
	// DNS are the servers to ask; empty: those of the host.
	DNS []string `yaml:"dns"`
}

// Policy compiles the section. A nil section allows nothing.
func (e *Egress) Policy() (*egress.Policy, error) {
	if e == nil {
		return egress.NewPolicy(egress.PolicyOptions{})
	}
	p, err := egress.NewPolicy(egress.PolicyOptions{
		Allow:      e.Allow,
		Deny:       e.Deny,
		Inward:     e.Inward,
		NAT64:      e.NAT64Prefixes,
		ReportOnly: e.ReportOnly,
	})
	if err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	return p, nil
}

// Resolver makes the resolver of the section.
func (e *Egress) Resolver() (*egress.Resolver, error) {
	var o egress.ResolverOptions
	if e != nil {
		o.Servers = e.DNS
	}
	r, err := egress.NewResolver(o)
	if err != nil {
		return nil, fmt.Errorf("egress: %w", err)
	}
	return r, nil
}
