//go:build !unix

package atomicfile

// SyncDir does nothing: a folder cannot be synced here.
func SyncDir(string) error { return nil }
