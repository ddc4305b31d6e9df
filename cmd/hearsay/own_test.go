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

		Credentials: []config.Credential{{Secret: "file:" + filepath.Join(base, "key")}},
		Servers: map[string]*config.Server{"s": {
			Headers: map[string]string{"Authorization": "file:" + filepath.Join(base, "header")},
			OAuth:   &config.OAuth{ClientSecret: "file:" + filepath.Join(base, "secret")},
		}},
		Proxy: &config.Proxy{
			TLS:     &config.ProxyTLS{Key: filepath.Join(base, "tls")},
			Chain:   &config.ProxyChain{Password: "file:" + filepath.Join(base, "chain")},
			Clients: []config.ProxyClient{{Password: "file:" + filepath.Join(base, "login")}},
		},
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
	for _, path := range []string{filepath.Join(state, "oauth"), filepath.Join(state, "serve-token"), filepath.Join(base, "serve"), filepath.Join(base, "client"), filepath.Join(base, "page"),
		filepath.Join(base, "key"), filepath.Join(base, "header"), filepath.Join(base, "secret"),
		filepath.Join(base, "tls"), filepath.Join(base, "chain"), filepath.Join(base, "login")} {
		if !slices.Contains(spec.Hide, path) {
			t.Errorf("%s can be read", path)
		}
	}
}

func TestARecordLiesWhereTheSandboxDoesNotWrite(t *testing.T) {
	base := t.TempDir()
	project, logs, link := filepath.Join(base, "project"), filepath.Join(base, "logs"), filepath.Join(base, "link")
	for _, folder := range []string{filepath.Join(project, "sub"), logs} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(project, link); err != nil {
		t.Fatal(err)
	}
	rw := sandbox.Spec{Preset: sandbox.ProjectRW, Project: project}
	for _, row := range []struct {
		name string
		spec sandbox.Spec
		file string
		ok   bool
	}{
		{"in the project", rw, filepath.Join(project, "a.jsonl"), false},
		{"below it", rw, filepath.Join(project, "sub", "a.jsonl"), false},
		{"in it by a link", rw, filepath.Join(link, "a.jsonl"), false},
		{"the project by a link", sandbox.Spec{Preset: sandbox.ProjectRW, Project: link}, filepath.Join(project, "a.jsonl"), false},
		{"in a listed folder", sandbox.Spec{Write: []string{logs}}, filepath.Join(logs, "a.jsonl"), false},
		{"in the kept folder", sandbox.Spec{State: logs}, filepath.Join(logs, "a.jsonl"), false},
		{"in a project that is only read", sandbox.Spec{Preset: sandbox.ProjectRO, Project: project}, filepath.Join(project, "a.jsonl"), true},
		{"beside the project", rw, filepath.Join(logs, "a.jsonl"), true},
		{"in a folder whose name begins alike", sandbox.Spec{Write: []string{filepath.Join(base, "log")}}, filepath.Join(logs, "a.jsonl"), true},
	} {
		err := guardOwn(&row.spec, &config.File{Audit: &config.Audit{File: row.file}})
		if (err == nil) != row.ok {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
