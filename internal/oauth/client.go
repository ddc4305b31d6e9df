package oauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// How a client authenticates itself at the token endpoint (RFC 7591 section 2).
const (
	methodNone  = "none"
	methodPost  = "client_secret_post"
	methodBasic = "client_secret_basic"
)

// client is who hearsay is to an authorization server.
type client struct {
	ID       string    `json:"id"`
	Secret   string    `json:"secret,omitempty"` // of a dynamic registration only
	Method   string    `json:"method"`
	Dynamic  bool      `json:"dynamic,omitempty"`
	Redirect string    `json:"redirect"` // what it was registered with
	Expires  time.Time `json:"expires,omitzero"`
}

// secret gives the client's secret, from the operator's reference where there is one.
func (a *Account) secret(c client) (broker.Secret, error) {
	switch {
	case c.Method == methodNone:
		return broker.Secret{}, nil
	case c.Dynamic:
		return broker.NewSecret([]byte(c.Secret))
	case a.opt.ClientSecret == nil:
		return broker.Secret{}, errors.New("the file names no client_secret")
	}
	s, err := a.opt.ClientSecret()
	if err != nil {
		return s, fmt.Errorf("client_secret: %w", err)
	}
	return s, nil
}

// identify gives the client to use: the operator's, the one registered before, or a new registration.
func (a *Account) identify(ctx context.Context, f *found, kept *client, redirect string) (client, error) {
	switch {
	case a.opt.ClientMetadata != "":
		if !f.meta.ClientIDMetadataDocumentSupported {
			return client{}, errors.New("the authorization server takes no client metadata documents; leave client_id_metadata_url out, or write the client_id of a client that is registered there")
		}
		return client{ID: a.opt.ClientMetadata, Method: methodNone, Redirect: redirect}, nil
	case a.opt.ClientID != "":
		c := client{ID: a.opt.ClientID, Method: methodNone, Redirect: redirect}
		if a.opt.ClientSecret != nil {
			c.Method = secretMethod(f.meta.TokenEndpointAuthMethodsSupported)
		}
		return c, nil
	case kept != nil && kept.Redirect == redirect && (kept.Expires.IsZero() || a.now().Before(kept.Expires)):
		return *kept, nil
	case f.meta.RegistrationEndpoint == "":
		return client{}, errors.New("the authorization server registers no clients by itself: register one there, with the redirect address http://127.0.0.1/callback, and write its client_id and, for a fixed port, redirect_port")
	}
	return a.register(ctx, f, redirect)
}

// secretMethod chooses how to send a secret. What is not listed is the header (RFC 8414 section 2).
func secretMethod(supported []string) string {
	if slices.Contains(supported, methodPost) && !slices.Contains(supported, methodBasic) {
		return methodPost
	}
	return methodBasic
}

// register makes hearsay known to an authorization server (RFC 7591).
func (a *Account) register(ctx context.Context, f *found, redirect string) (client, error) {
	supported := f.meta.TokenEndpointAuthMethodsSupported
	method := methodNone
	if len(supported) > 0 && !slices.Contains(supported, methodNone) {
		method = secretMethod(supported)
	}
	resp, err := oauthex.RegisterClient(ctx, f.meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: method, GrantTypes: []string{"authorization_code", "refresh_token"},
		ResponseTypes: []string{"code"}, ClientName: "hearsay", ApplicationType: "native",
	}, a.web.client)
	var refusal *oauthex.ClientRegistrationError
	if errors.As(err, &refusal) {
		return client{}, fmt.Errorf("registering a client: %w", newError(refusal.ErrorCode, refusal.ErrorDescription))
	}
	if err != nil {
		return client{}, show("registering a client", err)
	}
	c := client{ID: resp.ClientID, Secret: resp.ClientSecret, Method: resp.TokenEndpointAuthMethod, Dynamic: true, Redirect: redirect, Expires: resp.ClientSecretExpiresAt}
	if c.Method == "" {
		if c.Method = methodNone; c.Secret != "" {
			c.Method = secretMethod(supported)
		}
	}
	if _, err := broker.NewSecret([]byte(c.ID)); err != nil {
		return client{}, errors.New("registering a client: the authorization server gave an id that cannot be used")
	}
	switch c.Method {
	case methodNone:
		c.Secret, c.Expires = "", time.Time{}
	case methodBasic, methodPost:
		if _, err := broker.NewSecret([]byte(c.Secret)); err != nil {
			return client{}, errors.New("registering a client: the authorization server gave no secret that can be used")
		}
	default:
		return client{}, fmt.Errorf("registering a client: the authorization server wants the client to authenticate by %s", quoted(c.Method))
	}
	return c, nil
}
