package oauth

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// private looks at the kind of file only: who may open it is what the profile's folder hands down.
func private(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	return nil
}

// tryLock takes the lock between processes, if nobody holds it. It ends with the file's handle, and so with the process.
func tryLock(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
