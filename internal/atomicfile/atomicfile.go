// Package atomicfile replaces a file in one step: whoever reads it meanwhile, or after a crash, finds the old content or the new, whole; and
// makes the folder that only its user can enter, for what nobody else may read.
//
// [Write] does it at once. [Create] gives the new file first, for a caller that wants room on the disk before it has the content, or
// looks once more before it replaces anything. [Folder] makes or checks a folder.
//
// # Limits
//
// The folder must be one that nobody else writes to: whoever can, can exchange the file as well. A link at the path is replaced, not
// followed; follow it before where that is wanted. Between two writers the later one wins: a lock is the caller's matter. On Windows
// a rename outlives a crash of the program, not always one of the machine.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// fresh is between a file's name and the random part of a new one's.
const fresh = ".new-"

// Write replaces the file at path, or makes it, durably, with this mode.
func Write(path string, data []byte, mode fs.FileMode) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return f.Replace()
}

// File is a new file that has not taken its place. Its mode is 0600 until the caller changes it. It ends with Replace, Place or
// Discard; Discard is for nothing after one of the others succeeded.
type File struct {
	*os.File
	path   string
	placed bool
}

// Create makes a new file for path, in the same folder and of a name of its own.
func Create(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+fresh+"*")
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path}, nil
}

// Replace puts the file at its path, over what is there. It is durable on return.
func (f *File) Replace() error { return f.put(os.Rename) }

// Place puts the file at its path where nothing is; the error is [fs.ErrExist] where something is, a link that leads nowhere among it.
func (f *File) Place() error {
	return f.put(func(from, to string) error {
		if err := os.Link(from, to); err != nil {
			return err
		}
		return os.Remove(from)
	})
}

func (f *File) put(move func(from, to string) error) error {
	// It is closed first: an open file keeps its name on Windows.
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := move(f.Name(), f.path); err != nil {
		return err
	}
	f.placed = true
	return SyncDir(filepath.Dir(f.path))
}

// Discard removes a file that did not take its place.
func (f *File) Discard() {
	if !f.placed {
		f.Close()
		os.Remove(f.Name())
	}
}

// Sweep removes new files for path that a process left which was killed. The caller holds the right to write path alone.
func Sweep(path string) {
	dir, prefix := filepath.Dir(path), "."+filepath.Base(path)+fresh
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if len(e.Name()) > len(prefix) && e.Name()[:len(prefix)] == prefix {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
