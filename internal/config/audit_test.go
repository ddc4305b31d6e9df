package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// A gateway is started by a client from any folder: a record must not land in another place with every start.
func TestTheAuditFileIsOneFileFromEveryFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for written, want := range map[string]string{
		"~/audit.jsonl":        filepath.Join(home, "audit.jsonl"),
		"/var/log/audit.jsonl": "/var/log/audit.jsonl",
	} {
		f, err := Parse([]byte("audit: {file: " + written + "}\n"))
		if err != nil || f.Audit.File != want {
			t.Errorf("%s: %+v, %v", written, f, err)
		}
	}
	for _, written := range []string{"audit.jsonl", "../audit.jsonl", "~ann/audit.jsonl"} {
		if _, err := Parse([]byte("audit: {file: " + written + "}\n")); err == nil || !strings.Contains(err.Error(), "is relative") {
			t.Errorf("%s: %v", written, err)
		}
	}
}
