package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// signInTime bounds how long a person may take.
const signInTime = 10 * time.Minute

var discard = log.New(io.Discard, "", 0)

// Request is what a person is asked to do. All texts in it can be shown: they are checked, and hold nothing but printable characters.
type Request struct {
	Address  string // to open in a browser
	Host     string // of that address: where they will sign in
	Server   string
	Resource string   // what the token will count for
	Issuer   string   // the authorization server
	Before   string   // the one that was signed in at before, if it is another
	Scopes   []string // what is asked for; empty: the authorization server's default
	Redirect string   // where the browser comes back to
	// Paste takes the address at which a browser on another machine ended, if Redirect cannot be reached from there.
	Paste func(address string) error
}

// SignIn has a person sign in, and keeps the tokens. tell is called once, with the address to open; SignIn then waits for the answer
// until ctx ends or ten minutes have passed. With lacking, it also asks for the scopes that the server has since refused calls for.
func (a *Account) SignIn(ctx context.Context, lacking bool, tell func(Request) error) (Status, error) {
	kept, err := a.record()
	if err != nil {
		return Status{}, err
	}
	f, err := a.discover(ctx)
	if err != nil {
		return Status{}, err
	}
	cb, known, err := a.listen(kept, f)
	if err != nil {
		return Status{}, err
	}
	defer cb.close()
	c, err := a.identify(ctx, f, known, cb.redirect)
	if err != nil {
		return Status{}, err
	}
	secret, err := a.secret(c)
	if err != nil {
		return Status{}, err
	}
	scopes := slices.Clone(a.opt.Scopes)
	if len(scopes) == 0 {
		scopes = wanted(f)
	}
	if lacking && kept != nil {
		scopes = union(scopes, kept.Scopes, kept.Lacking)
	}
	verifier := oauth2.GenerateVerifier()
	request, err := a.request(f, c, cb, scopes, verifier)
	if err != nil {
		return Status{}, err
	}
	if kept != nil && !sameIssuer(kept.Issuer, f.meta.Issuer) {
		request.Before = kept.Issuer
	}
	if err := tell(request); err != nil {
		return Status{}, err
	}
	code, err := wait(ctx, cb, f)
	if err != nil {
		return Status{}, err
	}
	slot, err := a.store.open(ctx)
	if err != nil {
		return Status{}, err
	}
	defer slot.close()
	g, err := a.ask(ctx, f.meta.TokenEndpoint, c, secret, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {cb.redirect}, "resource": {f.resource},
	})
	if err != nil {
		return Status{}, err
	}
	rec := &record{
		Server: a.opt.Server, URL: a.opt.URL, Resource: f.resource, Issuer: f.meta.Issuer, Client: c, Since: a.now(),
		TokenEndpoint: f.meta.TokenEndpoint, RevocationEndpoint: f.meta.RevocationEndpoint, Scopes: scopes,
	}
	rec.take(g, a.now())
	if err := slot.save(rec); err != nil {
		return Status{}, err
	}
	return a.Status()
}

// listen waits at the address that a kept registration was made with, if it can; otherwise known is nil.
func (a *Account) listen(kept *record, f *found) (cb *callback, known *client, err error) {
	state := rand.Text()
	if kept != nil && kept.Client.Dynamic && sameIssuer(kept.Issuer, f.meta.Issuer) {
		if u, err := url.Parse(kept.Client.Redirect); err == nil {
			port, _ := strconv.ParseUint(u.Port(), 10, 16)
			if a.opt.RedirectPort == 0 || uint16(port) == a.opt.RedirectPort {
				if cb, err := listen(uint16(port), state); err == nil {
					return cb, &kept.Client, nil
				}
			}
		}
	}
	cb, err = listen(a.opt.RedirectPort, state)
	return cb, nil, err
}

// wanted are the scopes that the server asks for, and the one that a renewal needs where there is such a one.
func wanted(f *found) []string {
	if slices.Contains(f.meta.ScopesSupported, "offline_access") {
		return union(f.scopes, []string{"offline_access"})
	}
	return f.scopes
}

func union(lists ...[]string) []string {
	var all []string
	for _, s := range slices.Concat(lists...) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// ours are the parameters of the request. An endpoint that already has one could change what the person agrees to.
var ours = []string{"response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "resource", "request", "request_uri", "response_mode"}

func (a *Account) request(f *found, c client, cb *callback, scopes []string, verifier string) (Request, error) {
	u, err := parseEndpoint(f.meta.AuthorizationEndpoint)
	if err != nil {
		return Request{}, err
	}
	present, err := url.ParseQuery(u.Query)
	if err != nil {
		return Request{}, errors.New("the authorization server's authorization_endpoint has a query that cannot be read")
	}
	for _, name := range ours {
		if present.Has(name) {
			return Request{}, fmt.Errorf("the authorization server's authorization_endpoint already has a %s", name)
		}
	}
	base := origin(u) + u.Path // the canonical spelling of the host, which cannot show another than it is
	if len(present) > 0 {
		base += "?" + present.Encode()
	}
	cfg := oauth2.Config{ClientID: c.ID, Endpoint: oauth2.Endpoint{AuthURL: base}, RedirectURL: cb.redirect, Scopes: scopes}
	address := cfg.AuthCodeURL(cb.state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", f.resource))
	if strings.ContainsFunc(address, unprintable) {
		return Request{}, errors.New("the authorization server's authorization_endpoint holds characters that an address spells otherwise")
	}
	return Request{
		Address: address, Host: u.Target.Host(), Server: a.opt.Server, Resource: visible(f.resource), Issuer: visible(f.meta.Issuer),
		Scopes: scopes, Redirect: cb.redirect, Paste: cb.paste,
	}, nil
}

// unprintable reports what an address never holds: everything but visible ASCII is percent-encoded.
func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// wait gives the code of the one answer.
func wait(ctx context.Context, cb *callback, f *found) (string, error) {
	timer := time.NewTimer(signInTime)
	defer timer.Stop()
	select {
	case q := <-cb.answers:
		return readAnswer(q, f)
	case err := <-cb.failed:
		return "", err
	case <-timer.C:
		return "", errors.New("nobody signed in within ten minutes")
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// readAnswer reads an answer that carries the state. The issuer in it is compared before anything else (RFC 9207 section 2.4): an
// answer of another authorization server brings a code of that one, which must not be sent to this one.
func readAnswer(q url.Values, f *found) (string, error) {
	switch iss := q.Get("iss"); {
	case q.Has("iss") && iss != f.meta.Issuer:
		return "", fmt.Errorf("the answer comes from the authorization server %s, and the sign-in was at %s", quoted(iss), quoted(f.meta.Issuer))
	case !q.Has("iss") && f.meta.AuthorizationResponseIssParameterSupported:
		return "", errors.New("the answer does not say which authorization server it comes from, as this one announces it would")
	}
	if code := q.Get("error"); code != "" {
		return "", newError(code, q.Get("error_description"))
	}
	if code := q.Get("code"); code != "" {
		return code, nil
	}
	return "", errors.New("the answer brings no code")
}

// SignOut takes the tokens back at the authorization server, where that offers it (RFC 7009), and forgets them here. revoked says
// whether the server agreed; an error after which they are still here says so.
func (a *Account) SignOut(ctx context.Context) (revoked bool, err error) {
	slot, err := a.store.open(ctx)
	if err != nil {
		return false, err
	}
	defer slot.close()
	rec, err := a.store.read()
	if err != nil {
		return false, err
	}
	if rec == nil {
		return false, ErrSignedOut
	}
	revoked = a.revoke(ctx, rec)
	return revoked, slot.remove()
}

// ErrSignedOut says that nothing is kept of an account.
var ErrSignedOut = errors.New("nobody is signed in")

// revoke takes the refresh token back, and with it what came from it; without one, the token itself.
func (a *Account) revoke(ctx context.Context, rec *record) bool {
	token, hint := rec.Refresh, "refresh_token"
	if token == "" {
		token, hint = rec.Access, "access_token"
	}
	if rec.RevocationEndpoint == "" || token == "" {
		return false
	}
	if _, err := parseEndpoint(rec.RevocationEndpoint); err != nil {
		return false
	}
	secret, err := a.secret(rec.Client)
	if err != nil {
		return false
	}
	req, err := postForm(ctx, rec.RevocationEndpoint, rec.Client, secret, url.Values{"token": {token}, "token_type_hint": {hint}})
	if err != nil {
		return false
	}
	status, _, err := a.web.status(req)
	return err == nil && status == 200
}
