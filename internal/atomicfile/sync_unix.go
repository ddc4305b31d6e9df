//go:build unix

package atomicfile

import "os"

// SyncDir has what was made, renamed or removed in a folder outlive a crash of the machine.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
