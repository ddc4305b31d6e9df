package egress

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Request is a plain HTTP request whose method and path are known. Path is the URL's path as received, without the query.
type Request struct {
	Method string
	Path   string
}

// requestPattern is the method and path part of an entry such as "GET,HEAD http://api.example.com/v1/*".
type requestPattern struct {
	methods []string // empty: any
	path    string   // canonical; a star matches any run of characters, slashes too
}

// maxStars bounds the work of matching one path.
const maxStars = 8

// parseRequestRule reads "[METHOD[,METHOD]] http://HOST[:PORT][/PATH]".
func parseRequestRule(text string, where list) (rule, error) {
	methods, rawURL, ok := strings.Cut(text, " ")
	if !ok {
		methods, rawURL = "", text
	}
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok || strings.ContainsAny(rest, " \t") {
		return rule{}, fmt.Errorf("is no request pattern; write it as in %q", "GET http://api.example.com/v1/*")
	}
	end := strings.IndexByte(rest, '/')
	if end < 0 {
		end = len(rest)
	}
	authority, path := rest[:end], rest[end:]
	switch scheme {
	case "http":
	case "https":
		return rule{}, fmt.Errorf("is an https pattern, but paths inside TLS are not seen; write %q", authority)
	default:
		return rule{}, fmt.Errorf("has the scheme %q; only http patterns can be matched", scheme)
	}
	r, port, err := parseHostRule(authority, where)
	if err != nil {
		return rule{}, err
	}
	r.text = text
	switch {
	case port == "":
		r.ports = []uint16{80}
	case port == "*":
		r.anyPort = true
	default:
		n, err := parsePort(port)
		if err != nil {
			return rule{}, fmt.Errorf("has the port %q; write a number from 1 to 65535 or *", port)
		}
		r.ports = []uint16{n}
	}
	r.request, err = parsePattern(methods, path)
	return r, err
}

func parsePattern(methods, path string) (*requestPattern, error) {
	p := &requestPattern{path: "/*"}
	if methods != "" {
		for m := range strings.SplitSeq(methods, ",") {
			if m == "" || strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
				return nil, fmt.Errorf("has the method %q; write methods in capitals, as in %q", m, "GET,HEAD")
			}
			p.methods = append(p.methods, m)
		}
	}
	if path == "" {
		return p, nil
	}
	if strings.ContainsAny(path, "?#") {
		return nil, fmt.Errorf("has a query or fragment; only the path is matched, so remove it")
	}
	if strings.Count(path, "*") > maxStars {
		return nil, fmt.Errorf("has more than %d stars", maxStars)
	}
	canonical, ok := canonicalPath(path)
	if !ok {
		return nil, fmt.Errorf("has a path that servers read in different ways (dot segments, empty segments, encoded slashes); write it plainly")
	}
	p.path = canonical
	return p, nil
}

func (p *requestPattern) words() string {
	m := "any method"
	if len(p.methods) > 0 {
		m = strings.Join(p.methods, " or ")
	}
	return m + " on the path " + p.path
}

// match reports whether the pattern covers the request. For what has several readings it reports ambiguous, which an allow
// entry takes for no and a deny entry for yes: a path, and a method in small letters, which many servers take for the one in capitals.
func (p *requestPattern) match(r Request, ambiguous bool) bool {
	if len(p.methods) > 0 && !slices.ContainsFunc(p.methods, func(m string) bool { return m == r.Method || ambiguous && strings.EqualFold(m, r.Method) }) {
		return false
	}
	if p.path == "/*" && strings.HasPrefix(r.Path, "/") {
		return true
	}
	path, ok := canonicalPath(r.Path)
	if !ok {
		return ambiguous
	}
	return glob(p.path, path)
}

// glob matches stars against any run of characters, anchored at both ends.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}

// canonicalPath brings percent-escapes into one form (RFC 3986 section 6.2.2). It reports false for a path that servers read
// in different ways: dot segments in any encoding, empty segments, encoded slashes, backslashes, control characters, bytes that are no
// UTF-8, as the overlong dot is none, or an encoded percent sign, which may begin another escape. A pattern that such a path slips past
// or into would be worth nothing.
func canonicalPath(path string) (string, bool) {
	if path == "" || path[0] != '/' {
		return "", false
	}
	var b strings.Builder
	var plain []byte
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' {
			if i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2]) {
				return "", false
			}
			c = unhex(path[i+1])<<4 | unhex(path[i+2])
			i += 2
			if c == '/' || c == '\\' || c == '*' || c == '%' {
				return "", false
			}
			plain = append(plain, c)
			if c > ' ' && c < 0x7f && !unreserved(c) { // a reserved character: its escaped form means something else
				fmt.Fprintf(&b, "%%%02X", c)
				continue
			}
		} else {
			plain = append(plain, c)
		}
		switch {
		case c < ' ' || c == 0x7f || c == '\\':
			return "", false
		case c == ' ' || c >= 0x80:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	if !utf8.Valid(plain) {
		return "", false
	}
	clean := b.String()
	segments := strings.Split(clean[1:], "/")
	for i, s := range segments {
		name := s
		for _, end := range []string{";", "%3B", "%3F", "%23"} { // some servers cut parameters off before they resolve dots, or what they decoded to one
			name, _, _ = strings.Cut(name, end)
		}
		if name == "." || name == ".." || name == "" && (i < len(segments)-1 || s != "") {
			return "", false
		}
	}
	return clean, true
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}
