package oauth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	renewTime  = 60 * time.Second // a renewal with its wait for other processes
	forcedGap  = 30 * time.Second // before a renewed token that is refused too is renewed: a server that refuses everything must not have us ask without end
	maxLacking = 20               // scopes that one refusal names
)

// LoginError says that a person has to sign in.
type LoginError struct {
	Server string
	Why    string   // in words of our own
	Says   string   // in the other side's, cleaned and cut; "" for nothing
	Scopes []string // what the sign-in lacks, in the server's words; nil when it is not about scopes
}

// Error is the text for the operator.
func (e *LoginError) Error() string {
	if e.Says == "" {
		return e.Refusal()
	}
	return e.Why + ": " + e.Says + e.todo()
}

// Refusal is the text for the caller whose request was not sent on. No word of another side's is in it: it reaches a model as ours.
func (e *LoginError) Refusal() string { return e.Why + e.todo() }

func (e *LoginError) todo() string {
	if len(e.Scopes) == 0 {
		return "; a person has to run: hearsay login " + e.Server
	}
	return "; a person has to run: hearsay login " + e.Server + " --lacking" // which shows the scopes
}

// noToken says that no token can be had at the moment, for another reason than that a person has to sign in.
type noToken struct{ err error }

func (e noToken) Error() string { return e.err.Error() }
func (e noToken) Unwrap() error { return e.err }

// Refusal is as that of [LoginError].
func (e noToken) Refusal() string {
	return "the sign-in cannot be used at the moment; hearsay's own log says why"
}

// cache is the record as the file was when it was last looked at.
type cache struct {
	mu     sync.Mutex // guards all below
	rec    *record
	info   fs.FileInfo
	forced string    // the token of the last renewal that a refusal caused
	at     time.Time // when that was
}

// current gives the kept record, read again when the file has changed: a sign-out in another process counts at once. The caller
// does not change it.
func (a *Account) current() (*record, error) {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	info, err := os.Lstat(a.store.path)
	if err == nil && a.cache.info != nil && os.SameFile(info, a.cache.info) && info.ModTime().Equal(a.cache.info.ModTime()) && info.Mode() == a.cache.info.Mode() {
		return a.cache.rec, nil
	}
	rec, err := a.record()
	if err != nil {
		return nil, err
	}
	a.cache.rec, a.cache.info = rec, info
	return rec, nil
}

// token gives a token that may be used and is not the one refused, renewing it where that is due. All sessions of all processes share
// one renewal; it goes on when the caller that began it has gone, since the refresh token may be spent by then.
func (a *Account) token(ctx context.Context, refused string) (string, error) {
	rec, err := a.current()
	if err != nil {
		return "", err
	}
	if rec != nil && (rec.fresh(refused, a.now()) || rec.Refresh == "" && rec.usable(refused, a.now())) {
		return rec.Access, nil
	}
	done := a.renewals.DoChan(refused, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
		defer cancel()
		return a.renew(ctx, refused)
	})
	select {
	case r := <-done:
		if r.Err != nil {
			return "", r.Err
		}
		return r.Val.(string), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// renew exchanges the refresh token, saved before the new token is used, unless another process has done so meanwhile.
func (a *Account) renew(ctx context.Context, refused string) (string, error) {
	if rec, err := a.record(); err != nil {
		return "", err
	} else if rec == nil { // nothing to wait for
		return "", a.login("nobody is signed in")
	}
	slot, err := a.store.open(ctx)
	if err != nil {
		return "", err
	}
	defer slot.close()
	rec, err := a.record()
	switch {
	case err != nil:
		return "", err
	case rec == nil:
		return "", a.login("nobody is signed in")
	case rec.fresh(refused, a.now()):
		return rec.Access, nil
	case rec.Ended != "":
		return "", a.ended(rec)
	case rec.Refresh == "" && refused != "":
		return "", a.login("the server no longer takes the token, and it cannot be renewed")
	case rec.Refresh == "":
		return "", a.login("the sign-in has expired and cannot be renewed")
	case refused != "" && a.justForced(refused):
		return "", a.login("the server refuses a token that was renewed just now")
	}
	g, err := a.exchange(ctx, rec)
	var refusal *Error
	switch {
	case errors.As(err, &refusal) && refusal.final(rec.Client):
		rec.end(refusal)
		return "", errors.Join(slot.save(rec), a.ended(rec))
	case err != nil && rec.usable(refused, a.now()):
		return rec.Access, nil // it still counts; the next call tries again
	case err != nil:
		return "", fmt.Errorf("renewing the sign-in: %w", err)
	}
	rec.take(g, a.now())
	if err := slot.save(rec); err != nil {
		return "", err
	}
	if refused != "" {
		a.cache.mu.Lock()
		a.cache.forced, a.cache.at = rec.Access, a.now()
		a.cache.mu.Unlock()
	}
	return rec.Access, nil
}

func (a *Account) exchange(ctx context.Context, rec *record) (grant, error) {
	secret, err := a.secret(rec.Client)
	if err != nil {
		return grant{}, err
	}
	return a.ask(ctx, rec.TokenEndpoint, rec.Client, secret, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {rec.Refresh}, "resource": {rec.Resource}})
}

// justForced reports whether a token came from a renewal that a refusal caused only now.
func (a *Account) justForced(token string) bool {
	a.cache.mu.Lock()
	defer a.cache.mu.Unlock()
	return token == a.cache.forced && a.now().Sub(a.cache.at) < forcedGap
}

func (a *Account) login(why string) *LoginError { return &LoginError{Server: a.opt.Server, Why: why} }

func (a *Account) ended(rec *record) *LoginError {
	return &LoginError{Server: a.opt.Server, Why: "the sign-in has ended", Says: rec.Ended}
}

// Transport adds the account's token to requests to the server's own origin, over base, and refuses requests to any other. It follows
// no redirect. A request that the server refuses is sent once more with a renewed token; if that does not help, or more scopes are
// wanted, the error is a [*LoginError]. tell, if not nil, is called with that, and with any other reason for which no token can be had, for
// the operator's log.
func (a *Account) Transport(base http.RoundTripper, tell func(error)) http.RoundTripper {
	if tell == nil {
		tell = func(error) {}
	}
	return &bearer{account: a, base: base, tell: tell}
}

type bearer struct {
	account *Account
	base    http.RoundTripper
	tell    func(error)
}

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.send(req)
	var login *LoginError
	var none noToken
	switch {
	case errors.As(err, &login):
		b.tell(login)
		err = login
	case errors.As(err, &none) && req.Context().Err() == nil:
		b.tell(none)
	}
	return resp, err
}

func (b *bearer) send(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	at, err := parseEndpoint(req.URL.String())
	if err != nil || origin(at) != origin(b.account.server) || req.Host != "" && req.Host != req.URL.Host {
		return nil, errors.New("the sign-in is for another server than this request")
	}
	if req.Body != nil && req.GetBody == nil {
		return nil, errors.New("a request whose body cannot be sent twice")
	}
	refused := ""
	for {
		token, err := b.account.token(req.Context(), refused)
		if err != nil {
			return nil, noToken{err}
		}
		out := req.Clone(req.Context())
		if req.Body != nil {
			if out.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		out.Header.Set("Authorization", "Bearer "+token)
		resp, err := b.base.RoundTrip(out)
		if err != nil {
			return nil, err
		}
		challenge := bearerChallenge(resp.Header)
		switch { // an answer that is not used is closed unread: the server could send it for ever, or hold it back
		case resp.StatusCode == http.StatusUnauthorized && refused == "":
			resp.Body.Close()
			refused = token
		case resp.StatusCode == http.StatusUnauthorized:
			resp.Body.Close()
			return nil, b.account.login("the server refuses a token that was renewed just now")
		case resp.StatusCode == http.StatusForbidden && challenge.Params["error"] == "insufficient_scope":
			resp.Body.Close()
			return nil, b.account.lacking(req.Context(), token, strings.Fields(challenge.Params["scope"]))
		default:
			return resp, nil
		}
	}
}

// lacking notes that the server wants more scopes, for hearsay login to show, and says so. The scopes are the server's words: nothing
// is asked for because of them until a person does. One that holds the token would carry it into logs and to the browser.
func (a *Account) lacking(ctx context.Context, token string, scopes []string) error {
	holds := func(scope string) bool { return strings.Contains(scope, token) }
	if len(scopes) == 0 || len(scopes) > maxLacking || checkScopes(scopes) != nil || slices.ContainsFunc(scopes, holds) {
		return a.login("the server wants scopes that the sign-in lacks, and does not say in a usable way which")
	}
	login := a.login("the server wants scopes that the sign-in lacks")
	login.Says, login.Scopes = visible(strconv.Quote(strings.Join(scopes, " "))), scopes
	rec, err := a.current()
	if err != nil || rec == nil || slices.Equal(rec.Lacking, scopes) {
		return login
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	slot, err := a.store.open(ctx)
	if err != nil {
		return login
	}
	defer slot.close()
	if rec, err := a.record(); err == nil && rec != nil {
		rec.Lacking = scopes
		_ = slot.save(rec) // it is told either way
	}
	return login
}
