//go:build linux && (amd64 || arm64) && cgo

package sandbox

import (
	"syscall"

	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// onAllThreads makes a call on every thread of the process; with C in the program the runtime does not know them all.
//
//go:uintptrescapes
func onAllThreads(nr, a1, a2, a3 uintptr) (uintptr, uintptr, syscall.Errno) {
	return psx.Syscall3(nr, a1, a2, a3)
}
