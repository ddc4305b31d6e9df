package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// A folder that an operator lists may hold what hearsay itself obeys and keeps.
func TestGuardOwn(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_STATE_HOME", base)
	state := filepath.Join(base, "hearsay")
	file := &config.File{
		Path:      filepath.Join(base, "hearsay.yaml"),
		Serve:     &config.Serve{TokenFile: filepath.Join(base, "serve"), Clients: []config.Client{{Name: "a", TokenFile: filepath.Join(base, "client")}}},
		Approvals: &config.Approvals{TokenFile: filepath.Join(base, "page")},
	}
	var before sandbox.Spec
	if err := guardOwn(&before, file); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(before.Guard, state) {
		t.Error("a folder that is not there would be made for the run")
	}
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	var spec sandbox.Spec
	if err := guardOwn(&spec, file); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file.Path, state} {
		if !slices.Contains(spec.Guard, path) {
			t.Errorf("%s can be changed", path)
		}
	}
	for _, path := range []string{filepath.Join(state, "oauth"), filepath.Join(state, "serve-token"), filepath.Join(base, "serve"), filepath.Join(base, "client"), filepath.Join(base, "page")} {
		if !slices.Contains(spec.Hide, path) {
			t.Errorf("%s can be read", path)
		}
	}
}
