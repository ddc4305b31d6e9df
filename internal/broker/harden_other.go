//go:build !linux

package broker

// Harden does nothing where the kernel offers nothing for it.
func Harden() error { return nil }
