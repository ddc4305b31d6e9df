//go:build real

package realtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// signIn runs hearsay login with a scripted browser: a plain HTTP client that follows where the authorization server sends it.
func signIn(hearsay, file string, env []string, flags ...string) (status map[string]any, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, hearsay, append([]string{"login", "srv", "-c", file, "--no-browser", "--json"}, flags...)...)
	cmd.Env = env
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	lines := json.NewDecoder(out)
	var request struct{ Open string }
	if lines.Decode(&request) == nil {
		if resp, err := http.Get(request.Open); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				lines.Decode(&status) // absent where the answer was taken and then refused
			} else {
				cancel()
			}
		} else {
			cancel()
		}
	}
	io.Copy(io.Discard, out)
	err = cmd.Wait()
	return status, log.String(), err
}

// protected is authserver.mjs.
type protected struct {
	url   string
	lines *bufio.Scanner
	stdin io.Writer
}

func newProtected(t *testing.T, p parts) *protected {
	t.Helper()
	cmd := exec.Command("node", "authserver.mjs", p.npm)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	s := &protected{lines: bufio.NewScanner(stdout), stdin: stdin}
	if !s.lines.Scan() {
		t.Fatal("the protected server says nothing")
	}
	s.url = s.lines.Text()
	return s
}

// do has something happen to the tokens.
func (s *protected) do(t *testing.T, what string) string {
	t.Helper()
	fmt.Fprintln(s.stdin, what)
	if !s.lines.Scan() {
		t.Fatal("the protected server has ended")
	}
	return s.lines.Text()
}

// A person signs in to a server on the TypeScript SDK's authorization server, and calls its tool through the gateway; the token expires,
// is taken back, lacks a scope, and is given up.
func TestSignInToTheTypeScriptSDK(t *testing.T) {
	p := newParts(t)
	server := newProtected(t, p)
	dir := t.TempDir()
	env := append(os.Environ(), "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR="+dir)
	file, audit, log := filepath.Join(dir, "hearsay.yaml"), filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "log")
	text := fmt.Sprintf("servers:\n  srv:\n    url: %s\n    oauth: {}\npermissions: {allow: [srv.whoami]}\ntools: {srv.whoami: {effects: [read]}}\naudit: {file: %s}\n", server.url, audit)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stderr, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	var said strings.Builder // all that the client and the person read
	connect := func() *mcp.ClientSession {
		cmd := exec.Command(p.hearsay, "mcp", "-c", file)
		cmd.Env, cmd.Stderr = env, stderr
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			fmt.Fprintln(&said, err)
			if !strings.Contains(err.Error(), "hearsay login srv") {
				t.Fatal(err)
			}
			return nil
		}
		return session
	}
	mustSignIn := func(flags ...string) map[string]any {
		t.Helper()
		status, told, err := signIn(p.hearsay, file, env, flags...)
		fmt.Fprintln(&said, told, status)
		if err != nil || status["signed_in"] != true {
			t.Fatalf("signing in: %v, %v\n%s", status, err, told)
		}
		return status
	}
	if session := connect(); session != nil { // a gateway may answer initialize by itself
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"}); err == nil || !strings.Contains(err.Error(), "hearsay login srv") {
			t.Errorf("before anybody signed in: %v", err)
		}
		session.Close()
	}
	status := mustSignIn()
	if fmt.Sprint(status["scopes"]) != "[notes]" || status["renewable"] != true {
		t.Errorf("%v", status)
	}
	session := connect()
	if session == nil {
		t.Fatal("signed in, and not let in")
	}
	defer session.Close()
	call := func(want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "whoami"})
		got := fmt.Sprint(err)
		if err == nil {
			got = result.Content[0].(*mcp.TextContent).Text
		}
		fmt.Fprintln(&said, got)
		if !strings.Contains(got, want) || strings.HasPrefix(got, "hearsay: ") && strings.Contains(got, "namzu-untrusted") {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	call("scopes notes")
	server.do(t, "expire")
	call("scopes notes") // with a renewed token
	server.do(t, "need notes write")
	call("hearsay login srv --lacking") // without the scopes that it names, which are the server's words
	mustSignIn("--lacking")
	call("scopes notes write")
	server.do(t, "revoke")
	call("has ended; a person has to run: hearsay login srv")
	server.do(t, "need")
	mustSignIn()
	call("scopes notes")
	out := exec.Command(p.hearsay, "logout", "srv", "-c", file)
	out.Env = env
	if text, err := out.CombinedOutput(); err != nil || !strings.Contains(string(text), "are taken back") {
		t.Errorf("signing out: %v, %s", err, text)
	}
	call("hearsay login srv")
	session.Close()

	given := strings.Fields(server.do(t, "given"))
	if len(given) < 8 {
		t.Errorf("only %d tokens were given", len(given))
	}
	for _, path := range []string{audit, log} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		said.Write(data)
	}
	for _, token := range given {
		if strings.Contains(said.String(), token) {
			t.Errorf("a token is in what was said or recorded: %s", token)
		}
	}
	if recorded := said.String(); !strings.Contains(recorded, `"signed in"`) || !strings.Contains(recorded, `"signing out"`) {
		t.Error("the sign-ins are not on record")
	}
}

// authorized is the client under test of the suite's scenarios about authorization: hearsay login for the person, hearsay mcp for the
// calls. A person who is told to sign in again does so, three times at most.
func authorized(hearsay, address string) error {
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "hearsay-authorized-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	oauth := "hosts: [\"localhost:*\"]"
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd" {
		oauth += ", client_id_metadata_url: \"https://conformance-test.local/client-metadata.json\""
	}
	if given.ClientSecret != "" { // who writes a secret knows whom it is for
		issuer, err := issuerOf(address)
		if err != nil {
			return err
		}
		oauth += fmt.Sprintf(", client_id: %q, client_secret: env:CONFORMANCE_SECRET, issuer: %q", given.ClientID, issuer)
	}
	file := filepath.Join(dir, "hearsay.yaml")
	text := fmt.Sprintf("servers:\n  srv:\n    url: %q\n    trust: first-party\n    oauth: {%s}\npermissions: {allow: [srv.*]}\ntools: {srv.test-tool: {effects: [read]}}\n", address, oauth)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	env := append(os.Environ(), "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR="+dir, "CONFORMANCE_SECRET="+given.ClientSecret)
	var flags []string
	for range 3 {
		if _, told, err := signIn(hearsay, file, env, flags...); err != nil {
			return fmt.Errorf("%w\n%s", err, told)
		}
		err = use(hearsay, file, env)
		if err == nil || !strings.Contains(err.Error(), "hearsay login srv") {
			return err
		}
		if flags = nil; strings.Contains(err.Error(), "--lacking") {
			flags = []string{"--lacking"}
		}
	}
	return err
}

// issuerOf asks the server for its authorization server, as an operator who registers a client looks it up.
func issuerOf(address string) (string, error) {
	resp, err := http.Get(strings.Replace(address, "/mcp", "/.well-known/oauth-protected-resource/mcp", 1))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var doc struct {
		Servers []string `json:"authorization_servers"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil || len(doc.Servers) == 0 {
		return "", fmt.Errorf("%s names no authorization server: %w", address, err)
	}
	return doc.Servers[0], nil
}

// use calls the suite's tool through the gateway.
func use(hearsay, file string, env []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.Command(hearsay, "mcp", "-c", file)
	cmd.Env, cmd.Stderr = env, os.Stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	if _, err := session.ListTools(ctx, nil); err != nil {
		return err
	}
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "test-tool", Arguments: map[string]any{}})
	return err
}

// Every scenario about authorization that a revision requires passes, with hearsay as the client.
func TestAuthorizationConformance(t *testing.T) {
	c := newConformance(t)
	script := filepath.Join(t.TempDir(), "client")
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' authorized '%s' \"$1\"\n", os.Args[0], c.hearsay)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	table := [][]string{{"revision", "scenario", "hearsay"}}
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(filepath.Dir(c.suite), "../requirements", revision+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var required struct {
				Client []string `yaml:"client"`
			}
			if err := yaml.Unmarshal(data, &required); err != nil {
				t.Fatal(err)
			}
			count := 0
			for _, scenario := range required.Client {
				if !strings.HasPrefix(scenario, "auth/") {
					continue
				}
				count++
				got := c.run(t, "client", "--command", script, "--scenario", scenario, "--spec-version", revision)[scenario]
				if got.failed > 0 || got.passed == 0 {
					t.Errorf("%s: %v", scenario, got)
				}
				table = append(table, []string{revision, scenario, got.String()})
			}
			if count < 10 {
				t.Errorf("only %d scenarios", count)
			}
		})
	}
	printTable(table)
}
