package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-4e9f7b04/hearsay/internal/atomicfile"
)

// MaxFile bounds a configuration file: above what clients write, a history among it included, and below what a parser's tree of
// it would cost in memory.
const MaxFile = 16 << 20

// maxKept bounds how many copies are kept beside a file.
const maxKept = 99

// File is a configuration file as it was read.
type File struct {
	Path string // as it was named, absolute
	Data []byte // nil: it is not there

	real string // what Path leads to
	info fs.FileInfo
}

// Open reads the file at path. A symbolic link is followed to a regular file of this user, and nowhere else. A file that is not
// there is no error.
func Open(path string) (*File, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: abs}
	f.real, err = filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(abs); err == nil {
			return nil, fmt.Errorf("%s is a symbolic link to nothing", abs)
		}
		f.real = abs
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	f.Data, f.info, err = readOwn(f.real)
	if err != nil {
		return nil, err
	}
	if f.Data == nil {
		f.Data = []byte{}
	}
	return f, nil
}

// Within refuses a file that a link leads out of dir: the file of a project is not the way to a file elsewhere, whose copy
// would then lie in the project.
func (f *File) Within(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if real, err = filepath.Abs(real); err != nil {
		return err
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(f.Path)); err == nil {
		for _, path := range []string{f.real, filepath.Join(folder, filepath.Base(f.Path))} {
			if rel, err := filepath.Rel(real, path); err != nil || !filepath.IsLocal(rel) {
				return fmt.Errorf("%s leads out of %s: name the file that is meant with --file", f.Path, dir)
			}
		}
	}
	return nil
}

// readOwn reads a regular file of this user.
func readOwn(path string) ([]byte, fs.FileInfo, error) {
	in, err := openNoFollow(path)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no regular file", path)
	}
	if err := checkOwner(info); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	data, err := io.ReadAll(io.LimitReader(in, MaxFile+1))
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(data) > MaxFile {
		return nil, nil, fmt.Errorf("%s is larger than %d bytes", path, MaxFile)
	}
	return data, info, nil
}

// Kept reads the copies beside the file, the oldest first. None is no error.
func (f *File) Kept() (copies [][]byte, paths []string, err error) {
	for i := 1; i <= maxKept; i++ {
		data, _, err := readOwn(f.keptPath(i))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a person may have removed one
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading a copy: %w", err)
		}
		copies, paths = append(copies, data), append(paths, f.keptPath(i))
	}
	return copies, paths, nil
}

func (f *File) keptPath(i int) string {
	path := f.Path + ".hearsay-backup"
	if i > 1 {
		path += fmt.Sprintf("-%d", i)
	}
	return path
}

// Keep writes a copy of the file as it was read beside it, readable by its owner only, and gives its path. No earlier copy is
// touched; one that is the same serves.
func (f *File) Keep() (string, error) {
	copies, paths, err := f.Kept()
	if err != nil {
		return "", err
	}
	if n := len(copies); n > 0 && bytes.Equal(copies[n-1], f.Data) {
		return paths[n-1], nil
	}
	next := 1 // behind the newest: Undo takes them in order
	for i := 1; i <= maxKept; i++ {
		if n := len(paths); n > 0 && paths[n-1] == f.keptPath(i) {
			next = i + 1
		}
	}
	if next > maxKept {
		return "", fmt.Errorf("there are %d copies beside %s: remove those you do not need", maxKept, f.Path)
	}
	path := f.keptPath(next)
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("keeping a copy: %w", err)
	}
	_, err = out.Write(f.Data)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		os.Remove(path)
		return "", fmt.Errorf("keeping a copy: %w", err)
	}
	return path, nil
}

// ErrChanged says that the file is no longer what was read.
var ErrChanged = errors.New("the file was changed meanwhile, so nothing was written: try again")

// Write replaces the file in one step, with the mode and group it has; nil removes it. A file that is not what was read stays,
// and the error is [ErrChanged].
func (f *File) Write(data []byte) error {
	if err := f.same(); err != nil {
		return err
	}
	if data == nil {
		return os.Remove(f.real)
	}
	out, err := atomicfile.Create(f.real)
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	defer out.Discard()
	_, err = out.Write(data)
	if err == nil && f.info != nil {
		err = errors.Join(keepGroup(out.File, f.info), out.Chmod(f.info.Mode().Perm()))
	}
	if err := errors.Join(err, out.Sync()); err != nil { // what may take long, before the last look
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	if err := f.same(); err != nil {
		return err
	}
	if f.info != nil {
		err = out.Replace()
	} else if err = out.Place(); errors.Is(err, fs.ErrExist) { // somebody made it meanwhile
		return ErrChanged
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	return nil
}

// same reports whether the file still is what was read: the same file with the same bytes.
func (f *File) same() error {
	data, info, err := readOwn(f.real)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.info == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) || err == nil && f.info == nil:
		return ErrChanged
	case err != nil:
		return err
	case !os.SameFile(info, f.info) || !bytes.Equal(data, f.Data):
		return ErrChanged
	}
	return nil
}
