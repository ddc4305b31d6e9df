//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// lastCapability is above every capability of today; the kernel says EINVAL for those it does not know.
const lastCapability = 63

// dropCapabilities empties all five sets on every thread and forbids gaining any by an exec.
func dropCapabilities() error {
	if _, _, errno := psx.Syscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("forbidding new privileges: %w", errno)
	}
	for c := uintptr(0); c <= lastCapability; c++ {
		// On this thread alone: only what it starts can exec.
		if _, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); errno == unix.EINVAL {
			break
		} else if errno != 0 {
			return fmt.Errorf("dropping capability %d from the bounding set: %w", c, errno)
		}
	}
	if _, _, errno := psx.Syscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("clearing the ambient set: %w", errno)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if _, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0); errno != 0 {
		return fmt.Errorf("emptying the sets: %w", errno)
	}
	return nil
}

// setLimits bounds what one process may take.
func setLimits(p *plan) error {
	set := func(what int, name string, soft, hard uint64) error {
		if err := syscall.Setrlimit(what, &syscall.Rlimit{Cur: soft, Max: hard}); err != nil {
			return fmt.Errorf("limiting %s: %w", name, err)
		}
		return nil
	}
	if err := set(unix.RLIMIT_CORE, "core files", 0, 0); err != nil {
		return err
	}
	if err := set(unix.RLIMIT_NPROC, "processes", p.Procs, p.Procs); err != nil {
		return err
	}
	// Setrlimit of package syscall, as the runtime would otherwise give its own earlier limit to what it starts.
	return set(unix.RLIMIT_NOFILE, "open files", p.OpenMax, p.OpenMax)
}
