package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

// rig is a protected server and its authorization server, both over TLS on loopback under names of their own, and a person with a
// scripted browser. What they say is data that a test changes.
type rig struct {
	t     *testing.T
	roots *x509.CertPool
	dir   string

	rs, as *httptest.Server
	mcp    string // address of the protected server
	login  string // issuer

	mu       sync.Mutex        // guards all below
	resource map[string]any    // protected resource metadata, by path
	meta     map[string]any    // of the authorization server
	scope    string            // of the challenge
	named    string            // resource_metadata of the challenge
	redirect map[string]string // path → where it is redirected to
	raw      map[string]func(http.ResponseWriter, *http.Request)
	answer   func(url.Values) // changes the answer before the browser brings it back
	token    func(url.Values) (int, any)
	valid    map[string]bool       // access tokens
	refresh  map[string]bool       // refresh tokens that still count
	codes    map[string]url.Values // authorization requests by code
	asked    []url.Values          // of the token endpoint
	seen     []*http.Request       // of the protected server, with a token
	status   int                   // what it answers to a valid token; 0: 200
	header   http.Header
	made     int
	query    url.Values // of the last authorization request
	basic    string     // id and secret in the last token request's header
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		t: t, roots: x509.NewCertPool(), dir: filepath.Join(t.TempDir(), "oauth"), resource: map[string]any{}, redirect: map[string]string{},
		raw: map[string]func(http.ResponseWriter, *http.Request){}, valid: map[string]bool{}, refresh: map[string]bool{}, codes: map[string]url.Values{}, header: http.Header{},
	}
	cert := r.certificate()
	start := func(h http.HandlerFunc) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = discard
		s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
		s.StartTLS()
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
		return s
	}
	r.rs, r.as = start(r.serveMCP), start(r.serveLogin)
	_, rsPort, _ := net.SplitHostPort(r.rs.Listener.Addr().String())
	_, asPort, _ := net.SplitHostPort(r.as.Listener.Addr().String())
	r.mcp, r.login = "https://mcp.localhost:"+rsPort+"/mcp", "https://login.localhost:"+asPort
	r.resource["/mcp"] = map[string]any{"resource": r.mcp, "authorization_servers": []string{r.login}, "scopes_supported": []string{"read"}}
	r.meta = map[string]any{
		"issuer": r.login, "authorization_endpoint": r.login + "/authorize", "token_endpoint": r.login + "/token", "registration_endpoint": r.login + "/register",
		"revocation_endpoint": r.login + "/revoke", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
	}
	return r
}

func (r *rig) certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"mcp.localhost", "login.localhost", "evil.localhost"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		r.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		r.t.Fatal(err)
	}
	r.roots.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// dialer lets a sign-in go anywhere outward, and to the two hosts of the rig.
func (r *rig) dialer() *egress.Dialer {
	loopback := []string{"127.0.0.1", "::1"}
	policy, err := egress.NewPolicy(egress.PolicyOptions{Allow: []string{"*:*"}, Inward: map[string][]string{"mcp.localhost": loopback, "login.localhost": loopback}})
	if err != nil {
		r.t.Fatal(err)
	}
	return &egress.Dialer{Policy: policy}
}

func (r *rig) account(change ...func(*Options)) *Account {
	r.t.Helper()
	opt := Options{Server: "crm", URL: r.mcp, Dialer: r.dialer(), Dir: r.dir}
	for _, c := range change {
		c(&opt)
	}
	a, err := New(opt)
	if err != nil {
		r.t.Fatal(err)
	}
	a.web = newWeb(opt.Dialer, r.roots)
	return a
}

// transport is the account's, over a base that trusts the rig.
func (r *rig) transport(a *Account) http.RoundTripper { return a.Transport(a.web.base, nil) }

// lock runs f with what the servers say in hand.
func (r *rig) lock(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *rig) common(w http.ResponseWriter, req *http.Request) bool {
	r.mu.Lock()
	raw, to := r.raw[req.URL.Path], r.redirect[req.URL.Path]
	r.mu.Unlock()
	switch {
	case raw != nil:
		raw(w, req)
	case to != "":
		http.Redirect(w, req, to, http.StatusFound)
	default:
		return false
	}
	return true
}

func (r *rig) serveMCP(w http.ResponseWriter, req *http.Request) {
	if r.common(w, req) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if path, ok := strings.CutPrefix(req.URL.Path, wellKnownResource); ok {
		if doc := r.resource[path]; doc != nil {
			reply(w, 200, doc)
		} else {
			http.NotFound(w, req)
		}
		return
	}
	token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !r.valid[token] {
		challenge := "Bearer"
		for name, value := range map[string]string{"scope": r.scope, "resource_metadata": r.named} {
			if value != "" {
				challenge += " " + name + `="` + value + `",`
			}
		}
		w.Header().Set("WWW-Authenticate", strings.TrimSuffix(challenge, ","))
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	r.seen = append(r.seen, req)
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.WriteHeader(max(r.status, 200))
	body, _ := io.ReadAll(req.Body)
	w.Write(body)
}

func (r *rig) serveLogin(w http.ResponseWriter, req *http.Request) {
	if r.common(w, req) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch req.URL.Path {
	case "/.well-known/oauth-authorization-server":
		reply(w, 200, r.meta)
	case "/register":
		var in map[string]any
		json.NewDecoder(req.Body).Decode(&in)
		r.made++
		in["client_id"] = "client-" + string(rune('0'+r.made))
		reply(w, 201, in)
	case "/authorize":
		q := req.URL.Query()
		r.query = q
		code := "code-" + rand.Text()
		r.codes[code] = q
		back := url.Values{"code": {code}, "state": {q.Get("state")}}
		if r.answer != nil {
			r.answer(back)
		}
		http.Redirect(w, req, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	case "/token":
		req.ParseForm()
		if id, secret, ok := req.BasicAuth(); ok {
			r.basic = id + ":" + secret
			req.PostForm.Set("client_id", id)
		}
		r.asked = append(r.asked, req.PostForm)
		give := r.grant
		if r.token != nil {
			give = r.token
		}
		status, doc := give(req.PostForm)
		reply(w, status, doc)
	case "/revoke":
		req.ParseForm()
		delete(r.refresh, req.PostForm.Get("token"))
		w.WriteHeader(200)
	default:
		http.NotFound(w, req)
	}
}

// grant is an honest token endpoint: PKCE checked, the resource the one that was authorized, refresh tokens rotated.
func (r *rig) grant(form url.Values) (int, any) {
	refused := map[string]any{"error": "invalid_grant"}
	switch form.Get("grant_type") {
	case "authorization_code":
		q := r.codes[form.Get("code")]
		delete(r.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if q == nil || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || q.Get("code_challenge_method") != "S256" ||
			q.Get("resource") != form.Get("resource") || q.Get("redirect_uri") != form.Get("redirect_uri") || q.Get("client_id") != form.Get("client_id") {
			return 400, refused
		}
	case "refresh_token":
		if !r.refresh[form.Get("refresh_token")] || form.Get("resource") == "" {
			return 400, refused
		}
		delete(r.refresh, form.Get("refresh_token"))
	default:
		return 400, map[string]any{"error": "unsupported_grant_type"}
	}
	access, refresh := "SECRET-access-"+rand.Text(), "SECRET-refresh-"+rand.Text()
	r.valid[access], r.refresh[refresh] = true, true
	return 200, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh, "scope": "read"}
}

func reply(w http.ResponseWriter, status int, doc any) {
	data, ok := doc.([]byte)
	if !ok {
		data, _ = json.Marshal(doc)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data)
}

// browserTransport is how a person's browser reaches the rig: by names that are on this machine.
func browserTransport(r *rig) *http.Transport {
	return &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: r.roots}, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(addr)
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
		},
	}
}

// browser opens an address, and gives what it ends at.
func (r *rig) browser(address string) (*http.Response, error) {
	client := &http.Client{Timeout: time.Minute, Transport: browserTransport(r)}
	resp, err := client.Get(address)
	if err == nil {
		resp.Body.Close()
	}
	return resp, err
}

// signIn has the person sign in with the scripted browser.
func (r *rig) signIn(a *Account) (Status, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	return a.SignIn(ctx, false, func(req Request) error {
		go func() {
			if resp, err := r.browser(req.Address); err != nil || resp.StatusCode != 200 {
				cancel() // the answer was not taken: nothing to wait for
			}
		}()
		return nil
	})
}

func (r *rig) mustSignIn(a *Account) Status {
	r.t.Helper()
	st, err := r.signIn(a)
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

// call sends one request to the protected server through the account.
func (r *rig) call(rt http.RoundTripper) (int, error) {
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.mcp, strings.NewReader("hello"))
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		noSecret(r.t, err.Error())
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode == 200 && string(body) != "hello" {
		r.t.Errorf("the body that arrived: %q", body)
	}
	return resp.StatusCode, err
}

func noSecret(t *testing.T, text string) {
	t.Helper()
	for _, planted := range []string{"SECRET-", "code-", "code_verifier"} {
		if strings.Contains(text, planted) {
			t.Errorf("an error holds a secret: %s", text)
		}
	}
}

// kept gives what the token file holds, "" if there is none.
func (r *rig) kept() string {
	paths, _ := filepath.Glob(filepath.Join(r.dir, "crm-*.json"))
	if len(paths) == 0 {
		return ""
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}
