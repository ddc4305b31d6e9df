//go:build unix

package connect

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openNoFollow opens what is at path itself, and does not wait for the other end of a pipe.
func openNoFollow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// checkOwner refuses a file of somebody else, and one with several names: the rename would leave the others as they were.
func checkOwner(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("whose file it is cannot be told")
	}
	if int(stat.Uid) != os.Geteuid() {
		return errors.New("it belongs to another user")
	}
	if stat.Nlink > 1 {
		return errors.New("it has several names (hard links): connect would separate them")
	}
	return nil
}

// keepGroup gives a new file the group of the one it replaces.
func keepGroup(f *os.File, was fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	from, to := info.Sys().(*syscall.Stat_t), was.Sys().(*syscall.Stat_t)
	if from.Gid == to.Gid {
		return nil
	}
	return f.Chown(-1, int(to.Gid))
}
