//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

func native() arch {
	if runtime.GOARCH == arm64.name {
		return arm64
	}
	return amd64
}

// loadFilter sets the filter on every thread of the process. It needs no_new_privs. It returns the number of instructions.
func loadFilter(which sockets) (int, error) {
	code, err := filter(native(), which)
	if err != nil {
		return 0, err
	}
	raw, err := bpf.Assemble(code)
	if err != nil {
		return 0, err
	}
	prog := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		prog[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return 0, fmt.Errorf("loading the filter: %w", errno)
	}
	if thread != 0 {
		return 0, fmt.Errorf("loading the filter: thread %d refused it", thread)
	}
	return len(prog), nil
}
