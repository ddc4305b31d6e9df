package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// later lets an account see the clock of a later time.
func later(a *Account, d time.Duration) { a.now = func() time.Time { return time.Now().Add(d) } }

func TestATokenIsRenewedBeforeItExpires(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	rt := r.transport(a)
	before := r.kept()
	if status, err := r.call(rt); status != 200 || err != nil || len(r.asked) != 1 {
		t.Fatalf("a fresh token: %d, %v, %d token requests", status, err, len(r.asked))
	}
	later(a, time.Hour-10*time.Second)
	if status, err := r.call(rt); status != 200 || err != nil {
		t.Fatalf("%d, %v", status, err)
	}
	if len(r.asked) != 2 || r.asked[1].Get("grant_type") != "refresh_token" || r.asked[1].Get("resource") != r.mcp || r.kept() == before {
		t.Errorf("token requests: %v", r.asked)
	}
	if status, _ := r.call(rt); status != 200 || len(r.asked) != 2 {
		t.Errorf("the renewed token is used again: %d, %d token requests", status, len(r.asked))
	}
}

func TestARefusedTokenIsRenewedOnce(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	rt := r.transport(a)
	r.lock(func() { clear(r.valid) })
	if status, err := r.call(rt); status != 200 || err != nil || len(r.asked) != 2 {
		t.Fatalf("%d, %v, %d token requests", status, err, len(r.asked))
	}
	r.mustSignIn(a)
	r.lock(func() { clear(r.valid) })
	if status, err := r.call(rt); status != 200 || err != nil || len(r.asked) != 4 {
		t.Fatalf("again, with the token of a new sign-in: %d, %v, %d token requests", status, err, len(r.asked))
	}
	// A server that refuses everything does not have us ask without end.
	r.lock(func() { r.raw["/mcp"] = says(401, `{}`) })
	for range 5 {
		if _, err := r.call(rt); !isLogin(err) {
			t.Fatal(err)
		}
	}
	if len(r.asked) != 4 {
		t.Errorf("%d token requests", len(r.asked))
	}
	later(a, time.Minute)
	r.lock(func() { delete(r.raw, "/mcp") })
	if status, err := r.call(rt); status != 200 || err != nil {
		t.Errorf("when it takes tokens again: %d, %v", status, err)
	}
}

// A refusal whose body does not end holds nothing up.
func TestTheBodyOfARefusalIsNotWaitedFor(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	rt := r.transport(a)
	for name, refusal := range map[string]func(http.ResponseWriter, *http.Request){
		"stalled": func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(401)
			w.Write([]byte("{"))
			w.(http.Flusher).Flush()
			<-req.Context().Done() // the client has gone
		},
		"endless": func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(401)
			for line := make([]byte, 1<<16); ; {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		},
	} {
		later(a, 0)
		r.mustSignIn(a)
		first := true
		r.lock(func() {
			r.raw["/mcp"] = func(w http.ResponseWriter, req *http.Request) {
				r.mu.Lock()
				refuse := first
				first = false
				r.mu.Unlock()
				io.Copy(io.Discard, req.Body) // only then does a server hear that its client has gone
				if refuse {
					refusal(w, req)
					return
				}
				w.Write([]byte("hello"))
			}
		})
		if status, err := r.call(rt); status != 200 || err != nil {
			t.Errorf("%s: %d, %v", name, status, err)
		}
		r.lock(func() { delete(r.raw, "/mcp") })
	}
}

// Many sessions of many processes share one renewal; the new refresh token is on disk before the new access token is used.
func TestRenewalsAreShared(t *testing.T) {
	r := newRig(t)
	r.mustSignIn(r.account())
	kept := r.kept()
	r.lock(func() {
		honest := r.grant
		r.token = func(form url.Values) (int, any) {
			if form.Get("grant_type") == "refresh_token" && r.kept() != kept {
				t.Error("two renewals")
			}
			return honest(form)
		}
		r.raw["/mcp"] = func(w http.ResponseWriter, req *http.Request) {
			if token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "); !strings.Contains(r.kept(), token) {
				t.Error("a token is used that is not kept")
			}
			w.Write([]byte("hello"))
		}
	})
	var calls sync.WaitGroup
	for range 4 { // processes
		a := r.account()
		later(a, 2*time.Hour)
		rt := r.transport(a)
		for range 5 {
			calls.Go(func() {
				if status, err := r.call(rt); status != 200 || err != nil {
					t.Errorf("%d, %v", status, err)
				}
			})
		}
	}
	calls.Wait()
	if len(r.asked) != 2 {
		t.Errorf("%d token requests, want the code's and one renewal", len(r.asked))
	}
}

// A caller that gives up does not lose the refresh token that was spent for it.
func TestARenewalOutlivesItsCaller(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	later(a, 2*time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	arrived, release := make(chan struct{}), make(chan struct{})
	r.lock(func() {
		honest := r.grant
		r.raw["/token"] = func(w http.ResponseWriter, req *http.Request) {
			req.ParseForm()
			close(arrived)
			<-release
			r.lock(func() { delete(r.raw, "/token") })
			status, doc := honest(req.PostForm)
			reply(w, status, doc)
		}
	})
	done := make(chan error)
	go func() {
		_, err := a.token(ctx, "")
		done <- err
	}()
	<-arrived
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller: %v", err)
	}
	close(release)
	if status, err := r.call(r.transport(a)); status != 200 || err != nil {
		t.Errorf("the next one: %d, %v", status, err)
	}
	if n := len(r.refresh); n != 1 {
		t.Errorf("%d refresh tokens count", n)
	}
}

func TestWhatEndsASignIn(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*rig)
		want   string // in the error
		login  bool   // a person has to sign in
		kept   bool   // the refresh token is kept
	}{
		{"the grant was taken back", func(r *rig) { clear(r.refresh) }, "invalid_grant", true, false},
		{"the client is gone", func(r *rig) {
			r.token = func(url.Values) (int, any) { return 401, []byte(`{"error":"invalid_client"}`) }
		}, "invalid_client", true, false},
		{"the endpoint fails", func(r *rig) { r.token = func(url.Values) (int, any) { return 503, []byte(`{}`) } }, "status 503", false, true},
		{"the endpoint says something odd", func(r *rig) { r.token = gives(`{"access_token":[],"token_type":"Bearer"}`) }, "access_token", false, true},
		{"the endpoint redirects", func(r *rig) { r.redirect["/token"] = "https://evil.localhost/" }, "redirects", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			a := r.account()
			r.mustSignIn(a)
			r.lock(func() { tc.change(r) })
			later(a, 2*time.Hour)
			for range 2 {
				var told []error
				_, err := r.call(a.Transport(a.web.base, func(err error) { told = append(told, err) }))
				if err == nil || !strings.Contains(err.Error(), tc.want) || isLogin(err) != tc.login {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				var ours interface{ Refusal() string }
				if !errors.As(err, &ours) || strings.Contains(ours.Refusal(), tc.want) || len(told) != 1 || !strings.Contains(told[0].Error(), tc.want) {
					t.Errorf("the caller is told %v, the operator %v", ours, told)
				}
			}
			if has := strings.Contains(r.kept(), "SECRET-refresh"); has != tc.kept {
				t.Errorf("the refresh token is kept: %v", has)
			}
			if st, err := a.Status(); err != nil || st.SignedIn != tc.kept || !tc.kept && !strings.Contains(st.Why, tc.want) {
				t.Errorf("%+v, %v", st, err)
			}
			if !tc.kept {
				r.lock(func() { r.token = nil })
				later(a, 0)
				r.mustSignIn(a)
				if status, err := r.call(r.transport(a)); status != 200 || err != nil {
					t.Errorf("after the next sign-in: %d, %v", status, err)
				}
				if tc.want == "invalid_client" && r.made != 2 {
					t.Errorf("%d registrations", r.made)
				}
			}
		})
	}
}

// A wrong secret of the operator's ends nothing: with the right one the sign-in goes on.
func TestAWrongSecretEndsNothing(t *testing.T) {
	r := newRig(t)
	secret := "SECRET-right"
	a := r.account(func(o *Options) {
		o.Issuer, o.ClientID = r.login, "ours"
		o.ClientSecret = func() (broker.Secret, error) { return broker.NewSecret([]byte(secret)) }
	})
	r.mustSignIn(a)
	honest := r.grant
	r.lock(func() {
		r.token = func(form url.Values) (int, any) {
			if r.basic != "ours:SECRET-right" {
				return 401, []byte(`{"error":"invalid_client"}`)
			}
			return honest(form)
		}
	})
	later(a, 2*time.Hour)
	secret = "SECRET-wrong"
	if _, err := r.call(r.transport(a)); err == nil || isLogin(err) || !strings.Contains(err.Error(), "invalid_client") {
		t.Errorf("%v", err)
	}
	secret = "SECRET-right"
	if status, err := r.call(r.transport(a)); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

// While a token still counts, a renewal that fails harms nobody.
func TestAnEarlyRenewalMayFail(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	r.lock(func() { r.token = func(url.Values) (int, any) { return 503, []byte(`{}`) } })
	later(a, time.Hour-10*time.Second)
	if status, err := r.call(r.transport(a)); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

func TestTheServerWantsMoreScopes(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	var told []error
	rt := a.Transport(a.web.base, func(err error) { told = append(told, err) })
	r.lock(func() {
		r.status, r.header = 403, http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="read write;$(id)"`}}
	})
	_, err := r.call(rt)
	if !isLogin(err) || !strings.Contains(err.Error(), `"read write;$(id)"`) || !strings.HasSuffix(err.Error(), "hearsay login crm --lacking") {
		t.Errorf("%v", err)
	}
	if login := (*LoginError)(nil); errors.As(err, &login) && strings.Contains(login.Refusal(), "read") {
		t.Errorf("a word of the server's in what its caller is told as ours: %s", login.Refusal())
	}
	if len(told) != 1 || len(r.asked) != 1 {
		t.Errorf("told %v; %d token requests: no step-up without a person", told, len(r.asked))
	}
	if st, _ := a.Status(); !st.SignedIn || strings.Join(st.Lacking, " ") != "read write;$(id)" {
		t.Errorf("%+v", st)
	}
	r.lock(func() { r.status, r.header = 403, http.Header{} })
	if status, err := r.call(rt); status != 403 || err != nil {
		t.Errorf("a refusal that is not about scopes: %d, %v", status, err)
	}
	refuses := func(params string) {
		r.lock(func() { r.header = http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", ` + params}} })
	}
	refuses(`scope="` + strings.Repeat("a ", maxLacking+1) + `"`)
	if _, err := r.call(rt); !isLogin(err) || strings.Contains(err.Error(), "a a") {
		t.Errorf("more scopes than are shown: %v", err)
	}
	refuses(`x="` + strings.Repeat("a", maxChallenge) + `"`)
	if status, err := r.call(rt); status != 403 || err != nil {
		t.Errorf("a challenge too long to be read: %d, %v", status, err)
	}
	r.lock(func() { r.status, r.header = 0, http.Header{} })
	r.mustSignIn(a)
	if got := r.query.Get("scope"); got != "read" {
		t.Errorf("a sign-in asks for what a server merely said: %s", got)
	}
	r.lock(func() {
		r.status, r.header = 403, http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="write"`}}
	})
	r.call(rt)
	stop := errors.New("enough")
	if _, err := a.SignIn(t.Context(), true, func(req Request) error {
		if strings.Join(req.Scopes, " ") != "read write" {
			t.Errorf("asked for: %v", req.Scopes)
		}
		return stop
	}); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// A refusal may name what it refuses, and a server may send back what it was sent.
func TestNoErrorRepeatsASecret(t *testing.T) {
	r := newRig(t)
	a := r.account()
	repeats := func(form url.Values) (int, any) {
		said := form.Get("code") + " " + form.Get("refresh_token") + " " + form.Get("code_verifier") + " " + url.QueryEscape(form.Get("refresh_token"))
		return 400, map[string]any{"error": "invalid_grant", "error_description": "unknown: " + said}
	}
	r.lock(func() { r.token = repeats })
	if _, err := r.signIn(a); err == nil || !strings.Contains(err.Error(), "unknown: (a secret)") {
		t.Error(err)
	} else {
		noSecret(t, err.Error())
		noSecret(t, strings.ReplaceAll(err.Error(), r.asked[0].Get("code_verifier"), "SECRET-verifier"))
	}
	r.lock(func() { r.token = nil })
	r.mustSignIn(a)
	r.lock(func() {
		r.raw["/mcp"] = func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="read `+strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")+`"`)
			w.WriteHeader(403)
		}
	})
	if _, err := r.call(r.transport(a)); !isLogin(err) { // call looks for secrets in it
		t.Error(err)
	}
	if st, err := a.Status(); err != nil || st.Lacking != nil {
		t.Errorf("%+v, %v", st, err)
	}
	r.lock(func() { r.token = repeats })
	later(a, 2*time.Hour)
	if _, err := r.call(r.transport(a)); !isLogin(err) {
		t.Error(err)
	}
	if st, err := a.Status(); err != nil || !strings.Contains(st.Why, "unknown: ") {
		t.Errorf("%+v, %v", st, err)
	} else {
		noSecret(t, st.Why)
	}
}

func TestTheTokenGoesToItsServerAlone(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	rt := r.transport(a)
	sent := 0
	spy := a.Transport(roundTrip(func(*http.Request) (*http.Response, error) { sent++; return nil, errors.New("sent") }), nil)
	for _, at := range []string{
		r.login + "/mcp", strings.Replace(r.mcp, "https", "http", 1), "https://evil.localhost/mcp", strings.Replace(r.mcp, "mcp.localhost", "mcp.localhost.evil.example", 1),
		"https://mcp.localhost/mcp", strings.Replace(r.mcp, "//", "//mcp.localhost@evil.example/", 1),
	} {
		req, err := http.NewRequest(http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spy.RoundTrip(req); err == nil || sent != 0 {
			t.Errorf("%s: %v, sent %d", at, err, sent)
		}
	}
	req, _ := http.NewRequest(http.MethodGet, r.mcp, nil)
	req.Host = "evil.example"
	if _, err := spy.RoundTrip(req); err == nil || sent != 0 {
		t.Errorf("another Host: %v, sent %d", err, sent)
	}
	r.lock(func() { r.redirect["/mcp"] = r.login + "/collect" })
	if status, err := r.call(rt); status != 302 || err != nil {
		t.Errorf("a redirect: %d, %v", status, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheFileIsThePersonsAlone(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	rt := r.transport(a)
	r.call(rt)
	paths, _ := filepath.Glob(filepath.Join(r.dir, "crm-*.json"))
	path := paths[0]
	refused := func(want string) {
		t.Helper()
		for _, account := range []*Account{a, r.account()} {
			if _, err := r.call(r.transport(account)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if _, err := account.Status(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the status: %v, want %q", err, want)
			}
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	refused("others may open it (mode 0640)")
	os.Chmod(path, 0o600)
	if status, err := r.call(rt); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	elsewhere := filepath.Join(t.TempDir(), "tokens")
	if err := os.Rename(path, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	refused("is a link")
	os.Remove(path)
	for _, text := range []string{"", "{", `{"version":2}`, "[]"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refused("cannot be read as tokens")
	}
	os.Remove(path)
	os.Chmod(r.dir, 0o755)
	if _, err := r.signIn(a); err == nil || !strings.Contains(err.Error(), "others may open it") {
		t.Errorf("a folder that others can list: %v", err)
	}
}

// The endpoint that was kept is judged again.
func TestARenewalGoesNowhereElse(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	for endpoint, want := range map[string]string{"http://login.example/token": "not https", "https://evil.localhost/token": "inward"} {
		if err := os.WriteFile(a.store.path, []byte(strings.Replace(r.kept(), r.meta["token_endpoint"].(string), endpoint, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		later(a, 2*time.Hour)
		if _, err := r.call(r.transport(a)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", endpoint, err)
		}
		later(a, 0)
		r.mustSignIn(a)
	}
}

// Tokens of one address, issuer or client are not used for another of the same name.
func TestTokensBelongToWhatTheyWereGivenFor(t *testing.T) {
	r := newRig(t)
	r.mustSignIn(r.account())
	other := r.account(func(o *Options) { o.URL += "/copied" })
	if err := os.WriteFile(other.store.path, []byte(r.kept()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := other.token(t.Context(), ""); !isLogin(err) {
		t.Errorf("a copied file: %v", err)
	}
	os.Remove(other.store.path)
	for name, change := range map[string]func(*Options){
		"another address": func(o *Options) { o.URL += "/other" },
		"another server":  func(o *Options) { o.Server = "other" },
		"another issuer":  func(o *Options) { o.Issuer = "https://login.example" },
		"another client":  func(o *Options) { o.ClientID = "other" },
		"a client document": func(o *Options) {
			o.ClientMetadata = "https://ann.example/client.json"
		},
	} {
		if _, err := r.account(change).token(t.Context(), ""); !isLogin(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
