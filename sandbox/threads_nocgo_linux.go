//go:build linux && (amd64 || arm64) && !cgo

package sandbox

import "syscall"

// onAllThreads makes a call on every thread of the process.
//
//go:uintptrescapes
func onAllThreads(nr, a1, a2, a3 uintptr) (uintptr, uintptr, syscall.Errno) {
	return syscall.AllThreadsSyscall(nr, a1, a2, a3)
}
