//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lastCapability is above every capability of today; the kernel says EINVAL for those it does not know.
const lastCapability = 63

// dropCapabilities empties all five sets and forbids gaining any by an exec. Only who may set capabilities can empty the bounding set.
func dropCapabilities(bounding bool) error {
	// On this thread alone: only what it starts can exec. The filter takes the other threads along.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbidding new privileges: %w", err)
	}
	for c := uintptr(0); bounding && c <= lastCapability; c++ {
		if _, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); errno == unix.EINVAL {
			break
		} else if errno != 0 {
			return fmt.Errorf("dropping capability %d from the bounding set: %w", c, errno)
		}
	}
	// On every thread. The ambient set shrinks with the permitted one.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if _, _, errno := onAllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0); errno != 0 {
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
