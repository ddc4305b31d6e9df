package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
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

// A fetch that was cut off leaves nothing behind that would be taken for the package.
func TestFetchPackageWholeOrNot(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("npm is a shell script here")
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	npm := func(end string) {
		script := "#!/bin/sh\nroot=\"$3/node_modules/pkg\"\nmkdir -p \"$root\"\necho '{\"bin\":\"a.js\"}' >\"$root/package.json\"\n" + end + "\n"
		if err := os.WriteFile(filepath.Join(bin, "npm"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	state, p := t.TempDir(), npmPackage{spec: "pkg@1"}
	npm("echo half >&2; exit 1")
	if err := fetchPackage(t.Context(), state, p, t.Output()); err == nil {
		t.Error("an npm that failed passes for one that did not")
	}
	npm("echo half >&2; exec sleep 600")
	ctx, cancel := context.WithCancel(t.Context())
	if err := fetchPackage(ctx, state, p, onWrite(cancel)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, _, err := installedPackage(state, p); err == nil {
		t.Error("a package that came half is taken for whole")
	}
	if left, err := os.ReadDir(filepath.Join(state, "packages")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v %v", left, err)
	}
	npm("exit 0")
	if err := fetchPackage(t.Context(), state, p, t.Output()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := installedPackage(state, p); err != nil {
		t.Error(err)
	}
}

// onWrite is a writer that tells of each write.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) { f(); return len(p), nil }
