package egress

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/realtest/corpus"
	"github.com/seed-4e9f7b04/hearsay/internal/realtest/dnstest"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// TestCases runs the cases of testdata through target, rules, resolver and classes, without a proxy and without dialling.
// The proxy's tests run the same cases with both.
func TestCases(t *testing.T) { runCases(t, "testdata/cases.json", 120) }

// TestCorpus does the same with the handed cases. Every one must come out as expected: none of the open questions in them is
// answered the other way.
func TestCorpus(t *testing.T) { runCases(t, repotest.Shared(t, "cases/egress-cases.json"), 400) }

func runCases(t *testing.T, file string, least int) {
	cases := corpus.Read(t, file, least)
	dns := dnstest.Start(t)
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			got, e, err := runCase(t, dns, c)
			if got != c.Expect {
				t.Fatalf("%q: %s, want %s: %s\nerror: %v, answers: %v", c.Target, got, c.Expect, c.Why, err, e.Answers)
			}
			for _, a := range e.Answers {
				if got == "allow" && slices.Contains(c.MustNot, a.Addr) {
					t.Errorf("would dial %s", a.Addr)
				}
				if len(c.Dials) > 0 && !slices.Contains(c.Dials, a.Addr) {
					t.Errorf("would dial %s, want %s", a.Addr, c.Dials)
				}
			}
		})
	}
}

func runCase(t *testing.T, dns *dnstest.Server, c corpus.Case) (string, Explanation, error) {
	policy, err := NewPolicy(PolicyOptions{Allow: c.Policy.Allow, Deny: c.Policy.Deny, Inward: c.Policy.Inward, NAT64: c.Policy.NAT64})
	if err != nil {
		t.Fatal(err)
	}
	resolver, err := NewResolver(ResolverOptions{Servers: []string{dns.Addr.String()}, IgnoreHosts: true})
	if err != nil {
		t.Fatal(err)
	}
	d := &Dialer{Policy: policy, Resolver: resolver, Own: HostAddrs}
	target, err := caseTarget(c.Target)
	if err != nil {
		return "deny", Explanation{}, err
	}
	if c.ResolvesTo != nil {
		dns.Set(target.Host(), dnstest.Record{Addrs: c.ResolvesTo, CNAME: c.CNAME, Seq: c.Seq})
	}
	e := d.Judge(context.Background(), target, nil)
	if e.Allowed {
		return "allow", e, nil
	}
	return "deny", e, e.Err
}

// caseTarget reads a request target as a proxy does: absolute form or authority form.
func caseTarget(s string) (Target, error) {
	if strings.Contains(s, "/") {
		u, err := ParseURL(s)
		if err == nil && u.Scheme != "http" {
			err = refuse(ReasonURL)
		}
		return u.Target, err
	}
	return ParseTarget(s, 0)
}
