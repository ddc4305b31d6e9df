// Package broker holds credentials that never enter a sandbox: which host gets which header, stamped on at the boundary.
//
// [New] checks a list of credentials; [Broker.For] says what a plain HTTP request becomes: HTTPS to that host and port, with
// the [Credential] that [Credential.Stamp] and [Credential.Replace] put into its head.
//
// # Limits
//
// A process behind the broker does not hold the secret, but it can use it: whatever the host lets the account do, it can ask
// for. Rules for methods and paths bound that, the credential does not. Placeholders are replaced in headers, not in bodies
// or URLs. Masking finds the secret as it was sent, in the clear: a host that sends it back compressed, encrypted, encoded
// anew or in pieces over several responses shows it. Memory of this process holds it for as long as the process lives.
package broker

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

const (
	// minPlaceholder keeps a placeholder from being ordinary text.
	minPlaceholder = 8
	secretMark     = "{secret}"
	httpPort       = 80
	httpsPort      = 443
)

// Options are one credential as an operator writes it. Host and Secret are needed, and one of Header and Placeholder.
type Options struct {
	// Host is an exact name, with a port where it is not 443. Wildcards are refused: a secret has one addressee.
	Host string
	// Header is "Name: value with {secret}", or a name alone for the bare secret: set on every request, in place of what the
	// client sent under that name. The weaker, empty, form stamps nothing and only replaces Placeholder.
	Header string
	Secret Secret
	// Placeholder is replaced by the secret wherever it stands in a header's value, inside Basic credentials too.
	Placeholder string
	// Path limits the credential to this path and what lies below it; the longest that fits wins. "" is the whole host.
	Path string
	// Client limits the credential to the client of this name; "" is every client.
	Client string
	// AllowTunnel lets the client open TLS to the host by itself, where nothing can be stamped: with a credential of its own
	// for an account of its own.
	AllowTunnel bool
	// AllowEcho leaves the secret in responses that hold it.
	AllowEcho bool
}

// Credential is one checked entry. It is safe for use by many goroutines.
type Credential struct {
	target      egress.Target
	name        []byte // of the stamped header; nil when only placeholders are replaced
	lead, trail string // round the secret in its value
	placeholder []byte
	secret      Secret
	path        string
	client      string
	allowTunnel bool
	allowEcho   bool
}

// Broker finds the credential of a request. A nil Broker has none.
type Broker struct {
	creds []*Credential
}

// New checks the credentials. An error names the entry and never holds a secret.
func New(entries []Options) (*Broker, error) {
	b := &Broker{}
	for i, o := range entries {
		c, err := newCredential(o)
		if err != nil {
			return nil, fmt.Errorf("credential %d: %w", i+1, err)
		}
		for _, other := range b.creds {
			if other.target == c.target && other.path == c.path && other.client == c.client {
				return nil, fmt.Errorf("credential %d: %s has a credential for this path and client already", i+1, c.target)
			}
		}
		b.creds = append(b.creds, c)
	}
	return b, nil
}

func newCredential(o Options) (*Credential, error) {
	if strings.ContainsAny(o.Host, "*?/") || strings.HasPrefix(o.Host, ".") {
		return nil, errors.New("host is not one exact name; a secret has one addressee")
	}
	t, err := egress.ParseTarget(o.Host, httpsPort)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	c := &Credential{target: t, secret: o.Secret, client: o.Client, allowTunnel: o.AllowTunnel, allowEcho: o.AllowEcho}
	switch {
	case !o.Secret.IsSet():
		return nil, errors.New("secret is missing; write file:PATH or env:NAME")
	case len(o.Secret.bytes()) < minSecret:
		return nil, fmt.Errorf("secret has %d bytes; at least %d are needed to find it again in a response", len(o.Secret.bytes()), minSecret)
	case o.Header == "" && o.Placeholder == "":
		return nil, errors.New("neither header nor placeholder is given, so nothing would be stamped")
	case o.Placeholder != "" && len(o.Placeholder) < minPlaceholder:
		return nil, fmt.Errorf("placeholder has fewer than %d characters", minPlaceholder)
	case strings.Contains(o.Placeholder, string(o.Secret.bytes())):
		return nil, errors.New("placeholder holds the secret")
	}
	c.placeholder = []byte(o.Placeholder)
	if o.Header != "" {
		if err := c.setHeader(o.Header); err != nil {
			return nil, err
		}
	}
	if o.Path != "" {
		c.path = strings.TrimSuffix(o.Path, "/")
		if !plainPath(o.Path) || c.path == "" {
			return nil, errors.New("path must begin with a slash, and hold no empty or dot segment, escape, query or backslash")
		}
	}
	return c, nil
}

func (c *Credential) setHeader(text string) error {
	name, value, found := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	if !found {
		value = secretMark
	}
	if strings.Count(value, secretMark) != 1 {
		return fmt.Errorf("header must be a name, or a name, a colon and a value with %s once", secretMark)
	}
	for _, b := range []byte(value) {
		if b < ' ' || b >= 0x7f {
			return errors.New("header value holds a character that no header carries")
		}
	}
	if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return errors.New("header name is not letters, digits and hyphens")
	}
	switch lower := strings.ToLower(name); lower {
	case "accept-encoding", "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive", "expect", "via":
		return errors.New("header is one that the proxy itself writes")
	default:
		if strings.HasPrefix(lower, "proxy-") {
			return errors.New("header is one that ends at a proxy")
		}
	}
	c.name = []byte(name)
	c.lead, c.trail, _ = strings.Cut(value, secretMark)
	return nil
}

// Target is the only place the secret goes to.
func (c *Credential) Target() egress.Target { return c.target }

// Client is the client the credential is for, "" for every one.
func (c *Credential) Client() string { return c.client }

// Targets lists every host with a credential for the client, once each, for a check at start that the policy lets it through.
func (b *Broker) Targets(client string) []egress.Target {
	if b == nil {
		return nil
	}
	var out []egress.Target
	seen := map[egress.Target]bool{}
	for _, c := range b.creds {
		if (c.client == "" || c.client == client) && !seen[c.target] {
			seen[c.target] = true
			out = append(out, c.target)
		}
	}
	return out
}

// ErrPath is the error of a path that servers read in different ways, on a host whose credentials differ by path.
var ErrPath = errors.New("path can be read in more than one way")

// For says what becomes of a client's plain HTTP request to a target. Where the host is listed, https is where the request
// goes instead, over TLS; cred is nil if no credential covers the path. Where it is not listed, https is the zero Target.
func (b *Broker) For(client string, t egress.Target, path string) (https egress.Target, cred *Credential, err error) {
	if b == nil {
		return egress.Target{}, nil, nil
	}
	byPath := false
	for _, c := range b.creds {
		if !c.serves(client, t) {
			continue
		}
		https = c.target
		byPath = byPath || c.path != ""
		if !c.covers(path) {
			continue
		}
		if cred == nil || len(c.path) > len(cred.path) || len(c.path) == len(cred.path) && cred.client == "" && c.client != "" {
			cred = c
		}
	}
	if byPath && !plainPath(path) {
		return egress.Target{}, nil, ErrPath
	}
	return https, cred, nil
}

// HidesFrom reports whether a tunnel to the target is to be refused, since what it hides could not be stamped: the request
// would reach the host with the placeholder, fail, and tempt someone to hand the real secret out.
func (b *Broker) HidesFrom(client string, t egress.Target) bool {
	if b == nil {
		return false
	}
	hidden := false
	for _, c := range b.creds {
		if (c.client == "" || c.client == client) && c.target == t {
			if c.allowTunnel {
				return false
			}
			hidden = true
		}
	}
	return hidden
}

// serves reports whether a client's plain request to t is one for this credential's host: port 80 stands for 443.
func (c *Credential) serves(client string, t egress.Target) bool {
	if c.client != "" && c.client != client || t.Host() != c.target.Host() {
		return false
	}
	return t.Port() == c.target.Port() || t.Port() == httpPort && c.target.Port() == httpsPort
}

func (c *Credential) covers(path string) bool {
	rest, ok := strings.CutPrefix(path, c.path)
	return ok && (rest == "" || rest[0] == '/' || c.path == "")
}

// plainPath reports whether every server reads the path in the same way as far as its segments go.
func plainPath(path string) bool {
	if path == "*" {
		return true
	}
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "\\?#") {
		return false
	}
	lower := strings.ToLower(path)
	for _, bad := range [...]string{"%2f", "%5c", "%2e", "%25", "%00", "//"} {
		if strings.Contains(lower, bad) {
			return false
		}
	}
	plain, err := url.PathUnescape(path)
	if err != nil || !utf8.ValidString(plain) || strings.IndexFunc(plain, unicode.IsControl) >= 0 { // the overlong dot is no UTF-8
		return false
	}
	for seg := range strings.SplitSeq(plain[1:], "/") {
		if i := strings.IndexAny(seg, ";?#"); i >= 0 {
			seg = seg[:i]
		}
		if seg == "." || seg == ".." {
			return false
		}
	}
	return true
}

// Stamps reports whether a header of this name from the client is replaced by the stamped one.
func (c *Credential) Stamps(name []byte) bool {
	return len(c.name) > 0 && bytes.EqualFold(c.name, name)
}

// Stamp appends the header line that carries the secret to a request head; nothing if the credential has none.
func (c *Credential) Stamp(head []byte) []byte {
	if len(c.name) == 0 {
		return head
	}
	head = append(head, c.name...)
	head = append(head, ':', ' ')
	head = append(head, c.lead...)
	head = append(head, c.secret.bytes()...)
	head = append(head, c.trail...)
	return append(head, '\r', '\n')
}

// Replace puts the secret in place of the placeholder in a header's value, and reports whether it was there. What it returns
// then is a copy.
func (c *Credential) Replace(value []byte) ([]byte, bool) {
	if len(c.placeholder) == 0 {
		return value, false
	}
	return c.secret.replaceIn(value, c.placeholder)
}

// Masks reports whether echoes of the secret are masked.
func (c *Credential) Masks() bool { return !c.allowEcho }

// Mask returns a new mask for one response, nil where echoes are allowed. sent are values that Replace returned.
func (c *Credential) Mask(sent ...[]byte) *Mask {
	if c.allowEcho {
		return nil
	}
	m := &Mask{words: [][]byte{c.secret.bytes()}}
	for _, s := range sent {
		if !bytes.Contains(s, c.secret.bytes()) { // Basic credentials: the secret is inside base64
			if _, token, ok := bytes.Cut(s, []byte(" ")); ok && len(token) >= minSecret {
				m.words = append(m.words, bytes.TrimSpace(token))
			}
		}
	}
	return m
}
