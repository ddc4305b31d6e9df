package audit

import (
	"os"
	"path/filepath"
	"testing"
)

// A log whose file is gone and cannot be opened anew refuses events, and is closed in order.
func TestAFileThatCannotBeOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(Event{Kind: Decision}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(Event{Kind: Decision}); err == nil {
		t.Error("an event went into nothing")
	}
	if err := l.Note(Event{Kind: Result}); err == nil {
		t.Error("a note did not tell that the last write failed")
	}
	if err := l.Close(); err == nil {
		t.Error("closed as if the note were written")
	}
}
