// Package corpus reads files of egress cases: a destination as some protocol spells it, what its name resolves to, the rules, and
// whether it may be reached. It is for tests.
package corpus

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// Case is one row. The README beside the handed cases tells what the fields mean.
type Case struct {
	ID         string       `json:"id"`
	Group      string       `json:"group"`
	Target     string       `json:"target"`
	HostHeader string       `json:"host_header"`
	ResolvesTo []string     `json:"resolves_to"`
	CNAME      []string     `json:"cname"`
	Seq        [][]string   `json:"resolves_seq"`
	Expect     string       `json:"expect"`
	Alt        string       `json:"alt"`
	Why        string       `json:"why"`
	Dials      []netip.Addr `json:"dials"`
	MustNot    []netip.Addr `json:"must_not_dial"`
	Policy     *Rules       `json:"policy"`
}

// Rules are a case's own. Without them, and without an allow list in them, every host may be reached on every port.
type Rules struct {
	Allow  []string            `json:"allow"`
	Deny   []string            `json:"deny"`
	Inward map[string][]string `json:"inward"`
	NAT64  []string            `json:"nat64_prefixes"`
}

// ProxyPort stands for @proxyport in a target.
const ProxyPort = "3128"

// Read reads a file of at least so many cases. Each has its Rules.
func Read(t *testing.T, path string, least int) []Case {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []Case
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < least {
		t.Fatalf("only %d cases in %s", len(cases), path)
	}
	for i := range cases {
		c := &cases[i]
		c.Target = strings.ReplaceAll(c.Target, "@proxyport", ProxyPort)
		if c.Policy == nil {
			c.Policy = &Rules{}
		}
		if c.Policy.Allow == nil {
			c.Policy.Allow = []string{"*:*"}
		}
	}
	return cases
}
