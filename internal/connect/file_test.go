//go:build unix

package connect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWriteKeepsModeAndLink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
	write(t, real, "one", 0o640)
	if err := os.Symlink("real.json", link); err != nil {
		t.Fatal(err)
	}
	f := open(t, link)
	if err := f.Write([]byte("two")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(real)
	if err != nil {
		t.Fatal(err)
	}
	if content(t, real) != "two" || info.Mode() != 0o640 {
		t.Errorf("%q, %v", content(t, real), info.Mode())
	}
	if to, err := os.Readlink(link); err != nil || to != "real.json" {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("something was left: %v", entries)
	}
}

func TestNoCopyIsWrittenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	for i, text := range []string{"one", "two", "two", "three"} {
		write(t, path, text, 0o644)
		kept, err := open(t, path).Keep()
		if err != nil {
			t.Fatal(err)
		}
		want := []string{".hearsay-backup", ".hearsay-backup-2", ".hearsay-backup-2", ".hearsay-backup-3"}[i]
		info, err := os.Lstat(kept)
		if err != nil {
			t.Fatal(err)
		}
		if kept != path+want || info.Mode() != 0o600 || content(t, kept) != text {
			t.Errorf("%s: %v %q", kept, info.Mode(), content(t, kept))
		}
	}
	copies, paths, err := open(t, path).Kept()
	if err != nil || len(copies) != 3 || string(copies[0]) != "one" || string(copies[2]) != "three" {
		t.Errorf("%v %q %v", paths, copies, err)
	}
	// One that a person removed leaves no place for a newer one among older ones.
	if err := os.Remove(path + ".hearsay-backup-2"); err != nil {
		t.Fatal(err)
	}
	write(t, path, "four", 0o644)
	if kept, err := open(t, path).Keep(); err != nil || kept != path+".hearsay-backup-4" {
		t.Errorf("%s, %v", kept, err)
	}
	if content(t, path+".hearsay-backup") != "one" {
		t.Error("the first copy is lost")
	}
}

func TestChangedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	for name, change := range map[string]func(){
		"other bytes":    func() { write(t, path, "two", 0o600) },
		"another file":   func() { write(t, path+".new", "one", 0o600); os.Rename(path+".new", path) },
		"no file":        func() { os.Remove(path) },
		"a longer file":  func() { write(t, path, "one and more", 0o600) },
		"the other case": nil,
	} {
		t.Run(name, func(t *testing.T) {
			os.Remove(path)
			if change == nil {
				f := open(t, path)
				write(t, path, "made by somebody", 0o600)
				if err := f.Write([]byte("mine")); !errors.Is(err, ErrChanged) || content(t, path) != "made by somebody" {
					t.Errorf("%v: %q", err, content(t, path))
				}
				return
			}
			write(t, path, "one", 0o600)
			f := open(t, path)
			change()
			if err := f.Write([]byte("mine")); !errors.Is(err, ErrChanged) {
				t.Errorf("written over: %v", err)
			}
			if data, err := os.ReadFile(path); err == nil && string(data) == "mine" {
				t.Error("written all the same")
			}
		})
	}
}

// A project's file that is a link to the user's own would have the user's secrets copied into the project.
func TestProjectFileLeadsNowhereElse(t *testing.T) {
	dir := t.TempDir()
	project := filepath.Join(dir, "app")
	for _, name := range []string{"home", "app", "app/.vscode"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "home", "mcp.json"), "x", 0o600)
	write(t, filepath.Join(project, "real.json"), "x", 0o600)
	for link, to := range map[string]string{".mcp.json": "../home/mcp.json", ".cursor": "../home", "inner.json": "real.json"} {
		if err := os.Symlink(to, filepath.Join(project, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, ok := range map[string]bool{".mcp.json": false, ".cursor/mcp.json": false, ".cursor/none.json": false, "inner.json": true, "real.json": true, ".vscode/mcp.json": true, "none.json": true} {
		if err := open(t, filepath.Join(project, path)).Within(project); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestMadeAndRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	f := open(t, path)
	if f.Data != nil {
		t.Fatalf("%q", f.Data)
	}
	if _, err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	if err := f.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 || content(t, path) != "new" {
		t.Errorf("%v %v", info, err)
	}
	if err := open(t, path).Write(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("it is still there")
	}
}

func TestFilesThatAreNotOpened(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	for name, tt := range map[string]struct {
		make func()
		why  string
	}{
		"a folder":                {func() { os.Mkdir(path, 0o700) }, "no regular file"},
		"a link to nothing":       {func() { os.Symlink("nothing", path) }, "link to nothing"},
		"a link to a device":      {func() { os.Symlink("/dev/zero", path) }, "no regular file"},
		"a file of several names": {func() { write(t, path, "x", 0o600); os.Link(path, path+".other") }, "several names"},
		"a large file":            {func() { write(t, path, strings.Repeat(" ", MaxFile+1), 0o600) }, "larger"},
	} {
		t.Run(name, func(t *testing.T) {
			os.RemoveAll(path)
			os.RemoveAll(path + ".other")
			tt.make()
			if _, err := Open(path); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%v, want it to say %q", err, tt.why)
			}
		})
	}
}

// A file of somebody else is not touched, a link to one neither: root is no exception.
func TestFileOfAnotherUser(t *testing.T) {
	repotest.Need(t, "root, to give a file away", os.Geteuid() == 0)
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	write(t, path, "x", 0o644)
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, path+".link"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, path + ".link"} {
		if _, err := Open(p); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("%s: %v", p, err)
		}
	}
	if err := os.Chown(path, os.Geteuid(), 12345); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Write([]byte("y")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if group(info) != 12345 {
		t.Errorf("its group is %d now", group(info))
	}
}

func group(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Gid) }
