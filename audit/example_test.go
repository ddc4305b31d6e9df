package audit_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-4e9f7b04/hearsay/audit"
)

func Example() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "audit.jsonl")

	log, err := audit.Open(path, audit.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	args := map[string]any{"to": "someone@example.org", "body": "…"}
	if err := log.Append(audit.Event{Kind: audit.Decision, Server: "mail", Tool: "send", Answer: "deny", Reason: "not-grounded", Shape: audit.Shape(args)}); err != nil {
		fmt.Println("the call must not happen:", err)
	}
	log.Close()

	f, err := os.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	report, err := audit.Verify(f)
	fmt.Println(report.OK(), report.Lines, err)
	// Output: true 1 <nil>
}
