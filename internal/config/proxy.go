package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// DefaultClient is the name of whoever comes without a login, and is judged by the egress section.
const DefaultClient = "default"

// Proxy says how the egress proxy works. Where it may connect to is the egress section's matter.
type Proxy struct {
	AllowNoServerName   bool `yaml:"allow_no_server_name"`
	AllowEncryptedHello bool `yaml:"allow_encrypted_hello"`
	KeepRefusedTunnels  bool `yaml:"keep_refused_tunnels"`

	Limits  ProxyLimits   `yaml:"limits"`
	Chain   *ProxyChain   `yaml:"chain"`
	Clients []ProxyClient `yaml:"clients"`
	TLS     *ProxyTLS     `yaml:"tls"`
}

// ProxyLimits bound one client. Absent ones are the proxy's defaults.
type ProxyLimits struct {
	Connections int    `yaml:"connections"`
	Bytes       int64  `yaml:"bytes"`
	HeadBytes   int    `yaml:"head_bytes"`
	HeadTime    string `yaml:"head_time"`
	KeepAlive   string `yaml:"keep_alive"`
	Idle        string `yaml:"idle"`
	Total       string `yaml:"total"`
}

// ProxyChain is a further proxy that connections go through.
type ProxyChain struct {
	Scheme   string `yaml:"scheme"` // http or socks5
	Address  string `yaml:"address"`
	User     string `yaml:"user"`
	Password string `yaml:"password"` // file:PATH or env:NAME
}

// ProxyClient is one of several clients of a listener, each with rules of its own. It is known by its name and password, or
// by a name in its certificate.
type ProxyClient struct {
	Name        string  `yaml:"name"`
	Password    string  `yaml:"password"` // file:PATH or env:NAME
	Certificate string  `yaml:"certificate"`
	Egress      *Egress `yaml:"egress"`
}

// ProxyTLS has clients come over TLS and show a certificate.
type ProxyTLS struct {
	Cert     string `yaml:"cert"`
	Key      string `yaml:"key"`
	ClientCA string `yaml:"client_ca"`
}

func (f *File) clientNames() []string {
	names := []string{DefaultClient}
	if f.Proxy != nil {
		for _, c := range f.Proxy.Clients {
			names = append(names, c.Name)
		}
	}
	return names
}

// ProxyOptions gives the options of the proxy. What it records and logs, and its own further ports, are the caller's.
func (f *File) ProxyOptions() (proxy.Options, error) {
	p := f.Proxy
	if p == nil {
		return proxy.Options{}, nil
	}
	o := proxy.Options{
		AllowNoServerName: p.AllowNoServerName, AllowEncryptedHello: p.AllowEncryptedHello, KeepRefusedTunnels: p.KeepRefusedTunnels,
		Limits: proxy.Limits{Connections: p.Limits.Connections, Bytes: p.Limits.Bytes, Head: p.Limits.HeadBytes},
	}
	for _, d := range []struct {
		key, text string
		to        *time.Duration
	}{
		{"head_time", p.Limits.HeadTime, &o.Limits.HeadTime},
		{"keep_alive", p.Limits.KeepAlive, &o.Limits.KeepAlive},
		{"idle", p.Limits.Idle, &o.Limits.Idle},
		{"total", p.Limits.Total, &o.Limits.Total},
	} {
		if d.text == "" {
			continue
		}
		v, err := time.ParseDuration(d.text)
		if err != nil || v <= 0 {
			return o, fmt.Errorf("proxy.limits.%s: %q is not a duration such as 90s or 1h", d.key, d.text)
		}
		*d.to = v
	}
	if p.Limits.Connections < 0 || p.Limits.Bytes < 0 || p.Limits.HeadBytes < 0 {
		return o, errors.New("proxy.limits: a number is negative")
	}
	if c := p.Chain; c != nil {
		o.Chain = &proxy.Chain{Scheme: c.Scheme, Addr: c.Address, User: c.User}
		if c.Password != "" {
			secret, err := broker.ReadSecret(c.Password)
			if err != nil {
				return o, fmt.Errorf("proxy.chain: %w", err)
			}
			o.Chain.Password = secret
		}
	}
	return o, nil
}

// ProxyClients gives the client of a listener, and those a login or a certificate tells apart. A credential whose host the
// rules of its clients never let through is an error: nothing could be stamped, and the secret would end up elsewhere.
func (f *File) ProxyClients() (listener proxy.Client, others []proxy.Client, err error) {
	b, err := f.Broker()
	if err != nil {
		return listener, nil, err
	}
	listener, err = f.proxyClient(DefaultClient, f.Egress, b)
	if err != nil || f.Proxy == nil || len(f.Proxy.Clients) == 0 {
		return listener, nil, err
	}
	passwords := map[string]broker.Secret{}
	certificates := map[string]string{}
	for i, pc := range f.Proxy.Clients {
		if pc.Name == "" || slices.ContainsFunc(f.Proxy.Clients[:i], func(o ProxyClient) bool { return o.Name == pc.Name }) || pc.Name == DefaultClient {
			return listener, nil, fmt.Errorf("proxy.clients: client %d has no name of its own", i+1)
		}
		switch {
		case (pc.Password == "") == (pc.Certificate == ""):
			return listener, nil, fmt.Errorf("proxy.clients: client %s needs a password or a certificate, and not both", pc.Name)
		case pc.Password != "":
			if passwords[pc.Name], err = broker.ReadSecret(pc.Password); err != nil {
				return listener, nil, fmt.Errorf("proxy.clients: client %s: %w", pc.Name, err)
			}
		case f.Proxy.TLS == nil:
			return listener, nil, fmt.Errorf("proxy.clients: client %s is known by a certificate, which needs proxy.tls", pc.Name)
		case certificates[pc.Certificate] != "":
			return listener, nil, fmt.Errorf("proxy.clients: the certificate name %q stands for two clients", pc.Certificate)
		default:
			certificates[pc.Certificate] = pc.Name
		}
		c, err := f.proxyClient(pc.Name, pc.Egress, b)
		if err != nil {
			return listener, nil, fmt.Errorf("proxy.clients: client %s: %w", pc.Name, err)
		}
		others = append(others, c)
	}
	if len(passwords) > 0 && len(certificates) > 0 {
		return listener, nil, errors.New("proxy.clients: passwords and certificates do not go together on one listener")
	}
	if len(passwords) > 0 {
		listener.Login = func(user, password string) (string, bool) { return user, passwords[user].Equal(password) }
	} else {
		listener.Peer = func(s tls.ConnectionState) (string, bool) {
			name := ""
			if len(s.VerifiedChains) > 0 {
				name = certificates[certificateName(s.PeerCertificates[0])]
			}
			return name, name != ""
		}
	}
	return listener, others, nil
}

// certificateName is the one name a client certificate stands for: its only DNS name, or its common name where it has none.
func certificateName(c *x509.Certificate) string {
	switch len(c.DNSNames) {
	case 0:
		return c.Subject.CommonName
	case 1:
		return c.DNSNames[0]
	}
	return ""
}

func (f *File) proxyClient(name string, section *Egress, b *broker.Broker) (proxy.Client, error) {
	policy, err := section.Policy()
	if err != nil {
		return proxy.Client{}, err
	}
	resolver, err := section.Resolver()
	if err != nil {
		return proxy.Client{}, err
	}
	for _, t := range b.Targets(name) {
		if d := policy.Decide(t, nil); !d.Allowed && d.Reason != egress.ReasonTunnel && !policy.DecideName(t.Host()).Allowed {
			if name == DefaultClient && f.Proxy != nil && len(f.Proxy.Clients) > 0 {
				continue // nobody is this client
			}
			return proxy.Client{}, fmt.Errorf("credentials: the rules of client %s do not allow %s, so its credential could never be used; add it to egress.allow or remove the credential", name, t)
		}
	}
	return proxy.Client{Name: name, Dialer: &egress.Dialer{Policy: policy, Resolver: resolver}, Broker: b}, nil
}

// ProxyTLS gives the TLS of the listener, nil where clients come without.
func (f *File) ProxyTLS() (*tls.Config, error) {
	if f.Proxy == nil || f.Proxy.TLS == nil {
		return nil, nil
	}
	t := f.Proxy.TLS
	cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("proxy.tls: %w", err)
	}
	pem, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("proxy.tls: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("proxy.tls: %s holds no certificate", t.ClientCA)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	}, nil
}
