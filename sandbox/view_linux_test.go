//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What may be listed: no root, nothing of the sandbox's own, nothing that is neither file nor folder.
func TestListedPathsRefused(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink("/", filepath.Join(dir, "everything")))
	must(os.Symlink("/proc/self", filepath.Join(dir, "procs")))
	for path, want := range map[string]string{
		"/": "whole file system", dir + "/everything": "whole file system", "/proc": "sandbox's own", dir + "/procs": "sandbox's own", "/sys/kernel": "sandbox's own",
		"/dev/null": "sandbox's own", dir + "/../../../..": "whole file system", dir + "/nothing": "no such file",
	} {
		if _, err := newView(&Spec{Args: []string{"x"}, Read: []string{path}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// The system is open for writing in no sandbox, also where somebody stands in it and makes it the project.
func TestSystemIsNeverWritable(t *testing.T) {
	bin, err := filepath.EvalSymlinks("/bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/usr", "/etc", bin, "/bin"} {
		for _, s := range []*Spec{{Args: []string{"x"}, Write: []string{path}}, {Args: []string{"x"}, Preset: ProjectRW, Project: path}} {
			if _, err := newView(s); err == nil || !strings.Contains(err.Error(), "read-only in every sandbox") {
				t.Errorf("%s %v: %v", path, s.Preset, err)
			}
		}
		if _, err := newView(&Spec{Args: []string{"x"}, Read: []string{path}}); err != nil {
			t.Errorf("reading %s: %v", path, err)
		}
	}
	if err := checkWritable("/usr/src/app"); err != nil {
		t.Error(err)
	}
}

// What is hidden by default is listed by its own name or not at all: a link to it in a project is whoever's who could write there.
func TestHiddenIsListedByItsOwnName(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(dir, path) }
	for _, d := range []string{"data/ann/.ssh", "data/ann/project"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("data/ann/.ssh/id"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"home": "data/ann", "data/ann/project/notes": "data/ann/.ssh", "data/ann/project/up": "data/ann", "data/ann/project/key": "data/ann/.ssh/id"} {
		if err := os.Symlink(at(to), at(name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", at("home"))
	for path, okay := range map[string]bool{
		"home/.ssh": true, "home/.ssh/id": true, "data/ann/.ssh/id": true, "data/ann/project": true,
		"data/ann/project/notes": false, "data/ann/project/notes/id": false, "data/ann/project/key": false,
		"data/ann/project/up": true, // the home, where it is covered
	} {
		if _, err := newView(&Spec{Args: []string{"x"}, Read: []string{at(path)}}); (err == nil) != okay || err != nil && !strings.Contains(err.Error(), "by its own name") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := newView(&Spec{Args: []string{"x"}, Read: []string{at("data/ann/project/key"), at("home/.ssh/id")}}); err != nil {
		t.Errorf("by both: %v", err)
	}
}

func TestReservedPlaces(t *testing.T) {
	for path, want := range map[string]string{
		"/home": "lies in it", "/run": "lies in it", "/run/hearsay": "sandbox's own", "/run/hearsay/witness": "sandbox's own", HomeDir: "sandbox's own", StateDir + "/x": "sandbox's own",
		HomeDir + "/project": "", HomeDir + "2": "", "/home/ann": "", "/run/lock": "", "/tmp": "", "/etc": "",
	} {
		if err := checkReserved(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// A deeper mount comes after what it lies in, a cover after the pin at the same place.
func TestViewOrder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", filepath.Join(dir, "home"))
	for _, d := range []string{"p/.git/hooks", "p/.git/info", "p/a/b/secret"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	project := filepath.Join(dir, "p")
	v, err := newView(&Spec{Args: []string{"x"}, Preset: ProjectRW, Project: project, Hide: []string{filepath.Join(project, "a/b/secret")}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string, a access) int {
		return slices.IndexFunc(v.entries, func(e entry) bool { return e.Target == filepath.Join(project, path) && e.Access == a })
	}
	for _, chain := range [][]int{
		{at("", writable), at(".git", pinned), at(".git/hooks", protected)},
		{at("", writable), at("a", pinned), at("a/b", pinned), at("a/b/secret", hidden)},
	} {
		if slices.Contains(chain, -1) || !slices.IsSorted(chain) {
			t.Errorf("order %v in %+v", chain, v.entries)
		}
	}
	for _, h := range v.holds {
		if !within(h.Path, project) {
			t.Errorf("a hold outside of the project: %s", h.Path)
		}
	}
	if len(v.holds) == 0 {
		t.Error("nothing is held")
	}
}

func TestWithin(t *testing.T) {
	for _, r := range []struct {
		path, root string
		want       bool
	}{{"/a/b", "/a", true}, {"/a", "/a", true}, {"/ab", "/a", false}, {"/", "/a", false}, {"/a", "/", true}} {
		if within(r.path, r.root) != r.want {
			t.Errorf("within(%q, %q) is not %v", r.path, r.root, r.want)
		}
	}
}

// A configuration may name anything: what is no plain file is not opened, and circles end.
func TestGitConfigurationThatNamesOddFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, ".git/config")
	text := "[include]\npath = config\npath = ../.git/config\npath = /dev/zero\npath = /proc/kmsg\npath = " + pipe + "\npath=..\n[core]\nhooksPath = /\nhooksPath = ..\nhooksPath = .\nhooksPath = a\\"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	named := readGitNamed(dir, dir, config)
	if want := []string{"/", filepath.Dir(dir), dir, filepath.Join(dir, `a\`)}; !slices.Equal(named.hooks, want) {
		t.Errorf("hooks: %q, want %q", named.hooks, want)
	}
	if want := []string{"/dev/zero", "/proc/kmsg", pipe, dir}; !slices.Equal(named.included, want) {
		t.Errorf("included: %q, want %q", named.included, want)
	}
}
