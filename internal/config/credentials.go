package config

import (
	"fmt"
	"slices"

	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// Credential is a secret for one host, stamped on what a client asks of it over plain HTTP.
type Credential struct {
	Host        string `yaml:"host"`
	Header      string `yaml:"header"`
	Secret      string `yaml:"secret"` // file:PATH or env:NAME
	Placeholder string `yaml:"placeholder"`
	Path        string `yaml:"path"`
	Client      string `yaml:"client"`
	AllowTunnel bool   `yaml:"allow_tunnel"`
	AllowEcho   bool   `yaml:"allow_echo"`
}

// Broker reads the secrets of the credentials section. It is nil where there is none.
func (f *File) Broker() (*broker.Broker, error) {
	if len(f.Credentials) == 0 {
		return nil, nil
	}
	names := f.clientNames()
	var entries []broker.Options
	for i, c := range f.Credentials {
		secret, err := broker.ReadSecret(c.Secret)
		if err != nil {
			return nil, fmt.Errorf("credentials: credential %d: %w", i+1, err)
		}
		if c.Client != "" && !slices.Contains(names, c.Client) {
			return nil, fmt.Errorf("credentials: credential %d is for the client %q, which proxy.clients does not name", i+1, c.Client)
		}
		entries = append(entries, broker.Options{
			Host: c.Host, Header: c.Header, Secret: secret, Placeholder: c.Placeholder, Path: c.Path, Client: c.Client,
			AllowTunnel: c.AllowTunnel, AllowEcho: c.AllowEcho,
		})
	}
	b, err := broker.New(entries)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return b, nil
}
