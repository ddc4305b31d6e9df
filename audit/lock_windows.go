package audit

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock takes the lock between processes, waiting for it, and returns what releases it.
func lock(f *os.File) (unlock func(), err error) {
	h := windows.Handle(f.Fd())
	// The byte far behind the head is locked, so that the head itself stays readable to hearsay audit.
	at := &windows.Overlapped{OffsetHigh: 1}
	if err := windows.LockFileEx(h, windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, at); err != nil {
		return nil, err
	}
	return func() { windows.UnlockFileEx(h, 0, 1, 0, at) }, nil
}
