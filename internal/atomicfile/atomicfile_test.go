package atomicfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, tt := range []struct {
		text string
		mode fs.FileMode
	}{{"one", 0o600}, {"longer than one", 0o644}, {"", 0o600}} {
		if err := Write(path, []byte(tt.text), tt.mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || content(t, path) != tt.text || info.Mode() != tt.mode {
			t.Errorf("%q, %v, %v", content(t, path), info.Mode(), err)
		}
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
	if err := Write(filepath.Join(dir, "absent", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	if err := Write(dir, nil, 0o600); err == nil { // a folder in its place
		t.Error("a folder was replaced")
	}
	if got := names(t, filepath.Dir(dir)); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

// The file that a reader has open, or opens at any time, is whole.
func TestAReaderSeesTheOldFileOrTheNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	a, b := bytes.Repeat([]byte("a"), 1<<20), bytes.Repeat([]byte("b"), 1<<19)
	if err := Write(path, a, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 50 && err == nil; i++ {
			err = Write(path, [][]byte{b, a}[i%2], 0o600)
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
		if got := content(t, path); got != string(a) && got != string(b) {
			t.Fatalf("%d bytes that are neither", len(got))
		}
	}
}

func TestUntilItTakesItsPlaceNothingChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("new")
	if info, err := f.Stat(); err != nil || info.Mode() != 0o600 || content(t, path) != "old" {
		t.Errorf("%v, %v, %q", info, err, content(t, path))
	}
	if err := f.Place(); !errors.Is(err, fs.ErrExist) || content(t, path) != "old" {
		t.Errorf("placed over another: %v", err)
	}
	f.Discard()
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
	os.Remove(path)
	if err := os.Symlink("nowhere", path); err != nil {
		t.Fatal(err)
	}
	if f, err = Create(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Place(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("placed over a link: %v", err)
	}
	f.Discard()
	os.Remove(path)
	if f, err = Create(path); err != nil {
		t.Fatal(err)
	}
	f.WriteString("new")
	if err := f.Place(); err != nil || content(t, path) != "new" {
		t.Error(err)
	}
	f.Discard()
	if got := names(t, dir); len(got) != 1 || content(t, path) != "new" {
		t.Errorf("afterwards: %q", got)
	}
}

func TestALinkIsReplaced(t *testing.T) {
	dir := t.TempDir()
	elsewhere, path := filepath.Join(dir, "elsewhere"), filepath.Join(dir, "file")
	if err := os.WriteFile(elsewhere, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("ours"), 0o600); err != nil || content(t, elsewhere) != "theirs" || content(t, path) != "ours" {
		t.Errorf("%v, %q", err, content(t, elsewhere))
	}
}

func TestWhatAKilledProcessLeftIsSwept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file*?[")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close() // and the process is gone
	other, err := Create(filepath.Join(dir, "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Discard()
	if err := Write(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	Sweep(path)
	if got := names(t, dir); len(got) != 2 || got[1] != "file*?[" {
		t.Errorf("%q", got)
	}
}
