//go:build unix

package atomicfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 { // made, and there
		if err := Folder(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, made := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", made, info, err)
		}
	}
	link, file := filepath.Join(filepath.Dir(dir), "link"), filepath.Join(dir, "file")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{link: "is no folder", file: "not a directory"} {
		if err := Folder(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, mode := range []os.FileMode{0o755, 0o710, 0o701, 0o770} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := Folder(dir); err == nil || !strings.Contains(err.Error(), "others may open it") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}
