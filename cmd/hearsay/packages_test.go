package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNpxCommands(t *testing.T) {
	for _, tt := range []struct {
		command string
		spec    string
		name    string
		args    int
	}{
		{"npx -y @modelcontextprotocol/server-memory", "@modelcontextprotocol/server-memory", "@modelcontextprotocol/server-memory", 0},
		{"/usr/bin/npx --yes server@1.2.3 a b", "server@1.2.3", "server", 2},
		{"npx @scope/pkg@latest --flag", "@scope/pkg@latest", "@scope/pkg", 1},
		{"npx --package x y", "", "", 0},
		{"npx", "", "", 0},
		{"node server.js", "", "", 0},
	} {
		p, ok := npxPackage(strings.Fields(tt.command))
		if ok != (tt.spec != "") || p.spec != tt.spec || (ok && p.name() != tt.name) || len(p.args) != tt.args {
			t.Errorf("%s: %+v %v", tt.command, p, ok)
		}
	}
}

func TestInstalledPackages(t *testing.T) {
	dir := t.TempDir()
	p := npmPackage{spec: "@scope/pkg@1"}
	if _, _, err := installedPackage(dir, p); err == nil || !strings.Contains(err.Error(), "hearsay pin -c") {
		t.Errorf("a package that is not there: %v", err)
	}
	root := filepath.Join(p.dir(dir), "node_modules", "@scope", "pkg")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ bin, want string }{
		{`"dist/cli.js"`, "dist/cli.js"},
		{`{"anything":"a.js"}`, "a.js"},
		{`{"other":"a.js","pkg":"b.js"}`, "b.js"},
		{`{"other":"a.js","more":"b.js"}`, ""},
		{`"../../../etc/passwd"`, ""},
		{`null`, ""},
	} {
		manifest, _ := json.Marshal(map[string]json.RawMessage{"bin": json.RawMessage(tt.bin)})
		if err := os.WriteFile(filepath.Join(root, "package.json"), manifest, 0o600); err != nil {
			t.Fatal(err)
		}
		command, read, err := installedPackage(dir, p)
		if (err == nil) != (tt.want != "") {
			t.Errorf("%s: %v %v", tt.bin, command, err)
			continue
		}
		if err == nil && (!slices.Equal(command, []string{"node", filepath.Join(root, tt.want)}) || read != p.dir(dir)) {
			t.Errorf("%s: %v %s", tt.bin, command, read)
		}
	}
}
