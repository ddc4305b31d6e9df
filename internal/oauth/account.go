package oauth

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// Options describe a protected server, in the operator's words.
type Options struct {
	Server string // its name
	URL    string // of its MCP endpoint: https, or http on a loopback host

	// Issuer is the one authorization server that counts; "" for the first that the server names.
	Issuer string
	// ClientID is that of a client the operator registered there, with ClientSecret if it has one (nil: a public client). A secret
	// needs an Issuer: otherwise the server could name who receives it.
	ClientID     string
	ClientSecret func() (broker.Secret, error)
	// ClientMetadata is the https URL of a client metadata document, which is then the client's id. Without it and without a
	// ClientID, a client is registered at each authorization server (RFC 7591).
	ClientMetadata string
	// Scopes to ask for; empty: those the server asks for.
	Scopes []string
	// RedirectPort is the port on 127.0.0.1 that the browser comes back to; 0: a free one.
	RedirectPort uint16

	// Dialer judges and opens every connection of a sign-in and of a renewal.
	Dialer *egress.Dialer
	// Dir is the folder of the token files; it is made with mode 0700.
	Dir string
}

// Account is a person's standing with one server. It is safe for use by many goroutines.
type Account struct {
	opt    Options
	server egress.URL
	store  store
	web    *web
	now    func() time.Time

	renewals singleflight.Group
	cache    cache
}

// New checks the options. Nothing is read or sent before a method is called.
func New(opt Options) (*Account, error) {
	a := &Account{opt: opt, now: time.Now}
	a.opt.Scopes = slices.Clone(opt.Scopes)
	var err error
	if a.server, err = parseEndpoint(opt.URL); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if opt.Issuer != "" {
		if err := checkIssuer(opt.Issuer); err != nil {
			return nil, fmt.Errorf("issuer: %w", err)
		}
	}
	switch {
	case opt.ClientMetadata != "" && opt.ClientID != "":
		return nil, errors.New("client_id and client_id_metadata_url: which is it?")
	case opt.ClientSecret != nil && (opt.ClientID == "" || opt.Issuer == ""):
		return nil, errors.New("client_secret needs the client_id and the issuer it is for: without them the server could name who receives it")
	}
	if opt.ClientMetadata != "" {
		if u, err := parseEndpoint(opt.ClientMetadata); err != nil || u.Scheme != "https" || u.Path == "/" {
			return nil, errors.New("client_id_metadata_url: it is an https URL with a path")
		}
	}
	if err := checkScopes(opt.Scopes); err != nil {
		return nil, err
	}
	a.store = newStore(opt.Dir, opt.Server, opt.URL)
	a.web = newWeb(opt.Dialer, nil)
	return a, nil
}

// Status is what is known of a sign-in, without any token.
type Status struct {
	Server    string    `json:"server"`
	URL       string    `json:"url"`
	SignedIn  bool      `json:"signed_in"` // there is a token that may be used or renewed
	Issuer    string    `json:"issuer,omitempty"`
	Client    string    `json:"client,omitempty"` // its id
	Scopes    []string  `json:"scopes,omitempty"` // granted, as far as was said
	Since     time.Time `json:"since,omitzero"`
	Expires   time.Time `json:"expires,omitzero"`  // of the present token
	Renewable bool      `json:"renewable"`         // without the person
	Lacking   []string  `json:"lacking,omitempty"` // scopes that the server has since refused calls for
	Why       string    `json:"why,omitempty"`     // it is no longer signed in
}

// Status reads what is kept of the account.
func (a *Account) Status() (Status, error) {
	st := Status{Server: a.opt.Server, URL: a.opt.URL}
	rec, err := a.record()
	if err != nil || rec == nil {
		return st, err
	}
	st.Issuer, st.Client, st.Scopes, st.Since, st.Lacking, st.Why = rec.Issuer, rec.Client.ID, rec.Scopes, rec.Since, rec.Lacking, rec.Ended
	st.Expires, st.Renewable = rec.Expires, rec.Refresh != ""
	st.SignedIn = rec.Refresh != "" || rec.usable("", a.now())
	if !st.SignedIn && st.Why == "" {
		st.Why = "the token has expired and cannot be renewed"
	}
	return st, nil
}

// record reads the kept record; nil where there is none, or one that the options no longer fit.
func (a *Account) record() (*record, error) {
	rec, err := a.store.read()
	if err != nil || rec == nil {
		return nil, err
	}
	switch {
	case rec.URL != a.opt.URL, a.opt.Issuer != "" && !sameIssuer(rec.Issuer, a.opt.Issuer),
		a.opt.ClientID != "" && rec.Client.ID != a.opt.ClientID, a.opt.ClientMetadata != "" && rec.Client.ID != a.opt.ClientMetadata,
		(a.opt.ClientID == "" && a.opt.ClientMetadata == "") != rec.Client.Dynamic:
		return nil, nil
	}
	return rec, nil
}

// Bounds of what scopes may be.
const (
	maxScopes = 100
	maxScope  = 200 // bytes of one: some are URLs
)

// checkScopes holds scopes to RFC 6749 section 3.3, and to a number and length.
func checkScopes(scopes []string) error {
	if len(scopes) > maxScopes {
		return fmt.Errorf("more than %d scopes", maxScopes)
	}
	for _, s := range scopes {
		if s == "" || len(s) > maxScope || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return fmt.Errorf("%s is no scope", quoted(s))
		}
	}
	return nil
}

// parseEndpoint reads a URL strictly: https, or http where nobody is on the way.
func parseEndpoint(raw string) (egress.URL, error) {
	if len(raw) > maxURL {
		return egress.URL{}, fmt.Errorf("a URL longer than %d bytes", maxURL)
	}
	u, err := egress.ParseURL(raw)
	if err != nil {
		return u, fmt.Errorf("%s is no https URL that is used: %w", quoted(raw), err)
	}
	if u.Scheme != "https" && !loopback(u.Target) {
		return u, fmt.Errorf("%s is not https", quoted(raw))
	}
	return u, nil
}

// loopback knows a host of this machine by its name alone; whether it may be reached is the dialer's question.
func loopback(t egress.Target) bool {
	addr, literal := t.Addr()
	return t.Host() == "localhost" || literal && addr.IsLoopback()
}

func checkIssuer(raw string) error {
	u, err := parseEndpoint(raw)
	if err == nil && (u.Query != "" || strings.HasSuffix(raw, "?")) {
		err = fmt.Errorf("%s has a query, which no issuer has", quoted(raw)) // RFC 8414 section 2
	}
	return err
}

// sameIssuer compares issuers as the SDK does: a slash at the end is none.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// origin is scheme, host and port of a URL, without the port that the scheme implies.
func origin(u egress.URL) string {
	port := ":80"
	if u.Scheme == "https" {
		port = ":443"
	}
	return u.Scheme + "://" + strings.TrimSuffix(u.Target.String(), port)
}

// DefaultDir is the folder of the token files below the folder of the state.
func DefaultDir(state string) string { return filepath.Join(state, "oauth") }
