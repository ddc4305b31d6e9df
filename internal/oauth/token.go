package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/broker"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// maxLife bounds how long a token may say it lives: what is more is cut, so that no sum of times overflows.
const maxLife = 10 * 365 * 24 * time.Hour

// grant is what a token endpoint gave.
type grant struct {
	access, refresh string
	life            time.Duration // 0: not said
	scopes          []string      // nil: as asked for
}

// Error is an authorization server's refusal (RFC 6749 section 5.2), its own words cleaned and cut.
type Error struct {
	Code string // such as invalid_grant
	Text string // what it adds, "" nothing
}

func (e *Error) Error() string {
	if e.Text == "" {
		return "the authorization server says " + e.Code
	}
	return fmt.Sprintf("the authorization server says %s: %s", e.Code, e.Text)
}

// final reports whether asking again cannot help: the grant no longer counts, or the client that a registration made. A client of the
// operator's may only have the wrong secret at the moment.
func (e *Error) final(c client) bool {
	return e.Code == "invalid_grant" || e.Code == "unauthorized_client" || e.Code == "invalid_client" && c.Dynamic
}

func newError(code, text string) *Error {
	e := &Error{Code: visible(code)}
	if text != "" {
		e.Text = quoted(text)
	}
	return e
}

// ask sends a form to the token endpoint. No error of it holds a code, a token or a secret.
func (a *Account) ask(ctx context.Context, endpoint string, c client, secret broker.Secret, form url.Values) (grant, error) {
	req, err := postForm(ctx, endpoint, c, secret, form)
	if err != nil {
		return grant{}, err
	}
	v, status, err := a.web.do(req)
	switch {
	case err != nil:
		return grant{}, show("asking for a token", err)
	case status == http.StatusOK:
		return readGrant(v)
	case v.Get("error").Str() != "":
		hide := without(secret.Reveal(), form.Get("code"), form.Get("code_verifier"), form.Get("refresh_token"))
		return grant{}, newError(hide(v.Get("error").Str()), hide(v.Get("error_description").Str()))
	}
	return grant{}, fmt.Errorf("asking for a token: HTTP status %d", status)
}

// without takes secrets out of what a server says, which may name the one it refuses: refresh token "…" is unknown.
func without(secrets ...string) func(string) string {
	return func(text string) string {
		for _, s := range secrets {
			if s != "" {
				text = strings.ReplaceAll(text, s, "(a secret)")
				text = strings.ReplaceAll(text, url.QueryEscape(s), "(a secret)")
			}
		}
		return text
	}
}

// postForm makes a request to an endpoint of the authorization server, with the client's own authentication.
func postForm(ctx context.Context, endpoint string, c client, secret broker.Secret, form url.Values) (*http.Request, error) {
	if c.Method != methodBasic {
		form.Set("client_id", c.ID)
	}
	if c.Method == methodPost {
		form.Set("client_secret", secret.Reveal())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("the endpoint is no URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if c.Method == methodBasic { // both encoded first: RFC 6749 section 2.3.1
		req.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(secret.Reveal()))
	}
	return req, nil
}

// readGrant reads a token response (RFC 6749 section 5.1). A member of another type than the RFC's is refused, except a lifetime
// written as a text, which some servers send.
func readGrant(v strictjson.Value) (grant, error) {
	var g grant
	for _, m := range []struct {
		name string
		to   *string
	}{{"access_token", &g.access}, {"refresh_token", &g.refresh}} {
		t := v.Get(m.name)
		if absent(t) {
			continue
		}
		secret, err := broker.NewSecret([]byte(t.Str())) // what a header can carry, and not too long
		if t.Kind() != strictjson.KindString || err != nil || secret.Reveal() != t.Str() || strings.Contains(t.Str(), " ") {
			return grant{}, fmt.Errorf("the token response has no usable %s", m.name)
		}
		*m.to = t.Str()
	}
	if g.access == "" {
		return grant{}, errors.New("the token response has no access_token")
	}
	if t := v.Get("token_type"); !strings.EqualFold(t.Str(), "bearer") {
		return grant{}, errors.New("the token response is not about a bearer token")
	}
	if t := v.Get("expires_in"); !absent(t) {
		text := t.Number()
		if t.Kind() == strictjson.KindString {
			text = t.Str()
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds >= 0) {
			return grant{}, errors.New("the token response has no usable expires_in")
		}
		g.life = time.Duration(max(1, min(seconds, maxLife.Seconds()))) * time.Second
	}
	if t := v.Get("scope"); !absent(t) {
		g.scopes = strings.Fields(t.Str())
		if t.Kind() != strictjson.KindString || checkScopes(g.scopes) != nil {
			return grant{}, errors.New("the token response has no usable scope")
		}
	}
	return g, nil
}

func absent(v strictjson.Value) bool {
	return v.Kind() == strictjson.KindAbsent || v.Kind() == strictjson.KindNull
}
