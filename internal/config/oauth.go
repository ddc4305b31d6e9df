package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
	"github.com/seed-4e9f7b04/hearsay/internal/oauth"
)

// OAuth is how a person signs in to a server with a url. Empty, it follows what the server says of itself and registers a client.
type OAuth struct {
	Issuer            string   `yaml:"issuer"` // the one authorization server that counts; absent: the first that the server names
	ClientID          string   `yaml:"client_id"`
	ClientSecret      string   `yaml:"client_secret"`          // file:PATH or env:NAME; needs the issuer
	ClientMetadataURL string   `yaml:"client_id_metadata_url"` // of a client metadata document, which is the client's id
	Scopes            []string `yaml:"scopes"`                 // absent: those the server asks for
	RedirectPort      uint16   `yaml:"redirect_port"`          // on 127.0.0.1; absent: a free one
	Hosts             []string `yaml:"hosts"`                  // where the sign-in may go beside the server; absent: any https host at an outward address
}

// Account makes the account of a server whose section has oauth.
func (s *Server) Account(name, stateDir string) (*oauth.Account, error) {
	dialer, err := s.signInDialer()
	if err != nil {
		return nil, err
	}
	o := s.OAuth
	opt := oauth.Options{
		Server: name, URL: s.URL, Issuer: o.Issuer, ClientID: o.ClientID, ClientMetadata: o.ClientMetadataURL,
		Scopes: o.Scopes, RedirectPort: o.RedirectPort, Dialer: dialer, Dir: oauth.DefaultDir(stateDir),
	}
	if o.ClientSecret != "" {
		opt.ClientSecret = func() (broker.Secret, error) { return broker.ReadSecret(o.ClientSecret) }
	}
	account, err := oauth.New(opt)
	if err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	return account, nil
}

// checkOAuth checks what needs no folder.
func (s *Server) checkOAuth(name string) error {
	o := s.OAuth
	if o == nil {
		return nil
	}
	if s.URL == "" {
		return errors.New("oauth is for a server with a url")
	}
	for header := range s.Headers {
		if strings.EqualFold(header, "Authorization") {
			return errors.New("it has oauth and a header Authorization: which is it?")
		}
	}
	if o.ClientSecret != "" && !strings.HasPrefix(o.ClientSecret, "env:") && !strings.HasPrefix(o.ClientSecret, "file:") {
		return errors.New("oauth: client_secret: a secret is written as file:PATH or env:NAME, never in the file itself")
	}
	if s.Egress != nil && len(o.Hosts) > 0 {
		return errors.New("oauth: hosts: the server has an egress section, which says where the sign-in may go; list the hosts there")
	}
	_, err := s.Account(name, "")
	return err
}

// Dialer goes to the server's host and nowhere else, unless its egress section says more. A host that the operator wrote as an
// address, or as localhost, may lie inward: nobody else chose it.
func (s *Server) Dialer() (*egress.Dialer, error) { return s.dialer(nil) }

// signInDialer goes to the server's host and to where a sign-in may go.
func (s *Server) signInDialer() (*egress.Dialer, error) {
	if len(s.OAuth.Hosts) == 0 {
		return s.dialer([]string{"*:*"})
	}
	return s.dialer(s.OAuth.Hosts)
}

func (s *Server) dialer(more []string) (*egress.Dialer, error) {
	if s.Egress != nil {
		policy, err := s.Egress.Policy()
		if err != nil {
			return nil, err
		}
		resolver, err := s.Egress.Resolver()
		return &egress.Dialer{Policy: policy, Resolver: resolver}, err
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	opt := egress.PolicyOptions{Allow: append([]string{net.JoinHostPort(u.Hostname(), port)}, more...), Inward: map[string][]string{}}
	for _, entry := range opt.Allow {
		host, port, err := net.SplitHostPort(entry)
		if err != nil {
			host = strings.Trim(entry, "[]")
		}
		if addr, err := netip.ParseAddr(host); err == nil {
			opt.Inward[host] = append(opt.Inward[host], inwardRange(addr.String(), port))
		} else if host == "localhost" {
			opt.Inward[host] = append(opt.Inward[host], inwardRange("127.0.0.1", port), inwardRange("::1", port))
		}
	}
	policy, err := egress.NewPolicy(opt)
	return &egress.Dialer{Policy: policy}, err
}

// inwardRange is an address on one port, or on those that the entry for it allows.
func inwardRange(addr, port string) string {
	if port == "" || port == "*" {
		return addr
	}
	return net.JoinHostPort(addr, port)
}
