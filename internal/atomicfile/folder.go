package atomicfile

import (
	"fmt"
	"os"
)

// Folder makes a folder that only its user can enter, and what is missing above it. One that is there already, and that others can open or
// that is a link, is an error: what lies in it may be known, or not ours.
func Folder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", dir)
	case Shared(info):
		return fmt.Errorf("%s: others may open it (mode %04o); if nobody has, chmod go= it", dir, info.Mode().Perm())
	}
	return nil
}
