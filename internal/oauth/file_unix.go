//go:build unix

package oauth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/seed-4e9f7b04/hearsay/internal/atomicfile"
)

// private refuses a file that is not this user's alone.
func private(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return errors.New("it belongs to another user")
	}
	if atomicfile.Shared(info) {
		return fmt.Errorf("others may open it (mode %04o); if nobody has read it, chmod go= %s", info.Mode().Perm(), info.Name())
	}
	return nil
}

// tryLock takes the lock between processes, if nobody holds it. It ends with the file's descriptor, and so with the process.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
