package gate

import (
	"errors"
	"strings"
)

// urlPattern is a link with wildcards. The host is compared on its own, so that a wildcard there never reaches over into
// the path, a query or another host's name.
type urlPattern struct{ scheme, host, rest glob }

func newURLPattern(src string) (*urlPattern, error) {
	scheme, after, _ := strings.Cut(src, "://")
	host, rest, _ := strings.Cut(after, "/")
	switch {
	case strings.Contains(scheme, "*"):
		return nil, errors.New("write the scheme of the link: https://…")
	case host == "":
		return nil, errors.New("the link has no host")
	case strings.HasSuffix(host, "*"):
		return nil, errors.New("a wildcard at the end of the host also matches other hosts; write https://host/** for everything there")
	case strings.ContainsAny(host, `@?#%\`):
		return nil, errors.New("a pattern's host holds letters, digits, dots, a port and wildcards only")
	}
	hostGlob, _ := newGlob(strings.ToLower(host), false) // it holds no backslash, and is shorter than src
	restGlob, err := newGlob("/"+rest, true)
	return &urlPattern{literalGlob(strings.ToLower(scheme)), hostGlob, restGlob}, err
}

func (p *urlPattern) match(s string) bool {
	l, ok := splitLink(s)
	return ok && l.hostName() != "" && len(s) <= maxWildText && plainPath(l.path) && p.scheme.match(l.scheme) && p.host.match(l.authority) && p.rest.match(l.path+l.query)
}

func (p *urlPattern) covers(q *urlPattern) bool {
	return p.scheme.covers(q.scheme) && p.host.covers(q.host) && p.rest.covers(q.rest)
}

// link is a URL taken apart without guessing.
type link struct{ scheme, authority, path, query string }

// splitLink takes s apart. It refuses what readers of URLs read differently: user names, control characters, spaces,
// backslashes, encoded or non-ASCII hosts.
func splitLink(s string) (link, bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= 0x20 || r == 0x7f || r == '\\' }) {
		return link{}, false
	}
	for i := range len(scheme) {
		if c := scheme[i] | 0x20; (c < 'a' || c > 'z') && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(scheme[i]))) {
			return link{}, false
		}
	}
	l := link{scheme: strings.ToLower(scheme)}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	l.authority, rest = strings.ToLower(rest[:end]), rest[end:]
	if l.authority == "" || strings.ContainsFunc(l.authority, func(r rune) bool {
		return r != '.' && r != '-' && r != '_' && r != ':' && r != '[' && r != ']' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}) {
		return link{}, false
	}
	end = strings.IndexAny(rest, "?#")
	if end < 0 {
		end = len(rest)
	}
	l.path, l.query = rest[:end], rest[end:]
	if l.path == "" {
		l.path = "/"
	}
	return l, true
}

// hostName is the authority without port, brackets and a dot at the end; "" where that is not clear.
func (l link) hostName() string {
	h := l.authority
	if v6, ok := strings.CutPrefix(h, "["); ok {
		addr, port, ok := strings.Cut(v6, "]")
		if !ok || port != "" && !strings.HasPrefix(port, ":") || strings.ContainsAny(port, "[]") {
			return ""
		}
		return addr
	}
	h, port, hasPort := strings.Cut(h, ":")
	if hasPort && strings.ContainsFunc(port, func(r rune) bool { return r < '0' || r > '9' }) || strings.ContainsAny(h, "[]") {
		return ""
	}
	return strings.TrimSuffix(h, ".")
}
