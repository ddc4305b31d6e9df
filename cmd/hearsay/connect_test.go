//go:build unix

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// A client starts what stands in its file: with a real server behind hearsay, its result arrives framed, and the variable of the
// entry's env arrives at the server, while another of the client's environment does not.
func TestConnectedServerWorks(t *testing.T) {
	dir := t.TempDir()
	server := filepath.Join(dir, "goserver")
	build := exec.Command("go", "build", "-o", server, "./internal/realtest/goserver")
	build.Dir = repotest.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "mcp.json")
	before, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"go server": map[string]any{
		"command": server, "args": []string{"-legacy"}, "env": map[string]string{"PLANTED_TOKEN": "it is there"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, before, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := exec.LookPath("hearsay") // TestMain put this program into PATH under that name
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(self, "connect", "--file", file, "--format", "mcpServers").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var config struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
			Env     map[string]string
		}
	}
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(after, &config); err != nil {
		t.Fatal(err)
	}
	entry := config.MCPServers["go server"]
	if entry.Command != self {
		t.Fatalf("the entry starts %s", entry.Command)
	}
	cmd := exec.Command(entry.Command, entry.Args...)
	cmd.Env = append(os.Environ(), "OTHER_SECRET=s3cret")
	for name, value := range entry.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for name, want := range map[string]string{"PLANTED_TOKEN": "it is there", "OTHER_SECRET": ""} {
		text := callText(t, session, "env", map[string]any{"Name": name})
		if body, ok := envelope.Body(text); !ok || body != name+"="+want {
			t.Errorf("what arrives is %q", text)
		}
	}
}
