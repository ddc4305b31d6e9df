package config

import (
	"strings"
	"testing"
)

func TestEgressSectionShowsTheLine(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"an empty entry", "egress:\n  allow:\n    - api.example.com\n    - \"\"\n", `[4:7] egress: allow entry "" is empty`},
		{"a star without a dot", "egress:\n  allow: [\"*example.test\"]\n", `[2:11] egress: allow entry "*example.test" would match look-alikes`},
		{"a malformed deny", "egress:\n  deny:\n    - \"ex*mple.test\"\n", `[3:7] egress: deny entry "ex*mple.test" has a star inside`},
		{"an exemption that is no range", "egress:\n  inward:\n    db.test: [\"10.0.0.5/8\"]\n", `[3:15] egress: inward host "db.test": address "10.0.0.5/8" has bits outside its mask; write 10.0.0.0/8`},
		{"an exemption of every host", "egress:\n  inward:\n    \"*\": [\"10.0.0.0/8\"]\n", `[3:10] egress: inward entry "*" exempts every host`},
		{"a NAT64 length", "egress:\n  nat64_prefixes: [\"2001:db8::/33\"]\n", `[2:20] egress: nat64_prefixes entry`},
		{"a DNS server by name", "egress:\n  dns: [\"dns.example\"]\n", `[2:8] egress: DNS server "dns.example" is no address`},
		{"a misspelt key", "egress:\n  alow: [x.test]\n", `[2:3] unknown field "alow"`},
		{"a string for a list", "egress:\n  allow: api.example.com\n", `[2:10]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.yaml))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q in it", err, c.want)
			}
			if !strings.Contains(err.Error(), "\n>") {
				t.Errorf("the line is not shown:\n%v", err)
			}
		})
	}
}

func TestEgressSectionThatAllowsNothing(t *testing.T) {
	for _, text := range []string{"", "egress:\n", "egress: {}\n", "egress:\n  allow:\n", "egress:\n  allow: []\n", "egress:\n  allow: null\n"} {
		f, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		p, err := f.Egress.Policy()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if d := p.DecideName("api.example.com"); d.Allowed {
			t.Errorf("%q allows %+v", text, d)
		}
	}
}
