package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// Server is an MCP server behind the gateway: a command, or an address.
type Server struct {
	Command []string          `yaml:"command"`
	Env     map[string]string `yaml:"env"`      // beside the allow-listed variables
	PassEnv []string          `yaml:"pass_env"` // names of variables to take from the environment of hearsay
	Dir     string            `yaml:"dir"`

	URL     string            `yaml:"url"`
	SSE     bool              `yaml:"sse"`     // the server only knows HTTP+SSE of 2024-11-05
	Headers map[string]string `yaml:"headers"` // NAME: file:PATH or env:NAME; whole values, such as a bearer token with its word
	OAuth   *OAuth            `yaml:"oauth"`   // a person signs in, with hearsay login

	Trust          string `yaml:"trust"`           // untrusted (default) or first-party
	Structured     string `yaml:"structured"`      // fold (default), defang, pass
	Instructions   string `yaml:"instructions"`    // drop (default) or frame
	UnknownMembers string `yaml:"unknown_members"` // drop (default) or pass
	SamplingTools  bool   `yaml:"sampling_tools"`
	Timeout        string `yaml:"timeout"` // of one call, such as 10m
	Start          string `yaml:"start"`   // on-use (default), or with-client: when a client has connected

	Sandbox *Sandbox `yaml:"sandbox"` // absent: the preset server
	Egress  *Egress  `yaml:"egress"`  // absent: no network
}

// Serve is the gateway on streamable HTTP.
type Serve struct {
	Listen    string   `yaml:"listen"`     // loopback unless tls and listen say otherwise; "" means 127.0.0.1:8377
	TokenFile string   `yaml:"token_file"` // one token for everyone; made where it is absent
	Clients   []Client `yaml:"clients"`    // or one for each client
	Hosts     []string `yaml:"hosts"`      // further values of the Host header
	Origins   []string `yaml:"origins"`    // pages that may use the gateway
	TLS       *struct {
		Cert string `yaml:"cert"`
		Key  string `yaml:"key"`
	} `yaml:"tls"`
}

// Client is one client of the gateway, known by its token.
type Client struct {
	Name      string `yaml:"name"`
	TokenFile string `yaml:"token_file"`
}

// ServerNames lists the servers of the file in order of their names.
func (f *File) ServerNames() []string { return slices.Sorted(maps.Keys(f.Servers)) }

// Sandboxed lists the servers that run in the sandbox.
func (f *File) Sandboxed() []string {
	var names []string
	for _, name := range f.ServerNames() {
		if s := f.Servers[name]; len(s.Command) > 0 && (s.Sandbox == nil || !s.Sandbox.Off) {
			names = append(names, name)
		}
	}
	return names
}

// GatewayServers gives the servers as the gateway takes them. How those with an address are reached is the caller's.
func (f *File) GatewayServers() ([]gateway.Server, error) {
	if len(f.Servers) == 0 {
		return nil, fmt.Errorf("%s names no servers; write for example\nservers:\n  files:\n    command: [npx, -y, \"@modelcontextprotocol/server-filesystem\", /data]", f.Path)
	}
	var out []gateway.Server
	for _, name := range f.ServerNames() {
		s, err := f.Servers[name].gateway(name)
		if err != nil {
			return nil, fmt.Errorf("servers: %s: %w", name, err)
		}
		out = append(out, s)
	}
	if err := gateway.CheckServerNames(f.ServerNames(), len(out) > 1); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	return out, nil
}

func (s *Server) gateway(name string) (gateway.Server, error) {
	g := gateway.Server{Source: gateway.Source{Server: name, SamplingTools: s.SamplingTools}, Command: s.Command, URL: s.URL, PassEnv: s.PassEnv}
	switch {
	case len(s.Command) == 0 && s.URL == "":
		return g, errors.New("give its command or its url")
	case len(s.Command) > 0 && s.URL != "":
		return g, errors.New("it has a command and a url: which is it?")
	case s.URL != "" && (len(s.Env) > 0 || len(s.PassEnv) > 0 || s.Dir != "" || s.Sandbox != nil):
		return g, errors.New("env, pass_env, dir and sandbox are for a server with a command")
	case s.URL == "" && (len(s.Headers) > 0 || s.SSE):
		return g, errors.New("headers and sse are for a server with a url")
	}
	if s.URL != "" {
		if u, err := url.Parse(s.URL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
			return g, errors.New("url: it is http or https, with a host and without a user")
		}
	}
	if err := s.checkOAuth(name); err != nil {
		return g, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if from := s.Headers[name]; !strings.HasPrefix(from, "env:") && !strings.HasPrefix(from, "file:") {
			return g, fmt.Errorf("headers: %s: a secret is written as file:PATH or env:NAME, never in the file itself", name)
		}
	}
	for _, choice := range []struct {
		key, value string
		words      map[string]func()
	}{
		{"trust", s.Trust, map[string]func(){"untrusted": nil, "first-party": func() { g.Trust = gateway.FirstParty }}},
		{"structured", s.Structured, map[string]func(){"fold": nil, "defang": func() { g.Structured = gateway.Defang }, "pass": func() { g.Structured = gateway.PassOnward }}},
		{"instructions", s.Instructions, map[string]func(){"drop": nil, "frame": func() { g.FrameInstructions = true }}},
		{"start", s.Start, map[string]func(){"on-use": nil, "with-client": func() { g.AtStart = true }}},
		{"unknown_members", s.UnknownMembers, map[string]func(){"drop": nil, "pass": func() { g.PassUnknown = true }}},
	} {
		if choice.value == "" {
			continue
		}
		set, ok := choice.words[choice.value]
		if !ok {
			return g, fmt.Errorf("%s: %q: it is %s", choice.key, choice.value, strings.Join(slices.Sorted(maps.Keys(choice.words)), " or "))
		}
		if set != nil {
			set()
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return g, fmt.Errorf("env: %q is no name of a variable", key)
		}
		g.Env = append(g.Env, key+"="+s.Env[key])
	}
	g.Dir = s.Dir
	var err error
	if s.Timeout != "" {
		if g.CallTimeout, err = time.ParseDuration(s.Timeout); err != nil || g.CallTimeout <= 0 {
			return g, fmt.Errorf("timeout: %q is not a duration such as 90s or 10m", s.Timeout)
		}
	}
	if s.Sandbox != nil && s.Sandbox.Off {
		g.Warnings = append(g.Warnings, "the server "+name+" runs without a sandbox")
	} else if s.URL == "" {
		if _, err := s.Sandbox.Spec(); err != nil {
			return g, err
		}
	}
	return g, nil
}

// HeaderValues reads the secrets of the headers section.
func (s *Server) HeaderValues() (http.Header, error) {
	h := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		value, err := broker.ReadSecret(s.Headers[name])
		if err != nil {
			return nil, fmt.Errorf("headers: %s: %w", name, err)
		}
		h.Set(name, value.Reveal())
	}
	return h, nil
}

// TLSConfig reads the certificate of the listener; nil where none is named.
func (s *Serve) TLSConfig() (*tls.Config, error) {
	if s.TLS == nil {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(s.TLS.Cert, s.TLS.Key)
	if err != nil {
		return nil, fmt.Errorf("serve: tls: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}
