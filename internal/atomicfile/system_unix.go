//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
)

// Shared reports whether others than its owner can open a file or folder.
func Shared(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// SyncDir has what was made, renamed or removed in a folder outlive a crash of the machine.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
