//go:build !unix

package atomicfile

import "io/fs"

// Shared says false: who may open what is in a profile is what its folder hands down, and no mode tells.
func Shared(fs.FileInfo) bool { return false }

// SyncDir does nothing: a folder cannot be synced here.
func SyncDir(string) error { return nil }
