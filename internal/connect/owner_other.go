//go:build !unix

package connect

import (
	"errors"
	"io/fs"
	"os"
)

var errSystem = errors.New("hearsay connect edits files on Linux and macOS only, where it can tell whose they are; put hearsay mcp before the command of a server yourself")

func openNoFollow(string) (*os.File, error) { return nil, errSystem }

func checkOwner(fs.FileInfo) error { return errSystem }

func keepGroup(*os.File, fs.FileInfo) error { return errSystem }
