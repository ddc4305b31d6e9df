package oauth

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

func TestAPersonSignsIn(t *testing.T) {
	r := newRig(t)
	a := r.account()
	if _, err := r.call(r.transport(a)); !isLogin(err) || !strings.Contains(err.Error(), "hearsay login crm") {
		t.Errorf("before anybody signed in: %v", err)
	}
	var shown Request
	st, err := a.SignIn(t.Context(), false, func(req Request) error {
		shown = req
		go r.browser(req.Address)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !st.SignedIn || !st.Renewable || st.Issuer != r.login || strings.Join(st.Scopes, " ") != "read" {
		t.Errorf("%+v", st)
	}
	if shown.Host != "login.localhost" || shown.Resource != r.mcp || shown.Issuer != r.login || shown.Scopes[0] != "read" || !strings.HasPrefix(shown.Redirect, "http://127.0.0.1:") {
		t.Errorf("what the person sees: %+v", shown)
	}
	if got := r.asked[0]; got.Get("resource") != r.mcp || len(got.Get("code_verifier")) < 43 || got.Get("client_secret") != "" {
		t.Errorf("the token request: %v", got)
	}
	if status, err := r.call(r.transport(a)); status != 200 || err != nil {
		t.Errorf("a call: %d, %v", status, err)
	}
	paths, _ := filepath.Glob(filepath.Join(r.dir, "crm-*.json"))
	if info, err := os.Stat(paths[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "."+filepath.Base(paths[0])+".new-1"), []byte("left by a process that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}

	// The next sign-in uses the registration and its port again; one whose port is taken registers anew.
	r.mustSignIn(a)
	if same := r.query.Get("redirect_uri") == shown.Redirect; same != (r.made == 1) {
		t.Errorf("%d registrations; the same address: %v", r.made, same)
	}
	made := r.made
	back, _ := url.Parse(r.query.Get("redirect_uri"))
	if ln, err := net.Listen("tcp4", back.Host); err == nil { // otherwise somebody else has it
		defer ln.Close()
	}
	r.mustSignIn(a)
	if r.made != made+1 || r.query.Get("redirect_uri") == back.String() {
		t.Errorf("its port is taken, and there are %d registrations", r.made)
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "*.new-*")); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	if revoked, err := a.SignOut(t.Context()); err != nil || !revoked || r.kept() != "" || len(r.refresh) != 2 {
		t.Errorf("signing out: %v, %v, refresh tokens that still count: %d", revoked, err, len(r.refresh))
	}
	if _, err := r.call(r.transport(a)); !isLogin(err) {
		t.Errorf("after signing out: %v", err)
	}
	if _, err := a.SignOut(t.Context()); !errors.Is(err, ErrSignedOut) {
		t.Errorf("signing out twice: %v", err)
	}
}

func isLogin(err error) bool {
	var login *LoginError
	return errors.As(err, &login)
}

// What a hostile or broken server or authorization server says ends the sign-in, before anybody is sent anywhere where that is possible.
func TestASignInIsRefused(t *testing.T) {
	doc := func(r *rig) map[string]any { return r.resource["/mcp"].(map[string]any) }
	tests := []struct {
		name   string
		change func(*rig)
		want   string
	}{
		{"the resource is another host", func(r *rig) { doc(r)["resource"] = "https://bank.example/mcp" }, "is about"},
		{"the resource is another path", func(r *rig) { doc(r)["resource"] = r.mcp + "2" }, "is about"},
		{"the resource is below", func(r *rig) { doc(r)["resource"] = r.mcp + "/more" }, "is about"},
		{"the resource is another port", func(r *rig) { doc(r)["resource"] = "https://mcp.localhost/mcp" }, "is about"},
		{"the resource is the whole host, said by one tenant", func(r *rig) { doc(r)["resource"] = strings.TrimSuffix(r.mcp, "/mcp") }, "is about"},
		{"the resource is not text", func(r *rig) { doc(r)["resource"] = 7 }, "is about"},
		{"no authorization servers", func(r *rig) { delete(doc(r), "authorization_servers") }, "names no authorization servers"},
		{"authorization servers that are no texts", func(r *rig) { doc(r)["authorization_servers"] = []any{map[string]any{}} }, "names no authorization servers"},
		{"more authorization servers than anybody has", func(r *rig) { doc(r)["authorization_servers"] = make([]string, 1000) }, "names no authorization servers"},
		{"metadata that redirects", func(r *rig) { r.redirect[wellKnownResource+"/mcp"] = "https://169.254.169.254/latest" }, "redirects are not followed"},
		{"a server that lets anybody in", func(r *rig) { r.raw["/mcp"] = says(200, `{}`); delete(r.resource, "/mcp") }, "asks for no sign-in (HTTP status 200)"},
		{"a server that redirects", func(r *rig) { r.redirect["/mcp"] = "https://evil.localhost/mcp" }, "redirects are not followed"},
		{"metadata without an end", func(r *rig) { r.raw[wellKnownResource+"/mcp"] = endless }, "larger than"},
		{"metadata that never comes", func(r *rig) { r.raw[wellKnownResource+"/mcp"] = never }, "no answer in time"},
		{"metadata with a name twice", func(r *rig) {
			r.resource["/mcp"] = []byte(`{"resource":"` + r.mcp + `","resource":"x","authorization_servers":["` + r.login + `"]}`)
		}, "twice"},
		{"metadata nested without end", func(r *rig) { r.resource["/mcp"] = []byte(strings.Repeat(`{"a":`, 1000)) }, "nested too deeply"},
		{"metadata that is a page", func(r *rig) {
			r.raw[wellKnownResource+"/mcp"] = func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }
		}, "not JSON"},
		{"an issuer on this machine", func(r *rig) { doc(r)["authorization_servers"] = []string{"https://evil.localhost:1"} }, "inward"},
		{"an issuer in the cloud's metadata", func(r *rig) { doc(r)["authorization_servers"] = []string{"https://169.254.169.254"} }, "non-public"},
		{"an issuer by an odd spelling of an address", func(r *rig) { doc(r)["authorization_servers"] = []string{"https://0x7f.1/"} }, "four decimal numbers"},
		{"an issuer over http", func(r *rig) { doc(r)["authorization_servers"] = []string{"http://login.example"} }, "is not https"},
		{"an issuer that is a script", func(r *rig) { doc(r)["authorization_servers"] = []string{"javascript:alert(1)"} }, "no https URL"},
		{"an issuer with a query", func(r *rig) { doc(r)["authorization_servers"] = []string{r.login + "?a=b"} }, "has a query"},
		{"another issuer's metadata", func(r *rig) { r.meta["issuer"] = "https://accounts.bank.example" }, "does not match"},
		{"metadata of the issuer that redirects", func(r *rig) { r.redirect["/.well-known/oauth-authorization-server"] = r.login + "/other" }, "redirects are not followed"},
		{"no metadata of the issuer", func(r *rig) {
			r.raw["/.well-known/oauth-authorization-server"] = http.NotFound
		}, "publishes no metadata"},
		{"no PKCE", func(r *rig) { delete(r.meta, "code_challenge_methods_supported") }, "PKCE"},
		{"PKCE without a hash", func(r *rig) { r.meta["code_challenge_methods_supported"] = []string{"plain"} }, "PKCE"},
		{"no code flow", func(r *rig) { r.meta["response_types_supported"] = []string{"token"} }, "code flow"},
		{"a script to open", func(r *rig) { r.meta["authorization_endpoint"] = "javascript:alert(document.cookie)" }, "disallowed scheme"},
		{"a file to open", func(r *rig) { r.meta["authorization_endpoint"] = "file:///etc/passwd" }, "authorization_endpoint"},
		{"a page over http to open", func(r *rig) { r.meta["authorization_endpoint"] = "http://login.example/" }, "HTTPS"},
		{"a page inside the network to open", func(r *rig) { r.meta["authorization_endpoint"] = "https://evil.localhost/reboot" }, "inward"},
		{"an address to open with another host for some readers", func(r *rig) { r.meta["authorization_endpoint"] = `https://login.example\@evil.example/` }, "invalid userinfo"},
		{"an address to open with a user", func(r *rig) { r.meta["authorization_endpoint"] = "https://login.example@evil.example/" }, "stands before an @"},
		{"an address to open with a redirect of its own", func(r *rig) {
			r.meta["authorization_endpoint"] = r.login + "/authorize?redirect_uri=https://evil.example"
		}, "already has a redirect_uri"},
		{"an address to open with invisible text", func(r *rig) { r.meta["authorization_endpoint"] = r.login + "/a\u202eb" }, "spells otherwise"},
		{"no token endpoint", func(r *rig) { delete(r.meta, "token_endpoint") }, "token_endpoint"},
		{"a token endpoint on this machine", func(r *rig) { r.meta["token_endpoint"] = "https://evil.localhost/token" }, "inward"},
		{"a token endpoint in the network", func(r *rig) { r.meta["token_endpoint"] = "https://10.0.0.1/token" }, "non-public"},
		{"a token endpoint in the cloud's metadata", func(r *rig) { r.meta["token_endpoint"] = "https://[fd00:ec2::254]/token" }, "token_endpoint"},
		{"a revocation endpoint on this machine", func(r *rig) { r.meta["revocation_endpoint"] = "https://evil.localhost/" }, "inward"},
		{"no registration and no client", func(r *rig) { delete(r.meta, "registration_endpoint") }, "register one there"},
		{"a registration that redirects", func(r *rig) { r.redirect["/register"] = r.login + "/token" }, "redirects are not followed"},
		{"a registration without an id", func(r *rig) { r.raw["/register"] = says(201, `{"redirect_uris":[]}`) }, "client_id"},
		{"a registration with a header in its id", func(r *rig) { r.raw["/register"] = says(201, `{"client_id":"a\r\nX: y"}`) }, "cannot be used"},
		{"a registration that wants keys", func(r *rig) {
			r.raw["/register"] = says(201, `{"client_id":"a","token_endpoint_auth_method":"private_key_jwt"}`)
		}, "private_key_jwt"},
		{"a registration without the secret it wants", func(r *rig) {
			r.raw["/register"] = says(201, `{"client_id":"a","token_endpoint_auth_method":"client_secret_post"}`)
		}, "no secret"},
		{"a registration that is refused with escapes", func(r *rig) {
			r.raw["/register"] = says(400, `{"error":"x\u001b]0;y\u0007","error_description":"\u001b[2J`+strings.Repeat("a", 5000)+`"}`)
		}, `x\u001b]0;y\u0007: "\x1b[2J`},
		{"scopes that break out", func(r *rig) { r.scope = `read \"; $(id)` }, "is no scope"},
		{"more scopes than anybody has", func(r *rig) { r.scope = strings.Repeat("a ", 200) }, "scopes"},
		{"a challenge that breaks its own form, and no metadata", func(r *rig) {
			r.named = `x" , , =`
			delete(r.resource, "/mcp")
		}, "no metadata"},

		{"an answer of another issuer", func(r *rig) { r.answer = set("iss", "https://evil.example") }, "and the sign-in was at"},
		{"an answer with an empty issuer", func(r *rig) { r.answer = set("iss", "") }, "and the sign-in was at"},
		{"an answer of the same issuer in another spelling", func(r *rig) { r.answer = set("iss", r.login+"/") }, "and the sign-in was at"},
		{"an answer without the announced issuer", func(r *rig) { r.meta["authorization_response_iss_parameter_supported"] = true }, "does not say which authorization server"},
		{"an answer that refuses, in escapes", func(r *rig) {
			r.answer = func(v url.Values) {
				v.Del("code")
				v.Set("error", "access_denied")
				v.Set("error_description", "no\x1b[31m")
			}
		}, `access_denied: "no\x1b[31m"`},
		{"an answer without a code", func(r *rig) { r.answer = func(v url.Values) { v.Del("code") } }, "no code"},
		{"a code that is not ours", func(r *rig) { r.answer = set("code", "stolen") }, "invalid_grant"},

		{"a token of another type", func(r *rig) { r.token = gives(`{"access_token":"SECRET-a","token_type":"mac"}`) }, "bearer"},
		{"a token without a type", func(r *rig) { r.token = gives(`{"access_token":"SECRET-a"}`) }, "bearer"},
		{"a token that is a number", func(r *rig) { r.token = gives(`{"access_token":7,"token_type":"Bearer"}`) }, "access_token"},
		{"a token that is an object", func(r *rig) { r.token = gives(`{"access_token":{"a":"b"},"token_type":"Bearer"}`) }, "access_token"},
		{"a token that is null", func(r *rig) { r.token = gives(`{"access_token":null,"token_type":"Bearer"}`) }, "access_token"},
		{"a token with a header in it", func(r *rig) { r.token = gives(`{"access_token":"SECRET-a\r\nX: y","token_type":"Bearer"}`) }, "access_token"},
		{"a token with a line end", func(r *rig) { r.token = gives(`{"access_token":"SECRET-a\n","token_type":"Bearer"}`) }, "access_token"},
		{"a token of a megabyte", func(r *rig) {
			r.token = gives(`{"access_token":"` + strings.Repeat("a", 100<<10) + `","token_type":"Bearer"}`)
		}, "access_token"},
		{"two tokens", func(r *rig) {
			r.token = gives(`{"access_token":"SECRET-a","access_token":"SECRET-b","token_type":"Bearer"}`)
		}, "twice"},
		{"a refresh token that is a list", func(r *rig) {
			r.token = gives(`{"access_token":"SECRET-a","token_type":"Bearer","refresh_token":["b"]}`)
		}, "refresh_token"},
		{"a life below zero", func(r *rig) { r.token = gives(`{"access_token":"SECRET-a","token_type":"Bearer","expires_in":-1}`) }, "expires_in"},
		{"a life that is no number", func(r *rig) { r.token = gives(`{"access_token":"SECRET-a","token_type":"Bearer","expires_in":"soon"}`) }, "expires_in"},
		{"a life that is true", func(r *rig) { r.token = gives(`{"access_token":"SECRET-a","token_type":"Bearer","expires_in":true}`) }, "expires_in"},
		{"a scope that is a list", func(r *rig) { r.token = gives(`{"access_token":"SECRET-a","token_type":"Bearer","scope":["a"]}`) }, "scope"},
		{"a list instead of an object", func(r *rig) { r.token = gives(`["SECRET-a"]`) }, "access_token"},
		{"a token endpoint that redirects", func(r *rig) { r.redirect["/token"] = "https://evil.localhost/" }, "redirects are not followed"},
		{"a token endpoint that fails", func(r *rig) {
			r.token = func(url.Values) (int, any) { return 500, []byte(`{"SECRET-":"body"}`) }
		}, "status 500"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tc.change(r)
			a := r.account()
			if strings.Contains(tc.want, "in time") {
				a.web.client.Timeout = 50 * time.Millisecond
			}
			sent := false
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := a.SignIn(ctx, false, func(req Request) error {
				sent = true
				go r.browser(req.Address)
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if late := r.answer != nil || r.token != nil || r.redirect["/token"] != "" || r.meta["authorization_response_iss_parameter_supported"] != nil; sent != late {
				t.Errorf("a person was sent there: %v", sent)
			}
			noSecret(t, err.Error())
			if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x1b\x07\r\n") {
				t.Errorf("%d bytes, or not for a terminal: %q", len(err.Error()), err)
			}
			if r.kept() != "" {
				t.Error("something is kept")
			}
		})
	}
}

func set(name, value string) func(url.Values) {
	return func(v url.Values) { v.Set(name, value) }
}

func gives(doc string) func(url.Values) (int, any) {
	return func(url.Values) (int, any) { return 200, []byte(doc) }
}

func says(status int, doc string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { reply(w, status, []byte(doc)) }
}

func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for line := []byte(strings.Repeat(" ", 1<<16)); ; {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

func never(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(200)
	w.Write([]byte("{"))
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// Forms that honest servers use.
func TestASignInSucceeds(t *testing.T) {
	doc := func(r *rig) map[string]any { return r.resource["/mcp"].(map[string]any) }
	tests := []struct {
		name   string
		change func(*rig)
		option func(*Options)
		check  func(*testing.T, *rig, Status)
	}{
		{"the server lets anybody in, and has metadata", func(r *rig) { r.raw["/mcp"] = says(200, `{}`) }, nil, nil},
		{"the challenge names the metadata", func(r *rig) {
			r.resource["/other"] = doc(r)
			delete(r.resource, "/mcp")
			r.named = strings.TrimSuffix(r.mcp, "/mcp") + wellKnownResource + "/other"
		}, nil, nil},
		{"the challenge names another host, which is not asked", func(r *rig) { r.named = "https://evil.localhost:1/" }, nil, nil},
		{"the challenge's scopes come first", func(r *rig) { r.scope = "a b" }, nil, func(t *testing.T, r *rig, _ Status) {
			if got := r.query.Get("scope"); got != "a b" {
				t.Error(got)
			}
		}},
		{"the operator's scopes are all", func(r *rig) { r.scope = "a b" }, func(o *Options) { o.Scopes = []string{"c"} }, func(t *testing.T, r *rig, _ Status) {
			if got := r.query.Get("scope"); got != "c" {
				t.Error(got)
			}
		}},
		{"no scope where nobody names one", func(r *rig) { delete(doc(r), "scopes_supported") }, nil, func(t *testing.T, r *rig, _ Status) {
			if r.query.Has("scope") {
				t.Error(r.query)
			}
		}},
		{"a scope for renewals", func(r *rig) { r.meta["scopes_supported"] = []string{"offline_access", "x"} }, nil, func(t *testing.T, r *rig, _ Status) {
			if got := r.query.Get("scope"); got != "read offline_access" {
				t.Error(got)
			}
		}},
		{"the resource of the whole host, at its own place", func(r *rig) {
			root := doc(r)
			root["resource"] = strings.TrimSuffix(r.mcp, "/mcp")
			delete(r.resource, "/mcp")
			r.resource[""] = root
		}, nil, func(t *testing.T, r *rig, _ Status) {
			if got := r.query.Get("resource"); got != strings.TrimSuffix(r.mcp, "/mcp") {
				t.Error(got)
			}
		}},
		{"a resource with a slash behind it", func(r *rig) { doc(r)["resource"] = r.mcp + "/" }, nil, nil},
		{"a server from before there was such metadata", func(r *rig) {
			delete(r.resource, "/mcp")
			own := strings.TrimSuffix(r.mcp, "/mcp")
			r.meta["issuer"] = own
			r.raw["/.well-known/oauth-authorization-server"] = func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, r.meta) }
		}, nil, nil},
		{"OpenID's metadata", func(r *rig) {
			r.raw["/.well-known/oauth-authorization-server"] = http.NotFound
			r.raw["/.well-known/openid-configuration"] = func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, r.meta) }
		}, nil, nil},
		{"the operator's issuer among several", func(r *rig) { doc(r)["authorization_servers"] = []string{"https://evil.localhost", r.login} }, func(o *Options) { o.Issuer = "" }, nil},
		{"an announced issuer in the answer", func(r *rig) {
			r.meta["authorization_response_iss_parameter_supported"] = true
			r.answer = set("iss", r.login)
		}, nil, nil},
		{"a right issuer that was not announced", func(r *rig) { r.answer = set("iss", r.login) }, nil, nil},
		{"a client of the operator's with a secret in the header", nil, func(o *Options) {
			o.ClientID, o.ClientSecret = "ours", func() (broker.Secret, error) { return broker.NewSecret([]byte("SECRET-client")) }
		}, func(t *testing.T, r *rig, st Status) {
			if r.made != 0 || st.Client != "ours" || r.basic != "ours:SECRET-client" {
				t.Error(r.made, st.Client, r.basic)
			}
		}},
		{"a client of the operator's with a secret in the form", func(r *rig) { r.meta["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"} }, func(o *Options) {
			o.ClientID, o.ClientSecret = "ours", func() (broker.Secret, error) { return broker.NewSecret([]byte("SECRET-client")) }
		}, func(t *testing.T, r *rig, _ Status) {
			if got := r.asked[0]; got.Get("client_secret") != "SECRET-client" || got.Get("client_id") != "ours" {
				t.Error(got)
			}
		}},
		{"a client metadata document", func(r *rig) { r.meta["client_id_metadata_document_supported"] = true }, func(o *Options) { o.ClientMetadata = "https://ann.example/client.json" }, func(t *testing.T, r *rig, st Status) {
			if r.made != 0 || st.Client != "https://ann.example/client.json" {
				t.Error(r.made, st.Client)
			}
		}},
		{"a registration with a secret", func(r *rig) {
			r.raw["/register"] = says(201, `{"client_id":"made","client_secret":"SECRET-made","client_secret_expires_at":0,"token_endpoint_auth_method":"client_secret_post"}`)
		}, nil, func(t *testing.T, r *rig, _ Status) {
			if got := r.asked[0]; got.Get("client_secret") != "SECRET-made" {
				t.Error(got)
			}
		}},
		{"a life in a text, no refresh token, no scope", func(r *rig) {
			r.token = gives(`{"access_token":"SECRET-a","token_type":"bearer","expires_in":"60","refresh_token":null,"scope":null}`)
		}, nil, func(t *testing.T, _ *rig, st Status) {
			if st.Renewable || st.Expires.IsZero() || strings.Join(st.Scopes, "") != "read" {
				t.Errorf("%+v", st)
			}
		}},
		{"a life without end", func(r *rig) { r.token = gives(`{"access_token":"SECRET-a","token_type":"bearer","expires_in":1e300}`) }, nil, func(t *testing.T, _ *rig, st Status) {
			if !st.SignedIn || st.Expires.Before(time.Now()) {
				t.Errorf("%+v", st)
			}
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if tc.change != nil {
				tc.change(r)
			}
			opt := func(o *Options) {
				if tc.name == "the operator's issuer among several" || strings.HasPrefix(tc.name, "a client of the operator's") {
					o.Issuer = r.login
				}
			}
			change := []func(*Options){}
			if tc.option != nil {
				change = append(change, tc.option)
			}
			st := r.mustSignIn(r.account(append(change, opt)...))
			if !st.SignedIn {
				t.Errorf("%+v", st)
			}
			if tc.check != nil {
				tc.check(t, r, st)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	secret := func() (broker.Secret, error) { return broker.Secret{}, nil }
	for name, tc := range map[string]struct {
		opt  Options
		want string
	}{
		"a server over http":               {Options{URL: "http://mcp.example/mcp"}, "not https"},
		"a secret without an issuer":       {Options{URL: "https://mcp.example/mcp", ClientID: "a", ClientSecret: secret}, "needs the client_id and the issuer"},
		"a secret without a client":        {Options{URL: "https://mcp.example/mcp", Issuer: "https://a.example", ClientSecret: secret}, "needs the client_id and the issuer"},
		"two clients":                      {Options{URL: "https://mcp.example/mcp", ClientID: "a", ClientMetadata: "https://a.example/b"}, "which is it"},
		"a client document without a path": {Options{URL: "https://mcp.example/mcp", ClientMetadata: "https://a.example"}, "with a path"},
		"a scope with a space":             {Options{URL: "https://mcp.example/mcp", Scopes: []string{"a b"}}, "is no scope"},
		"an issuer over http":              {Options{URL: "https://mcp.example/mcp", Issuer: "http://a.example"}, "not https"},
		"an issuer with a query":           {Options{URL: "https://mcp.example/mcp", Issuer: "https://a.example/?b"}, "query"},
	} {
		if _, err := New(tc.opt); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The authorization server that a person signed in at before is named when it is another now.
func TestAnotherAuthorizationServerIsNamed(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	r.lock(func() {
		r.meta["issuer"] = r.login + "/moved"
		r.resource["/mcp"].(map[string]any)["authorization_servers"] = []string{r.login + "/moved"}
		r.raw["/.well-known/oauth-authorization-server/moved"] = func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, r.meta) }
	})
	stop := errors.New("the person stops")
	_, err := a.SignIn(t.Context(), false, func(req Request) error {
		if req.Before != r.login {
			t.Errorf("before: %q", req.Before)
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if r.made != 2 {
		t.Errorf("%d registrations: a registration counts for one authorization server", r.made)
	}
}
