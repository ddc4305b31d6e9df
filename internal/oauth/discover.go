package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

const (
	maxChallenge = 8 << 10 // bytes of all WWW-Authenticate headers
	maxIssuers   = 20
)

// wellKnownResource is where a resource publishes its metadata (RFC 9728 section 3).
const wellKnownResource = "/.well-known/oauth-protected-resource"

// found is what is known of a protected server before anybody signs in.
type found struct {
	resource string // what tokens are asked for: the server as its metadata names it
	meta     *oauthex.AuthServerMeta
	scopes   []string // that the server asks for; nil where it does not say
}

// discover asks the server who authorizes for it, and that authorization server how.
func (a *Account) discover(ctx context.Context) (*found, error) {
	status, challenge, err := a.challenge(ctx)
	if err != nil {
		return nil, err
	}
	f := &found{resource: a.opt.URL}
	metadata, err := a.resourceMetadata(ctx, challenge.Params["resource_metadata"])
	if err != nil {
		return nil, err
	}
	var issuers []string
	if metadata.Kind() == strictjson.KindObject {
		f.resource = metadata.Get("resource").Str()
		if issuers, err = texts(metadata.Get("authorization_servers"), maxIssuers); err != nil || len(issuers) == 0 {
			return nil, errors.New("the server's metadata names no authorization servers")
		}
		if f.scopes, err = texts(metadata.Get("scopes_supported"), maxScopes); err != nil {
			return nil, fmt.Errorf("the server's metadata: scopes_supported: %w", err)
		}
	} else if status != http.StatusUnauthorized {
		return nil, fmt.Errorf("the server asks for no sign-in (HTTP status %d), and names no authorization server", status)
	}
	if scope := challenge.Params["scope"]; scope != "" {
		f.scopes = strings.Fields(scope)
	}
	if err := checkScopes(f.scopes); err != nil {
		return nil, fmt.Errorf("what the server asks for: %w", err)
	}
	issuer, err := a.chooseIssuer(issuers)
	if err != nil {
		return nil, err
	}
	f.meta, err = a.authorizationServer(ctx, issuer)
	return f, err
}

// challenge calls the server without a token and gives the status of its answer, and its Bearer challenge; the zero value where it has
// none. A server that lets anybody in may still say in its metadata whom it takes a token of.
func (a *Account) challenge(ctx context.Context) (int, oauthex.Challenge, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.opt.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return 0, oauthex.Challenge{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	status, header, err := a.web.status(req)
	if err != nil {
		return 0, oauthex.Challenge{}, show("asking the server", err)
	}
	if status/100 == 3 {
		return status, oauthex.Challenge{}, fmt.Errorf("asking the server: HTTP status %d: redirects are not followed; write the address it has now", status)
	}
	if status != http.StatusUnauthorized {
		return status, oauthex.Challenge{}, nil
	}
	return status, bearerChallenge(header), nil
}

// bearerChallenge finds the Bearer challenge of an answer. One that cannot be read is none.
func bearerChallenge(h http.Header) oauthex.Challenge {
	values := h.Values("WWW-Authenticate")
	size := 0
	for _, v := range values {
		size += len(v)
	}
	if size > maxChallenge {
		return oauthex.Challenge{}
	}
	challenges, err := oauthex.ParseWWWAuthenticate(values)
	if err != nil {
		return oauthex.Challenge{}
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" {
			return c
		}
	}
	return oauthex.Challenge{}
}

// resourceMetadata fetches what the server says of itself (RFC 9728); the zero value where it says nothing. named is where its
// challenge says that stands. Another origin's word about this server is not asked for.
func (a *Account) resourceMetadata(ctx context.Context, named string) (strictjson.Value, error) {
	var places []string
	if u, err := parseEndpoint(named); err == nil && origin(u) == origin(a.server) {
		places = append(places, named)
	}
	places = append(places, wellKnown(a.server, a.server.Path), wellKnown(a.server, "/"))
	for i, place := range places {
		if slices.Contains(places[:i], place) {
			continue
		}
		v, err := a.web.get(ctx, place)
		if err != nil {
			return v, show("fetching the server's metadata", err)
		}
		if v.Kind() != strictjson.KindObject {
			continue
		}
		resource := v.Get("resource").Str()
		if !a.isResource(resource, place) {
			return v, fmt.Errorf("the server's metadata is about %s, which is not %s", quoted(resource), a.opt.URL)
		}
		return v, nil
	}
	return strictjson.Value{}, nil
}

// wellKnown is where the resource with a path publishes its metadata.
func wellKnown(server egress.URL, path string) string {
	return origin(server) + wellKnownResource + strings.TrimSuffix(path, "/")
}

// isResource reports whether metadata found at a place may speak for resource: it is the server itself, or what contains it, and then
// only at the place that is that one's own. Otherwise one tenant of a host could ask for a token that counts for all.
func (a *Account) isResource(resource, place string) bool {
	u, err := parseEndpoint(resource)
	if err != nil || origin(u) != origin(a.server) {
		return false
	}
	own, its := strings.TrimSuffix(a.server.Path, "/"), strings.TrimSuffix(u.Path, "/")
	if its == own {
		return u.Query == a.server.Query
	}
	return u.Query == "" && strings.HasPrefix(own, its+"/") && place == wellKnown(u, u.Path)
}

// chooseIssuer takes the operator's choice, or the server's first.
func (a *Account) chooseIssuer(named []string) (string, error) {
	if len(named) == 0 { // a server from before RFC 9728: it is its own authorization server
		named = []string{origin(a.server)}
		if a.opt.Issuer != "" {
			named[0] = a.opt.Issuer
		}
	}
	if a.opt.Issuer == "" {
		if err := checkIssuer(named[0]); err != nil {
			return "", fmt.Errorf("the authorization server that the server names: %w", err)
		}
		return named[0], nil
	}
	for _, issuer := range named {
		if sameIssuer(issuer, a.opt.Issuer) {
			return a.opt.Issuer, nil
		}
	}
	return "", fmt.Errorf("the server names the authorization server %s, and the file the issuer %s", quoted(named[0]), quoted(a.opt.Issuer))
}

// authorizationServer fetches the metadata of an authorization server (RFC 8414, OpenID Connect Discovery), and refuses one that this
// client must not use: another issuer's, without PKCE, or with endpoints that are no place to send a person or a code.
func (a *Account) authorizationServer(ctx context.Context, issuer string) (*oauthex.AuthServerMeta, error) {
	meta, err := auth.GetAuthServerMetadata(ctx, strings.TrimSuffix(issuer, "/"), a.web.client)
	if err != nil {
		return nil, show("fetching the metadata of the authorization server "+quoted(issuer), err)
	}
	if meta == nil {
		return nil, fmt.Errorf("the authorization server %s publishes no metadata", quoted(issuer))
	}
	if !slices.Contains(meta.CodeChallengeMethodsSupported, "S256") {
		return nil, fmt.Errorf("the authorization server %s does not offer PKCE with S256", quoted(issuer))
	}
	if len(meta.ResponseTypesSupported) > 0 && !slices.Contains(meta.ResponseTypesSupported, "code") {
		return nil, fmt.Errorf("the authorization server %s does not offer the code flow", quoted(issuer))
	}
	for _, e := range []struct {
		name, url string
		needed    bool
	}{
		{"authorization_endpoint", meta.AuthorizationEndpoint, true},
		{"token_endpoint", meta.TokenEndpoint, true},
		{"registration_endpoint", meta.RegistrationEndpoint, false},
		{"revocation_endpoint", meta.RevocationEndpoint, false},
	} {
		if e.url == "" && !e.needed {
			continue
		}
		u, err := parseEndpoint(e.url)
		if err == nil {
			err = a.web.judge(ctx, u) // the browser goes there without a dialer, and so does a code or a secret later
		}
		if err != nil {
			return nil, show("the authorization server's "+e.name, err)
		}
	}
	return meta, nil
}

// texts reads an array of strings; nil for an absent one.
func texts(v strictjson.Value, most int) ([]string, error) {
	switch {
	case v.Kind() == strictjson.KindAbsent:
		return nil, nil
	case v.Kind() != strictjson.KindArray || v.Len() > most:
		return nil, fmt.Errorf("not a list of at most %d texts", most)
	}
	var out []string
	for _, e := range v.Elems() {
		if e.Kind() != strictjson.KindString {
			return nil, errors.New("something in the list is no text")
		}
		out = append(out, e.Str())
	}
	return out, nil
}
