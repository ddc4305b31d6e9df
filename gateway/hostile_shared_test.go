package gateway

import (
	"path/filepath"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

func TestSharedHostileTranscripts(t *testing.T) {
	if testing.Short() {
		t.Skip("plays every transcript as processes: a minute")
	}
	files, err := filepath.Glob(filepath.Join(repotest.Shared(t, "mcp-hostile"), "*.jsonl"))
	if err != nil || len(files) < 50 {
		t.Fatalf("shared transcripts: %d, %v", len(files), err)
	}
	for _, path := range files {
		playHostile(t, path, "")
	}
}
