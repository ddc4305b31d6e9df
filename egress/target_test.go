package egress

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseTarget(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"api.example.com:443", "api.example.com:443"},
		{"API.Example.COM.:443", "api.example.com:443"},
		{"_svc.example.com:443", "_svc.example.com:443"},
		{"r3---sn-ab5.example.com:443", "r3---sn-ab5.example.com:443"},
		{"bücher.example:443", "xn--bcher-kva.example:443"},
		{"BÜCHER.example:443", "xn--bcher-kva.example:443"},
		{"XN--BCHER-KVA.example:443", "xn--bcher-kva.example:443"},
		{"faß.example:443", "xn--fa-hia.example:443"}, // transitional processing would reach fass.example
		{"例え。テスト:80", "xn--r8jz45g.xn--zckzah:80"},
		{"1.1.1.1.nip.example:443", "1.1.1.1.nip.example:443"},
		{"8.8.8.8:53", "8.8.8.8:53"},
		{"[2606:4700::1111]:443", "[2606:4700::1111]:443"},
		{"[2606:4700:0:0::1111]:443", "[2606:4700::1111]:443"},
		{"[::FFFF:8.8.8.8]:443", "8.8.8.8:443"},
		{"api.example.com", "api.example.com:8443"},
		{"[2606:4700::1111]", "[2606:4700::1111]:8443"},
		{"8.8.8.8", "8.8.8.8:8443"},
	} {
		got, err := ParseTarget(c.in, 8443)
		if err != nil || got.String() != c.want {
			t.Errorf("%q: %q %v, want %q", c.in, got, err, c.want)
		}
	}
}

func TestParseTargetRefuses(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 49)+".", 5)
	for _, c := range []struct {
		in   string
		want Reason
	}{
		{"", ReasonPort},
		{":443", ReasonEmptyHost},
		{".:443", ReasonEmptyHost},
		{"api.example.com", ReasonPort},
		{"api.example.com:", ReasonPort},
		{"api.example.com:0", ReasonPort},
		{"api.example.com:+80", ReasonPort},
		{"api.example.com:080", ReasonPort},
		{"api.example.com:65536", ReasonPort},
		{"api.example.com:4294967376", ReasonPort},
		{"api.example.com:80 ", ReasonPort},
		{"api.example.com:https", ReasonPort},
		{"api.example.com:８０", ReasonPort},
		{"api.example.com:80:80", ReasonBrackets},
		{"api.example.com..:443", ReasonLabel},
		{".api.example.com:443", ReasonLabel},
		{"a..example.com:443", ReasonLabel},
		{"-a.example.com:443", ReasonLabel},
		{"a-.example.com:443", ReasonLabel},
		{strings.Repeat("a", 64) + ".example.com:443", ReasonLabel},
		{long + "aaaa:443", ReasonLength},
		{strings.Repeat("a.", 800) + "a:443", ReasonLength},
		{"evil.example\x00.example.com:443", ReasonControl},
		{"evil.example\n.example.com:443", ReasonControl},
		{"evil.example\u0085.example.com:443", ReasonControl},
		{"evil.example .example.com:443", ReasonSpace},
		{"evil.example\u00a0.example.com:443", ReasonSpace},
		{"user@example.com:443", ReasonUserinfo},
		{"127%2e0.0.1:80", ReasonPercent},
		{"example.com%00:80", ReasonPercent},
		{"\xff.example.com:80", ReasonCharacter},
		{"a*b.example.com:80", ReasonCharacter},
		{"a,b.example.com:80", ReasonCharacter},
		{"example.com\\evil:80", ReasonCharacter},
		{"２.example／x:80", ReasonCharacter},
		{"127.1:80", ReasonSpelling},
		{"2130706433:80", ReasonSpelling},
		{"0x7f000001:80", ReasonSpelling},
		{"0X7F.0.0.1:80", ReasonSpelling},
		{"0x7f.1.0x:80", ReasonSpelling},
		{"0177.0.0.1:80", ReasonSpelling},
		{"08.8.8.8:80", ReasonSpelling},
		{"8.8.8.8.:80", ReasonSpelling},
		{"8.8.8.256:80", ReasonSpelling},
		{"1.2.3.4.5:80", ReasonSpelling},
		{"example.1:80", ReasonSpelling},
		{"１２７.0.0.1:80", ReasonSpelling},
		{"127。0。0。1:80", ReasonSpelling},
		{"[example.com]:443", ReasonBrackets},
		{"[[example.com]]:443", ReasonBrackets},
		{"[[::1]]:443", ReasonBrackets},
		{"[127.0.0.1]:80", ReasonBrackets},
		{"[::1:80", ReasonBrackets},
		{"::1]:80", ReasonBrackets},
		{"[::1]x:80", ReasonBrackets},
		{"x[::1]:80", ReasonBrackets},
		{"[]:80", ReasonBrackets},
		{"[v1.fe80::a]:80", ReasonBrackets},
		{"[::1::]:80", ReasonBrackets},
		{"[::127.1]:80", ReasonBrackets},
		{"::1:80", ReasonBrackets},
		{"2606:4700::1111", ReasonBrackets},
		{"[::1%25lo]:80", ReasonZone},
		{"[fe80::1%eth0]:80", ReasonZone},
		{"[::ffff:127.0.0.1%x.example.com]:80", ReasonZone},
		{"xn--lab-.example:443", ReasonIDNA},
		{"xn--a.example:443", ReasonIDNA},
		{"local\u200dhost:80", ReasonIDNA},
		{"a\u202eb.example:443", ReasonIDNA},
	} {
		got, err := ParseTarget(c.in, 0)
		var te *TargetError
		if !errors.As(err, &te) || te.Reason != c.want {
			t.Errorf("%q: %q %v, want reason %s", c.in, got, err, c.want)
			continue
		}
		if got != (Target{}) {
			t.Errorf("%q: a target beside the error: %q", c.in, got)
		}
		if targetProblems[te.Reason] == "" {
			t.Errorf("reason %s has no sentence", te.Reason)
		}
	}
}

func TestNewTarget(t *testing.T) {
	for _, host := range []string{"::1", "[::1]", "0:0::0:1"} {
		got, err := NewTarget(host, 80)
		if err != nil || got.String() != "[::1]:80" {
			t.Errorf("%q: %q %v", host, got, err)
		}
	}
	for _, host := range []string{"", "::1%lo", "[::1", "example.com:80", "1:2", "[example.com]"} {
		if got, err := NewTarget(host, 80); err == nil {
			t.Errorf("%q: %q", host, got)
		}
	}
	if got, err := NewTarget("example.com", 0); err == nil {
		t.Errorf("port 0: %q", got)
	}
}

func TestTargetFrom(t *testing.T) {
	got, err := TargetFrom(netip.MustParseAddrPort("[::ffff:10.0.0.1]:80"))
	if err != nil || got.String() != "10.0.0.1:80" {
		t.Errorf("mapped: %q %v", got, err)
	}
	same, _ := ParseTarget("10.0.0.1:80", 0)
	if got != same {
		t.Error("two spellings of one target are not equal")
	}
	for _, bad := range []netip.AddrPort{{}, netip.MustParseAddrPort("[fe80::1%lo]:80"), netip.MustParseAddrPort("10.0.0.1:0")} {
		if got, err := TargetFrom(bad); err == nil {
			t.Errorf("%v: %q", bad, got)
		}
	}
}

func TestParseURL(t *testing.T) {
	for _, c := range []struct{ in, target, path, query string }{
		{"http://example.com", "example.com:80", "/", ""},
		{"HTTPS://Example.com", "example.com:443", "/", ""},
		{"http://example.com:8080/a%2Fb?x=1?y", "example.com:8080", "/a%2Fb", "x=1?y"},
		{"http://example.com?q=a@b", "example.com:80", "/", "q=a@b"},
		{"http://[2606:4700::1111]/", "[2606:4700::1111]:80", "/", ""},
		{"http://example.com//x", "example.com:80", "//x", ""},
	} {
		u, err := ParseURL(c.in)
		if err != nil || u.Target.String() != c.target || u.Path != c.path || u.Query != c.query {
			t.Errorf("%q: %+v %v", c.in, u, err)
		}
	}
	for _, in := range []string{
		"", "example.com", "//example.com/", "/path", "http:example.com", "http:/example.com", "http:///example.com", "ftp://example.com/",
		"http://a@example.com/", "http://example.com\\@evil.example/", "http://127.0.0.1#@example.com/", "http://exa mple.com/",
		"http://example.com/\r\nHost: x", "http://example.com/a b", "http://127.1/", "http://example.com:/", "http://%65xample.com/",
		"http://[::1", "http://ex\x00ample.com/", " http://example.com/", "https://example.com:0/", "http://example.com/a\\b",
	} {
		if u, err := ParseURL(in); err == nil {
			t.Errorf("%q: %+v", in, u)
		}
	}
}

func TestParseURLSaysWhy(t *testing.T) {
	for in, want := range map[string]Reason{"http://u:p@example.com/": ReasonUserinfo, "http://a\\@example.com/": ReasonURL, "ftp://example.com/": ReasonURL, "http://example.com:x/": ReasonPort} {
		_, err := ParseURL(in)
		var te *TargetError
		if !errors.As(err, &te) || te.Reason != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

// targetPieces make strings that come near to being targets.
var targetPieces = []string{"a", "Z", "0", "9", "127", "0x7f", ".", "..", "-", "_", ":", "[", "]", "::", "%", "@", "/", " ", "\x00", "xn--", "xn--bcher-kva",
	"ü", "ß", "\u00ad", "\u200d", "。", "１", "ⓚ", "ffff", "example", "com", "443", "80", "65536", "*", "\xff", "א", "ا"}

func TestCanonicalTargetsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(rapid.SampledFrom(targetPieces), 1, 12).Draw(t, "pieces"), "")
		checkTarget(t, in)
	})
}

func FuzzParseTarget(f *testing.F) {
	for _, p := range targetPieces {
		f.Add(p + ":80")
	}
	f.Add("[::ffff:127.0.0.1]:443")
	f.Add("bücher.example.:443")
	f.Fuzz(func(t *testing.T, in string) { checkTarget(t, in) })
}

// checkTarget holds what every target keeps: its text reads back to the same value in every constructor, and it has none of
// the characters that readers disagree on.
func checkTarget(t interface{ Fatalf(string, ...any) }, in string) {
	got, err := ParseTarget(in, 0)
	if err != nil {
		if got.IsValid() || got.String() != "" {
			t.Fatalf("%q: a target beside an error", in)
		}
		return
	}
	again, err := ParseTarget(got.String(), 0)
	if err != nil || again != got {
		t.Fatalf("%q → %q → %q %v", in, got, again, err)
	}
	if other, err := NewTarget(got.Host(), got.Port()); err != nil || other != got {
		t.Fatalf("%q → %q, but NewTarget gives %q %v", in, got, other, err)
	}
	if upper, err := ParseTarget(strings.ToUpper(got.String()), 0); err != nil || upper != got {
		t.Fatalf("%q → %q, in capitals %q %v", in, got, upper, err)
	}
	if a, ok := got.Addr(); ok {
		if a.Is4In6() || a.Zone() != "" || a.String() != got.Host() {
			t.Fatalf("%q → %q: address %v is not canonical", in, got, a)
		}
		return
	}
	if strings.Trim(got.Host(), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || strings.HasSuffix(got.Host(), ".") || len(got.Host()) > maxName {
		t.Fatalf("%q → %q is no canonical name", in, got)
	}
	if dotted, err := ParseTarget(got.Host()+".:443", 0); err != nil || dotted.Host() != got.Host() {
		t.Fatalf("%q → %q, but with a last dot %q %v", in, got, dotted, err)
	}
}
