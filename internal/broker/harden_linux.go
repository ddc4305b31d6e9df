package broker

import (
	"os"
	"syscall"
)

// Harden keeps this process's memory, where the secrets are, from other processes of the same user and out of core dumps. It
// makes /proc/PID of this process root's, which also keeps it from mapping users in a namespace it makes later: call it in a
// process that only proxies.
func Harden() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return os.NewSyscallError("setrlimit", err)
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return os.NewSyscallError("prctl", errno)
	}
	return nil
}
