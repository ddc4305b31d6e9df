package egress

import "strings"

// URL is an absolute http or https URL, as a proxy's request line or a person writes it, in parts that were read once.
type URL struct {
	Scheme string // "http" or "https"
	Target Target
	Path   string // begins with "/"; as written, escapes untouched
	Query  string // without the "?", as written
}

// ParseURL reads an absolute URL with the strictness of [ParseTarget]: the authority ends at the first "/" or "?", and what
// readers of URLs disagree on (userinfo, backslashes, fragments, control characters, spaces, missing slashes) is refused.
// The error is a [*TargetError].
func ParseURL(raw string) (URL, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return URL{}, refuse(ReasonURL)
	}
	u := URL{Scheme: lower(scheme), Path: "/"}
	var port uint16
	switch u.Scheme {
	case "http":
		port = 80
	case "https":
		port = 443
	default:
		return URL{}, refuse(ReasonURL)
	}
	for i := range len(rest) {
		switch c := rest[i]; {
		case c == '\\', c == '#': // "http://a\@b" and "http://a#@b" have two hosts, one for each kind of reader
			return URL{}, refuse(ReasonURL)
		case c < ' ', c == 0x7f:
			return URL{}, refuse(ReasonControl)
		case c == ' ':
			return URL{}, refuse(ReasonSpace)
		}
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		authority = rest[:end]
		path, query, _ := strings.Cut(rest[end:], "?")
		if path != "" {
			u.Path = path
		}
		u.Query = query
	}
	if strings.Contains(authority, "@") {
		return URL{}, refuse(ReasonUserinfo)
	}
	t, err := ParseTarget(authority, port)
	if err != nil {
		return URL{}, err
	}
	u.Target = t
	return u, nil
}
