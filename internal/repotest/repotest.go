// Package repotest finds the parts that tests need but a clone may lack, and holds the import table of the project as a test.
//
// Most tests need [Shared] (test data handed beside the project) or [Need] (a tool of the machine).
//
// # Limits
//
// It is for tests only; no package of the product imports it.
package repotest

import (
	"os"
	"path/filepath"
	"testing"
)

// Root returns the folder that holds go.mod, found upwards from the working folder of the test.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
}

// Shared returns the path of rel in the shared test data: $HEARSAY_SHARED, by default ../shared beside the project.
// Where it is absent the test is skipped by [Need].
func Shared(tb testing.TB, rel string) string {
	tb.Helper()
	base := os.Getenv("HEARSAY_SHARED")
	if base == "" {
		base = filepath.Join(Root(tb), "..", "shared")
	}
	path := filepath.Join(base, rel)
	_, err := os.Stat(path)
	Need(tb, "shared test data "+rel+" (set HEARSAY_SHARED)", err == nil)
	return path
}

// NPM returns the node_modules folder that holds the real MCP servers and clients: $HEARSAY_NPM, by default
// internal/realtest/node_modules (filled by `npm install` there). Where it is absent the test is skipped by [Need].
func NPM(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("HEARSAY_NPM")
	if dir == "" {
		dir = filepath.Join(Root(tb), "internal", "realtest", "node_modules")
	}
	_, err := os.Stat(filepath.Join(dir, "@modelcontextprotocol"))
	Need(tb, "npm packages (run npm install in internal/realtest, or set HEARSAY_NPM)", err == nil)
	return dir
}

// Need skips the test when ok is false and says what is lacking. With HEARSAY_REQUIRE=1, as in CI, it fails instead:
// there a skipped feature is a failure.
func Need(tb testing.TB, what string, ok bool) {
	tb.Helper()
	if ok {
		return
	}
	if os.Getenv("HEARSAY_REQUIRE") == "1" {
		tb.Fatalf("required here, but lacking: %s", what)
	}
	tb.Skipf("lacking: %s", what)
}
