package config

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

// Egress says where connections may go. Absent or empty lists allow nothing. Its entries are checked while the file is read,
// so that the error shows the line.
type Egress struct {
	Allow         []string            `yaml:"allow"`
	Deny          []string            `yaml:"deny"`
	Inward        map[string][]string `yaml:"inward"`
	NAT64Prefixes []string            `yaml:"nat64_prefixes"`
	ReportOnly    bool                `yaml:"report_only"`
	// DNS are the servers to ask; empty: those of the host.
	DNS []string `yaml:"dns"`
}

// UnmarshalYAML reads the section strictly and checks that its rules compile.
func (e *Egress) UnmarshalYAML(node ast.Node) error {
	type plain Egress
	if err := yaml.NodeToValue(node, (*plain)(e), yaml.Strict()); err != nil {
		return err
	}
	_, err := e.Policy()
	var entry *egress.EntryError
	if errors.As(err, &entry) {
		return &yaml.SyntaxError{Message: err.Error(), Token: entryNode(node, entry).GetToken()}
	}
	if _, err := e.Resolver(); err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: child(node, "dns").GetToken()}
	}
	return err
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

// Resolver makes the resolver of the section. A nil section follows the host.
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

// entryNode finds the node of a rule that does not compile, or the nearest one above it.
func entryNode(section ast.Node, e *egress.EntryError) ast.Node {
	list := child(section, e.List)
	if e.List == "inward" {
		list = child(list, e.Host)
	}
	if s, ok := list.(*ast.SequenceNode); ok && e.Index >= 0 && e.Index < len(s.Values) {
		return s.Values[e.Index]
	}
	return list
}

// child returns the value under a key, or the node itself where there is none.
func child(node ast.Node, key string) ast.Node {
	m, ok := node.(ast.MapNode)
	if !ok {
		return node
	}
	for it := m.MapRange(); it.Next(); {
		if it.Key().GetToken().Value == key {
			return it.Value()
		}
	}
	return node
}
