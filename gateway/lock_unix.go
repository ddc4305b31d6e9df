//go:build unix

package gateway

import (
	"errors"
	"os"
	"syscall"
)

var errHeld = errors.New("the lock is held")

// tryLock takes an exclusive lock that ends with the file's descriptor, and so with the process.
func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errHeld
	}
	return err
}
