package egress

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustPolicy(t testing.TB, o PolicyOptions) *Policy {
	t.Helper()
	p, err := NewPolicy(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustTarget(t testing.TB, s string) Target {
	t.Helper()
	target, err := ParseTarget(s, 0)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return target
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name        string
		allow, deny []string
		yes, no     string // targets, by spaces
	}{
		{name: "an empty list allows nothing", no: "api.example.com:443 8.8.8.8:443"},
		{name: "an exact name is no pattern", allow: []string{"api.example.com"}, yes: "api.example.com:443 API.example.com.:80",
			no: "example.com:443 x.api.example.com:443 api.example.com.evil.example:443 apixexample.com:443 api.example.com:8080"},
		{name: "a star covers subdomains at any depth, not the domain", allow: []string{"*.example.com"}, yes: "a.example.com:443 a.b.example.com:80", no: "example.com:443 notexample.com:443 a.example.com.evil.example:443"},
		{name: "a leading dot covers the domain too", allow: []string{".example.com"}, yes: "example.com:443 a.b.example.com:443", no: "notexample.com:443 com:443"},
		{name: "a port narrows", allow: []string{"api.example.com:8443"}, yes: "api.example.com:8443", no: "api.example.com:443"},
		{name: "a star for the port widens", allow: []string{"api.example.com:*"}, yes: "api.example.com:22 api.example.com:65535", no: "example.com:22"},
		{name: "a star alone covers names and literals on the default ports", allow: []string{"*"}, yes: "a.example:443 8.8.8.8:80 [2606::1]:443", no: "a.example:22"},
		{name: "stars for both cover everything", allow: []string{"*:*"}, yes: "a.example:22 8.8.8.8:1 [2606::1]:9"},
		{name: "a literal is judged by value", allow: []string{"93.184.215.14", "2606:4700:0::1"}, yes: "93.184.215.14:443 [::ffff:93.184.215.14]:443 [2606:4700::1]:80", no: "93.184.215.15:443"},
		{name: "a literal with a port", allow: []string{"[2606:4700::1]:8443", "93.184.215.14:22"}, yes: "[2606:4700::1]:8443 93.184.215.14:22", no: "[2606:4700::1]:443 93.184.215.14:443"},
		{name: "a range covers literals, never names", allow: []string{"93.184.0.0/16", "[2606::/16]:22"}, yes: "93.184.1.2:443 [2606::5]:22", no: "example.com:443 [2606::5]:443 93.185.0.1:443"},
		{name: "a name wildcard covers no literal", allow: []string{"*.example.com", ".example.org"}, no: "93.184.215.14:443"},
		{name: "names meet in their ASCII form", allow: []string{"BÜCHER.example", "*.xn--bcher-kva.example"}, yes: "bücher.example:443 xn--bcher-kva.example:443 a.bücher.example:443", no: "bucher.example:443"},
		{name: "deny beats allow", allow: []string{".example.com", "*"}, deny: []string{"bad.example.com", "*.worse.example.com"}, yes: "good.example.com:443 worse.example.com:443", no: "bad.example.com:443 BAD.example.com.:80 x.worse.example.com:443"},
		{name: "a deny entry without a port covers every port", allow: []string{"*:*"}, deny: []string{"bad.example.com"}, no: "bad.example.com:22 bad.example.com:443"},
		{name: "a deny entry with a port covers that one", allow: []string{"*:*"}, deny: []string{"bad.example.com:22"}, yes: "bad.example.com:443", no: "bad.example.com:22"},
		{name: "a denied literal holds in every form that carries it", allow: []string{"*:*"}, deny: []string{"8.8.8.8", "9.9.0.0/16"}, yes: "8.8.4.4:443",
			no: "8.8.8.8:443 [::ffff:8.8.8.8]:443 [64:ff9b::8.8.8.8]:443 [2600::5efe:8.8.8.8]:443 9.9.9.9:1 [64:ff9b::9.9.1.1]:443"},
		{name: "a whole top level may be denied", allow: []string{"*"}, deny: []string{"*.zip", "*.co.uk"}, yes: "a.example:443", no: "a.zip:443 b.co.uk:443"},
		{name: "deny of everything", allow: []string{"*:*"}, deny: []string{"*"}, no: "a.example:443 8.8.8.8:22"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustPolicy(t, PolicyOptions{Allow: c.allow, Deny: c.deny})
			for _, s := range strings.Fields(c.yes) {
				if d := p.Decide(mustTarget(t, s), nil); !d.Allowed || d.Rule == "" || d.Reach == "" {
					t.Errorf("%s is refused: %+v", s, d)
				}
			}
			for _, s := range strings.Fields(c.no) {
				if d := p.Decide(mustTarget(t, s), nil); d.Allowed || d.Reason == "" {
					t.Errorf("%s is allowed: %+v", s, d)
				}
			}
		})
	}
}

func TestZeroDecisionsRefuse(t *testing.T) {
	var none *Policy
	target := mustTarget(t, "api.example.com:443")
	if none.Decide(target, nil).Allowed || none.DecideName("api.example.com").Allowed || (Decision{}).Allowed {
		t.Error("a nil policy allows")
	}
	if mustPolicy(t, PolicyOptions{Allow: []string{"*:*"}}).Decide(Target{}, nil).Allowed {
		t.Error("the zero target is allowed")
	}
	d := &Dialer{}
	if conn, err := d.Dial(t.Context(), target); err == nil {
		conn.Close()
		t.Error("the zero dialer dials")
	}
}

func TestEntriesRefusedAtLoad(t *testing.T) {
	for _, c := range []struct{ list, entry, want string }{
		{"allow", "", "is empty"},
		{"allow", "  ", "is empty"},
		{"allow", " api.example.com", "space at its end"},
		{"allow", "*example.test", `"*.example.test"`},
		{"allow", "ex*mple.test", "star inside"},
		{"allow", "api.*.example.test", "star inside"},
		{"allow", "*.*.example.test", "star inside"},
		{"allow", "*.test", "top-level"},
		{"allow", ".test", "top-level"},
		{"allow", "*.co.uk", "every domain registered under co.uk"},
		{"allow", "api.example.com:", "ends with a colon"},
		{"allow", "api.example.com:0", "port"},
		{"allow", "api.example.com:99999", "port"},
		{"allow", "api.example.com:https", "port"},
		{"allow", "https://api.example.com", `write "api.example.com"`},
		{"allow", "ftp://api.example.com", "scheme"},
		{"allow", "api.example.com/v1", "plain HTTP only"},
		{"allow", "GET api.example.com", "request pattern"},
		{"allow", "get http://api.example.com/", "methods in capitals"},
		{"allow", "GET,,POST http://api.example.com/", "method"},
		{"allow", "http://api.example.com/?q=1", "query"},
		{"allow", "http://api.example.com/a/../b", "different ways"},
		{"allow", "http://api.example.com/%2e%2e/b", "different ways"},
		{"allow", "http://api.example.com//b", "different ways"},
		{"allow", "http://api.example.com/*/*/*/*/*/*/*/*/*", "stars"},
		{"allow", "http://*.com/", "top-level"},
		{"allow", "http:///x", "no host"},
		{"allow", "127.1", "address-spelling"},
		{"allow", "0x7f.0.0.1", "address-spelling"},
		{"allow", "10.0.0.5/8", "write 10.0.0.0/8"},
		{"allow", "10.0.0.0/33", "no address range"},
		{"allow", "::ffff:10.0.0.0/104", "IPv4 range"},
		{"allow", "*.10.0.0.1", "wildcard before an address"},
		{"allow", "[example.com]:443", "brackets"},
		{"allow", "[::1", "closing bracket"},
		{"allow", "[::1]443", "closing bracket"},
		{"allow", "fe80::1%eth0", "zone"},
		{"allow", "user@example.com", "userinfo"},
		{"allow", "a..b", "label"},
		{"allow", "exa mple.com", "request pattern"},
		{"allow", "evil\x00.example.com", "control"},
		{"deny", "ex*mple.test", "star inside"},
		{"deny", "", "is empty"},
		{"inward host", "*", "exempts every host"},
		{"inward host", "", "is empty"},
		{"inward host", "*.test", "top-level"},
		{"inward host", "http://db.example.com/", "request pattern"},
		{"inward address", "db.example.com", "no address or range"},
		{"inward address", "", "is empty"},
		{"inward address", "10.0.0.1/8", "write 10.0.0.0/8"},
		{"inward address", "*", "exempts every host"},
		{"nat64", "2001:db8::/33", "length"},
		{"nat64", "10.0.0.0/8", "length"},
		{"nat64", "2001:db8::1/96", "outside its mask"},
		{"nat64", "2001:db8:0:0:ff00::/96", "bits 64 to 71"},
		{"nat64", "", "no address range"},
	} {
		var o PolicyOptions
		switch c.list {
		case "allow":
			o.Allow = []string{"ok.example.com", c.entry}
		case "deny":
			o.Deny = []string{"ok.example.com", c.entry}
		case "inward host":
			o.Inward = map[string][]string{c.entry: {"10.0.0.0/8"}}
		case "inward address":
			o.Inward = map[string][]string{"db.example.com": {"10.0.0.1", c.entry}}
		case "nat64":
			o.NAT64 = []string{"2001:db8::/32", c.entry}
		}
		_, err := NewPolicy(o)
		var ee *EntryError
		if !errors.As(err, &ee) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: error %v, want %q in it", c.list, c.entry, err, c.want)
			continue
		}
		if ee.Entry != c.entry || c.list != "inward host" && ee.Index != 1 {
			t.Errorf("%s %q: the error names %q, number %d", c.list, c.entry, ee.Entry, ee.Index)
		}
	}
	if _, err := NewPolicy(PolicyOptions{Inward: map[string][]string{"db.example.com": nil}}); err == nil {
		t.Error("an exemption without addresses loads")
	}
}

func TestWarningsNameWhatReachesFar(t *testing.T) {
	p := mustPolicy(t, PolicyOptions{
		Allow:      []string{"*", "api.example.com:*", "*.github.io", "10.0.0.5", "10.0.0.6", "ok.example.com"},
		Inward:     map[string][]string{"10.0.0.6": {"10.0.0.6"}, "all.example.com": {"0.0.0.0/0"}},
		ReportOnly: true,
	})
	all := strings.Join(p.Warnings(), "\n")
	for _, want := range []string{`"*" reaches any host`, `"api.example.com:*" reaches any port`, `every customer of github.io`, `"10.0.0.5" is an inward address`, `"all.example.com" is exempted for every address`, "report_only"} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning has %q:\n%s", want, all)
		}
	}
	for _, quiet := range []string{"ok.example.com", "10.0.0.6"} {
		if strings.Contains(all, quiet) {
			t.Errorf("a warning names %s:\n%s", quiet, all)
		}
	}
}

func TestReportOnlyTriesTheHostListAlone(t *testing.T) {
	d := &Dialer{Policy: mustPolicy(t, PolicyOptions{Deny: []string{"bad.example.com"}, ReportOnly: true}), Own: noOwn}
	if e := d.Judge(t.Context(), mustTarget(t, "8.8.8.8:22"), nil); !e.Allowed || !e.Report || e.Reason != ReasonNotAllowed {
		t.Errorf("a host that is not listed: %+v", e)
	}
	if e := d.Judge(t.Context(), mustTarget(t, "127.0.0.1:22"), nil); e.Allowed || e.Report || e.Reason != ReasonInward {
		t.Errorf("an inward address: %+v", e)
	}
	if e := d.Judge(t.Context(), mustTarget(t, "bad.example.com:443"), nil); e.Allowed || e.Reason != ReasonDenied {
		t.Errorf("a denied host: %+v", e)
	}
}

func TestDecideName(t *testing.T) {
	p := mustPolicy(t, PolicyOptions{Allow: []string{"db.example.com:5432", "*.example.org", "GET http://web.example.com/"}, Deny: []string{"bad.example.org", "half.example.org:22"}})
	for name, want := range map[string]bool{"db.example.com": true, "a.example.org": true, "half.example.org": true, "web.example.com": true,
		"bad.example.org": false, "example.org": false, "other.example.com": false, "127.1": false, "": false} {
		if got := p.DecideName(name); got.Allowed != want {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

func TestDecideSome(t *testing.T) {
	p := mustPolicy(t, PolicyOptions{
		Allow: []string{"db.example.com:5432", "GET http://web.example.com:8080/v1/*", "part.example.com"},
		Deny:  []string{"DELETE http://part.example.com/*", "gone.example.com", "DELETE http://never.example.com/*"},
	})
	for target, want := range map[string]bool{"db.example.com:5432": true, "db.example.com:80": false, "web.example.com:8080": true, "web.example.com:80": false,
		"part.example.com:80": true, "gone.example.com:80": false, "never.example.com:80": false, "93.184.215.14:8080": false} {
		target, err := ParseTarget(target, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.DecideSome(target); got.Allowed != want {
			t.Errorf("%s: %+v", target, got)
		}
	}
	var none *Policy
	for port, want := range map[uint16]bool{443: true, 80: true, 5432: true, 8080: true, 22: false} {
		if got := p.AllowsPort(port); got != want || none.AllowsPort(port) {
			t.Errorf("port %d: %t", port, got)
		}
	}
}

func TestInwardExemptions(t *testing.T) {
	p := mustPolicy(t, PolicyOptions{
		Allow: []string{"*:*"},
		Inward: map[string][]string{
			"db.example.com":       {"10.0.0.0/8", "fd00::/8"},
			"one.example.com:5432": {"10.1.1.1:5432", "10.1.1.2"},
			"*.corp.example.com":   {"192.168.1.0/24:443"},
			"imds.example.com":     {"169.254.0.0/16", "fd00:ec2::254", "100.100.100.200/32"},
			"10.9.9.9":             {"10.9.9.9"},
			"xlat.example.com":     {"10.0.0.0/8", "64:ff9b::10.1.2.3"},
			"all.example.com":      {"0.0.0.0/0", "::/0"},
		},
	})
	for _, c := range []struct {
		target, addr string
		want         bool
	}{
		{"db.example.com:443", "10.0.0.5", true},
		{"db.example.com:443", "::ffff:10.0.0.5", true},
		{"db.example.com:443", "fd00::5", true},
		{"db.example.com:443", "192.168.0.1", false},
		{"db.example.com:443", "127.0.0.1", false},
		{"other.example.com:443", "10.0.0.5", false},
		{"x.db.example.com:443", "10.0.0.5", false},
		{"10.0.0.5:443", "10.0.0.5", false},
		{"10.9.9.9:443", "10.9.9.9", true},
		{"one.example.com:5432", "10.1.1.1", true},
		{"one.example.com:5432", "10.1.1.2", true},
		{"one.example.com:443", "10.1.1.2", false},
		{"a.corp.example.com:443", "192.168.1.7", true},
		{"a.corp.example.com:80", "192.168.1.7", false},
		{"corp.example.com:443", "192.168.1.7", false},
		{"imds.example.com:80", "169.254.1.1", true},
		{"imds.example.com:80", "169.254.169.254", false},
		{"imds.example.com:80", "fd00:ec2::254", true},
		{"imds.example.com:80", "100.100.100.200", true},
		{"db.example.com:80", "fd00:ec2::254", false},
		{"all.example.com:80", "169.254.169.254", false},
		{"all.example.com:80", "168.63.129.16", false},
		{"all.example.com:80", "64:ff9b::169.254.169.254", false},
		{"all.example.com:80", "127.0.0.1", true},
		{"db.example.com:80", "64:ff9b::10.0.0.5", false},
		{"xlat.example.com:80", "64:ff9b::10.1.2.3", true},
	} {
		d := &Dialer{Policy: p}
		a := d.judgeAddr(mustTarget(t, c.target), netip.MustParseAddr(c.addr).Unmap(), nil, nil)
		if a.Allowed != c.want || a.Allowed == (a.Exemption == "") {
			t.Errorf("%s at %s: %+v", c.target, c.addr, a)
		}
	}
}

func TestDenyBeatsAllow(t *testing.T) {
	hosts := []string{"example.com", "a.example.com", "b.a.example.com", "example.org", "8.8.8.8", "10.0.0.1", "[2606::1]"}
	entries := []string{"*", "*:*", "example.com", "*.example.com", ".example.com", ".example.com:22", "a.example.com:443", "8.8.8.8", "8.0.0.0/8", "[2606::/16]:443", "example.org:*"}
	rapid.Check(t, func(t *rapid.T) {
		o := PolicyOptions{
			Allow:      rapid.SliceOfN(rapid.SampledFrom(entries), 0, 4).Draw(t, "allow"),
			Deny:       rapid.SliceOfN(rapid.SampledFrom(entries), 0, 4).Draw(t, "deny"),
			ReportOnly: rapid.Bool().Draw(t, "report"),
		}
		target, err := ParseTarget(rapid.SampledFrom(hosts).Draw(t, "host")+":"+rapid.SampledFrom([]string{"22", "80", "443"}).Draw(t, "port"), 0)
		if err != nil {
			t.Fatal(err)
		}
		both, err := NewPolicy(o)
		if err != nil {
			t.Fatal(err)
		}
		denied, _ := NewPolicy(PolicyOptions{Allow: []string{"*:*"}, Deny: o.Deny})
		allowed, _ := NewPolicy(PolicyOptions{Allow: o.Allow, ReportOnly: o.ReportOnly})
		got := both.Decide(target, nil)
		if want := denied.Decide(target, nil).Allowed && allowed.Decide(target, nil).Allowed; got.Allowed != want {
			t.Fatalf("%+v: %s: %+v", o, target, got)
		}
		more := o
		more.Deny = append(more.Deny, rapid.SampledFrom(entries).Draw(t, "more"))
		narrowed, _ := NewPolicy(more)
		if narrowed.Decide(target, nil).Allowed && !got.Allowed {
			t.Fatalf("%+v: one more deny entry opened %s", more, target)
		}
	})
}

// FuzzRules holds that reading an entry never panics, that an entry which loads decides, and that it reaches no look-alike of
// the domain it names.
func FuzzRules(f *testing.F) {
	for _, s := range []string{"*", "*:*", "*.example.com", ".example.com:22", "[2606::/16]:443", "10.0.0.0/8", "GET,HEAD http://a.example.com:8080/v1/*", "bücher.example", "[::1", "a:b:c", "http://*", "*.*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		p, err := NewPolicy(PolicyOptions{Allow: []string{entry}})
		if err != nil {
			return
		}
		r := p.allow[0]
		if r.any {
			return
		}
		if r.name == "" && !r.prefix.IsValid() || r.reach == "" {
			t.Fatalf("%q covers nothing: %+v", entry, r)
		}
		for _, near := range []string{"evil" + r.name, r.name + ".evil.example", "x-" + r.name} {
			target, err := NewTarget(near, 443)
			if err != nil || r.name == "" {
				continue
			}
			if p.Decide(target, nil).Allowed {
				t.Errorf("%q reaches %s", entry, target)
			}
		}
	})
}
