package connect

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestWhereClientsKeepTheirFile(t *testing.T) {
	for _, tt := range []struct {
		client, os, env, want string
	}{
		{"claude-code", "linux", "", "/home/ann/.claude.json"},
		{"claude-code", "darwin", "", "/home/ann/.claude.json"},
		{"claude-code", "linux", "CLAUDE_CONFIG_DIR=/c", "/c/.claude.json"},
		{"claude-code", "linux", "CLAUDE_CONFIG_DIR=c", ""},
		{"claude-desktop", "linux", "", "/home/ann/.config/Claude/claude_desktop_config.json"},
		{"claude-desktop", "darwin", "", "/home/ann/Library/Application Support/Claude/claude_desktop_config.json"},
		{"cursor", "linux", "", "/home/ann/.cursor/mcp.json"},
		{"vscode", "linux", "", "/home/ann/.config/Code/User/mcp.json"},
		{"vscode", "linux", "XDG_CONFIG_HOME=/x", "/x/Code/User/mcp.json"},
		{"vscode", "linux", "XDG_CONFIG_HOME=x", "/home/ann/.config/Code/User/mcp.json"},
		{"vscode", "darwin", "XDG_CONFIG_HOME=/x", "/home/ann/Library/Application Support/Code/User/mcp.json"},
		{"codex", "linux", "", "/home/ann/.codex/config.toml"},
		{"codex", "linux", "CODEX_HOME=/c", "/c/config.toml"},
		{"codex", "linux", "CODEX_HOME=c", ""},
		{"gemini", "linux", "", "/home/ann/.gemini/settings.json"},
		{"gemini", "linux", "GEMINI_CLI_HOME=/g", "/g/.gemini/settings.json"},
		{"windsurf", "darwin", "", "/home/ann/.codeium/windsurf/mcp_config.json"},
		{"cursor", "windows", "", ""},
	} {
		c, err := ClientNamed(tt.client)
		if err != nil {
			t.Fatal(err)
		}
		key, value, _ := strings.Cut(tt.env, "=")
		got, err := c.UserFile(Place{OS: tt.os, Home: "/home/ann", Getenv: func(name string) string {
			if name == key {
				return value
			}
			return ""
		}})
		if filepath.ToSlash(got) != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s on %s with %q: %q, %v; want %q", tt.client, tt.os, tt.env, got, err, tt.want)
		}
	}
	c, _ := ClientNamed("cursor")
	if _, err := c.UserFile(Place{OS: "linux", Getenv: func(string) string { return "" }}); err == nil {
		t.Error("a file is named without a home")
	}
	for name, want := range map[string]string{"claude-code": "p/.mcp.json", "vscode": "p/.vscode/mcp.json", "codex": "p/.codex/config.toml", "windsurf": "", "claude-desktop": ""} {
		c, err := ClientNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.ProjectFile("p"); filepath.ToSlash(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := ClientNamed("emacs"); err == nil || !strings.Contains(err.Error(), "--format") {
		t.Errorf("an unknown client: %v", err)
	}
}
