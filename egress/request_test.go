package egress

import (
	"strings"
	"testing"
)

func TestRequestRules(t *testing.T) {
	for _, c := range []struct {
		name        string
		allow, deny []string
		yes, no     string // "METHOD/path" by spaces, on api.example.com:80
		tunnel      bool
	}{
		{name: "method and path", allow: []string{"GET,HEAD http://api.example.com/v1/*"},
			yes: "GET/v1/ GET/v1/a/b HEAD/v1/x GET/v1/%61", no: "POST/v1/a GET/v1 GET/v2/a GET/v1/../v2 GET/v1/%2e%2e/v2 GET/v1/%2E./v2 GET/v1//a GET/v1/a%2fb GET/v1/..;/admin GET/v1/%252e%252e/v2 GET/v1/%zz GET/v1/a\\b get/v1/a GET/v1/%c0%ae%c0%ae/v2 GET/v1/%e0%80%ae./v2 GET/v1/..%3b/v2 GET/v1/..%3Bx/v2 GET/v1/..%3f/v2 GET/v1/..%23/v2"},
		{name: "no path means every path", allow: []string{"POST http://api.example.com"}, yes: "POST/ POST/a/../b", no: "GET/"},
		{name: "no method means every method", allow: []string{"http://api.example.com/upload"}, yes: "GET/upload PUT/upload", no: "PUT/upload/ PUT/uploads"},
		{name: "stars in the middle", allow: []string{"GET http://api.example.com/repos/acme/*/issues"}, yes: "GET/repos/acme/x/issues GET/repos/acme/x/y/issues", no: "GET/repos/acme/issues GET/repos/evil/x/issues GET/repos/acme/x/issues/1"},
		{name: "a host entry covers requests and tunnels", allow: []string{"api.example.com"}, yes: "DELETE/anything GET/..", tunnel: true},
		{name: "deny of a method", allow: []string{"api.example.com"}, deny: []string{"DELETE http://api.example.com"}, yes: "GET/x", no: "DELETE/x delete/x Delete/x"},
		{name: "deny of a path fires on every reading", allow: []string{"api.example.com"}, deny: []string{"http://api.example.com/admin*"},
			yes: "GET/x GET/xadmin", no: "GET/admin GET/admin/x GET/%61dmin GET/x/../admin GET//admin GET/x/..;/admin GET/%2fadmin GET/.%2e/admin GET/x/%c0%ae%c0%ae/admin GET/x/..%3b/admin"},
		{name: "another port is another rule", allow: []string{"http://api.example.com:8080/"}, no: "GET/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustPolicy(t, PolicyOptions{Allow: c.allow, Deny: c.deny})
			target := mustTarget(t, "api.example.com:80")
			check := func(list string, want bool) {
				for _, s := range strings.Fields(list) {
					method, path, _ := strings.Cut(s, "/")
					if d := p.Decide(target, &Request{Method: method, Path: "/" + path}); d.Allowed != want {
						t.Errorf("%s /%s: %+v", method, path, d)
					}
				}
			}
			check(c.yes, true)
			check(c.no, false)
			if d := p.Decide(target, nil); d.Allowed != c.tunnel {
				t.Errorf("a tunnel: %+v", d)
			}
		})
	}
}

// A deny pattern that a tunnel could go past would be worth nothing.
func TestTunnelToWhereRequestsAreDenied(t *testing.T) {
	p := mustPolicy(t, PolicyOptions{Allow: []string{"api.example.com"}, Deny: []string{"DELETE http://api.example.com/*"}})
	if d := p.Decide(mustTarget(t, "api.example.com:80"), nil); d.Allowed || d.Reason != ReasonTunnel {
		t.Errorf("a tunnel to port 80: %+v", d)
	}
	if d := p.Decide(mustTarget(t, "api.example.com:443"), nil); !d.Allowed {
		t.Errorf("a tunnel to port 443: %+v", d)
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"/a", "/a", true}, {"/a", "/ab", false}, {"/a*", "/a", true}, {"/a*", "/ab/c", true}, {"/*a", "/a", true}, {"/*a", "/ba", true}, {"/*a", "/ab", false},
		{"/a*a", "/a", false}, {"/a*a", "/aa", true}, {"/*b*b", "/b", false}, {"/*b*b", "/bb", true}, {"/**", "/", true}, {"/a*b*c", "/axbxbxc", true}, {"/a*bc*c", "/abc", false},
	} {
		if got := glob(c.pattern, c.s); got != c.want {
			t.Errorf("%q on %q: %t", c.pattern, c.s, got)
		}
	}
}

func FuzzCanonicalPath(f *testing.F) {
	for _, s := range []string{"/", "/a/../b", "/%2e", "/%61", "/a%20b", "/ü", "/a;b/c", "//", "/%25%32%65", "/%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := canonicalPath(s)
		if !ok {
			return
		}
		if again, ok := canonicalPath(got); !ok || again != got {
			t.Errorf("%q → %q → %q %t", s, got, again, ok)
		}
		for seg := range strings.SplitSeq(got, "/") {
			if seg == ".." || seg == "." {
				t.Errorf("%q → %q has a dot segment", s, got)
			}
		}
	})
}
