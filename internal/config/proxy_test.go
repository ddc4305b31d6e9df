package config

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"
)

// TestProxySection reads a whole section and looks at what the rooms get.
func TestProxySection(t *testing.T) {
	t.Setenv("PW_ANN", "password of ann")
	t.Setenv("PW_BOB", "password of bob")
	t.Setenv("PW_NEXT", "password of next")
	t.Setenv("TOKEN", "token-0123456789")
	f, err := Parse([]byte(`
egress: {allow: ["a.test"]}
proxy:
  allow_no_server_name: true
  limits: {connections: 7, idle: 90s, total: 2h}
  chain: {scheme: socks5, address: "127.0.0.1:1080", user: me, password: env:PW_NEXT}
  clients:
    - {name: ann, password: env:PW_ANN, egress: {allow: ["a.test"]}}
    - {name: bob, password: env:PW_BOB}
servers:
  wiki: {url: "https://wiki.test/mcp", headers: {Authorization: "env:WIKI"}}
credentials:
  - {host: a.test, header: "Authorization: Bearer {secret}", secret: env:TOKEN, client: ann, path: /v1}
`))
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.ProxyOptions()
	if err != nil {
		t.Fatal(err)
	}
	if !o.AllowNoServerName || o.AllowEncryptedHello || o.Limits.Connections != 7 || o.Limits.Idle != 90*time.Second || o.Limits.Total != 2*time.Hour {
		t.Errorf("options %+v", o)
	}
	if o.Chain == nil || o.Chain.Addr != "127.0.0.1:1080" || o.Chain.Password.Reveal() != "password of next" {
		t.Errorf("chain %+v", o.Chain)
	}
	listener, others, err := f.ProxyClients()
	if err != nil {
		t.Fatal(err)
	}
	if len(others) != 2 || others[0].Name != "ann" || others[1].Name != "bob" || listener.Login == nil || listener.Peer != nil {
		t.Fatalf("listener %+v, others %+v", listener, others)
	}
	for _, c := range []struct {
		user, password string
		ok             bool
	}{{"ann", "password of ann", true}, {"bob", "password of bob", true}, {"ann", "password of bob", false}, {"ann", "", false}, {"carl", "", false}, {"default", "", false}} {
		if name, ok := listener.Login(c.user, c.password); ok != c.ok || ok && name != c.user {
			t.Errorf("login of %s with %q: %s %v", c.user, c.password, name, ok)
		}
	}
	if got := others[0].Broker.Targets("ann"); len(got) != 1 || len(others[0].Broker.Targets("bob")) != 0 {
		t.Errorf("credentials for %v", got)
	}
	if got := strings.Join(f.SecretEnv(), " "); got != "TOKEN WIKI PW_ANN PW_BOB PW_NEXT" {
		t.Errorf("variables with secrets: %s", got)
	}
}

// TestProxyRefuses holds what must not start.
func TestProxyRefuses(t *testing.T) {
	t.Setenv("PW", "password-0123456789")
	for name, c := range map[string]struct{ file, want string }{
		"client without a name":      {"proxy: {clients: [{password: env:PW}]}", "no name of its own"},
		"two of one name":            {"proxy: {clients: [{name: a, password: env:PW}, {name: a, password: env:PW}]}", "no name of its own"},
		"the listener's name":        {"proxy: {clients: [{name: default, password: env:PW}]}", "no name of its own"},
		"neither of both":            {"proxy: {clients: [{name: a}]}", "a password or a certificate"},
		"both":                       {"proxy: {clients: [{name: a, password: env:PW, certificate: a}]}", "not both"},
		"certificate without TLS":    {"proxy: {clients: [{name: a, certificate: a}]}", "needs proxy.tls"},
		"certificate of two clients": {"proxy: {tls: {}, clients: [{name: a, certificate: x}, {name: b, certificate: x}]}", "stands for two"},
		"password in the file":       {"proxy: {clients: [{name: a, password: password-0123456789}]}", "file:PATH or env:NAME"},
		"credential of nobody":       {"egress: {allow: [a.test]}\ncredentials: [{host: a.test, header: A, secret: env:PW, client: ghost}]", "does not name"},
		"credential without a way":   {"egress: {allow: [b.test]}\ncredentials: [{host: a.test, header: A, secret: env:PW}]", "could never be used"},
		"credential for a wildcard":  {"egress: {allow: [\"*.a.test\"]}\ncredentials: [{host: \"*.a.test\", header: A, secret: env:PW}]", "one addressee"},
		"credential denied":          {"egress: {allow: [a.test], deny: [a.test]}\ncredentials: [{host: a.test, header: A, secret: env:PW}]", "could never be used"},
	} {
		f, err := Parse([]byte(c.file))
		if err == nil {
			_, _, err = f.ProxyClients()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "password-0123456789") {
			t.Errorf("%s: the error shows a secret: %v", name, err)
		}
	}
	for _, limits := range []string{"idle: 0s", "idle: -1s", "head_time: x", "connections: -1", "bytes: -5"} {
		f, err := Parse([]byte("proxy: {limits: {" + limits + "}}"))
		if err == nil {
			_, err = f.ProxyOptions()
		}
		if err == nil {
			t.Errorf("%s is taken", limits)
		}
	}
}

// TestCertificateNames: a certificate stands for one client or for none.
func TestCertificateNames(t *testing.T) {
	f, err := Parse([]byte("proxy: {tls: {}, clients: [{name: a, certificate: a.test}]}"))
	if err != nil {
		t.Fatal(err)
	}
	listener, _, err := f.ProxyClients()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cert     x509.Certificate
		verified bool
		ok       bool
	}{
		{x509.Certificate{DNSNames: []string{"a.test"}}, true, true},
		{x509.Certificate{Subject: pkix.Name{CommonName: "a.test"}}, true, true},
		{x509.Certificate{DNSNames: []string{"b.test"}, Subject: pkix.Name{CommonName: "a.test"}}, true, false},
		{x509.Certificate{DNSNames: []string{"a.test", "b.test"}}, true, false},
		{x509.Certificate{}, true, false},
		{x509.Certificate{DNSNames: []string{"a.test"}}, false, false},
	} {
		state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{&c.cert}}
		if c.verified {
			state.VerifiedChains = [][]*x509.Certificate{{&c.cert}}
		}
		if _, ok := listener.Peer(state); ok != c.ok {
			t.Errorf("%+v: %v", c.cert.DNSNames, ok)
		}
	}
}
