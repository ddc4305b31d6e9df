package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "token")
	first, err := Token(path)
	if err != nil || len(first) < 16 {
		t.Fatal(first, err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("made with mode %v", info.Mode())
	}
	if again, err := Token(path); err != nil || again != first {
		t.Errorf("read back %q, %v", again, err)
	}
	os.Chmod(path, 0o644)
	if _, err := Token(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("an open file: %v", err)
	}
	os.Chmod(path, 0o600)
	os.WriteFile(path, []byte("short\n"), 0o600)
	if _, err := Token(path); err == nil {
		t.Error("a short token was taken")
	}
}

func TestApprovalsSection(t *testing.T) {
	f, err := Parse([]byte("approvals:\n  timeout: 90s\n  elicit: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	if opt, err := f.Approvals.Desk(); err != nil || opt.Timeout.Seconds() != 90 {
		t.Errorf("%+v %v", opt, err)
	}
	for _, bad := range []string{"approvals:\n  timeout: soon\n", "approvals:\n  timeout: -5m\n"} {
		f, err := Parse([]byte(bad))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Approvals.Desk(); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if opt, err := (*Approvals)(nil).Page(); err != nil || len(opt.Token) < 16 {
		t.Errorf("without a section: %+v %v", opt, err)
	}
}

func TestUnknownAndDuplicateKeysShowTheirLine(t *testing.T) {
	for doc, want := range map[string]string{
		"approvals:\n  timeot: 5m\n":               "timeot",
		"audit:\n  file: a\n  file: b\n":           "file",
		"egress:\n  allow: [a.example]\nserver: 1": "server",
		"egress:\n  allow: 5\n":                    "allow",
	} {
		_, err := Parse([]byte(doc))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "|") {
			t.Errorf("%q: %v", doc, err)
		}
	}
	if _, err := Parse(nil); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}
