//go:build unix

package audit

import (
	"os"
	"syscall"
)

// lock takes the lock between processes, waiting for it, and returns what releases it.
func lock(f *os.File) (unlock func(), err error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }, nil
		}
		if err != syscall.EINTR {
			return nil, err
		}
	}
}
