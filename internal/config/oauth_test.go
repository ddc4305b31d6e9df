package config

import (
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

func TestWhereASignInMayGo(t *testing.T) {
	for _, tc := range []struct {
		server string
		to     string
		want   string // "" may go there
	}{
		{`{url: "https://192.0.2.7/mcp", oauth: {}}`, "8.8.8.8:8443", ""},
		{`{url: "https://mcp.example/mcp", oauth: {}}`, "localhost:443", "inward"},
		{`{url: "https://mcp.example/mcp", oauth: {}}`, "10.0.0.1:443", "inward"},
		{`{url: "https://mcp.example/mcp", oauth: {}}`, "169.254.169.254:443", "metadata"},
		{`{url: "http://127.0.0.1:3000/mcp", oauth: {}}`, "127.0.0.1:3000", ""},
		{`{url: "http://127.0.0.1:3000/mcp", oauth: {}}`, "127.0.0.1:631", "inward"},
		{`{url: "http://127.0.0.1:3000/mcp", oauth: {}}`, "localhost:3000", "inward"},
		{`{url: "http://[::1]:3000/mcp", oauth: {}}`, "[::1]:3000", ""},
		{`{url: "http://[::1]:3000/mcp", oauth: {}}`, "[::1]:3001", "inward"},
		{`{url: "http://localhost:3000/mcp", oauth: {hosts: ["localhost:3001"]}}`, "localhost:3001", ""},
		{`{url: "http://localhost:3000/mcp", oauth: {hosts: ["localhost:3001"]}}`, "localhost:3000", ""},
		{`{url: "http://localhost:3000/mcp", oauth: {hosts: ["localhost:3001"]}}`, "localhost:3002", "not-allowed"},
		{`{url: "http://localhost:3000/mcp", oauth: {hosts: ["localhost:*"]}}`, "localhost:9", ""},
		{`{url: "https://mcp.example/mcp", oauth: {hosts: ["8.8.8.8"]}}`, "8.8.8.8:443", ""},
		{`{url: "https://mcp.example/mcp", oauth: {hosts: ["8.8.8.8"]}}`, "9.9.9.9:443", "not-allowed"},
		{`{url: "https://mcp.example/mcp", oauth: {}, egress: {allow: ["8.8.8.8"]}}`, "9.9.9.9:443", "not-allowed"},
		{`{url: "https://mcp.example/mcp", oauth: {}, egress: {allow: ["10.0.0.1"], inward: {"10.0.0.1": ["10.0.0.1:443"]}}}`, "10.0.0.1:443", ""},
	} {
		file, err := Parse([]byte("servers:\n  far: " + tc.server))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.GatewayServers(); err != nil {
			t.Fatal(err)
		}
		dialer, err := file.Servers["far"].signInDialer()
		if err != nil {
			t.Fatal(err)
		}
		to, err := egress.ParseTarget(tc.to, 0)
		if err != nil {
			t.Fatal(err)
		}
		if e := dialer.Judge(t.Context(), to, nil); e.Allowed != (tc.want == "") || !strings.Contains(string(e.Reason), tc.want) {
			t.Errorf("%s to %s: %s, %v", tc.server, tc.to, e.Reason, e.Err)
		}
	}
}
