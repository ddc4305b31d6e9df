package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func kernel() {
	perm := errs(unix.EPERM)
	const k = "keys"
	add(k, "add a key", perm, func() error {
		_, err := unix.AddKey("user", "escape", []byte("x"), unix.KEY_SPEC_SESSION_KEYRING)
		return err
	})
	add(k, "request a key", perm, func() error {
		_, err := unix.RequestKey("user", "escape", "", unix.KEY_SPEC_SESSION_KEYRING)
		return err
	})
	add(k, "read the session's keys", perm, func() error {
		_, err := unix.KeyctlInt(unix.KEYCTL_READ, unix.KEY_SPEC_SESSION_KEYRING, 0, 0, 0)
		return err
	})
	add(k, "join another session of keys", perm, func() error { _, err := unix.KeyctlJoinSessionKeyring("escape"); return err })

	const c = "kernel"
	var zero [256]byte
	p := uintptr(unsafe.Pointer(&zero))
	for _, a := range []struct {
		name string
		nr   uintptr
		args []uintptr
	}{
		{"load a bpf program", unix.SYS_BPF, []uintptr{0, p, 64}},
		{"watch performance", unix.SYS_PERF_EVENT_OPEN, []uintptr{p, 0, ^uintptr(0), ^uintptr(0), 0}},
		{"handle page faults", unix.SYS_USERFAULTFD, []uintptr{0}},
		{"set up io_uring", unix.SYS_IO_URING_SETUP, []uintptr{1, p}},
		{"enter io_uring", unix.SYS_IO_URING_ENTER, []uintptr{0, 0, 0, 0, 0, 0}},
		{"register with io_uring", unix.SYS_IO_URING_REGISTER, []uintptr{0, 0, 0, 0}},
		{"load another kernel", unix.SYS_KEXEC_LOAD, []uintptr{0, 0, 0, 0}},
		{"load another kernel from a file", unix.SYS_KEXEC_FILE_LOAD, []uintptr{0, 0, 0, 0, 0}},
		{"load a module", unix.SYS_INIT_MODULE, []uintptr{p, 0, p}},
		{"load a module from a file", unix.SYS_FINIT_MODULE, []uintptr{0, p, 0}},
		{"unload a module", unix.SYS_DELETE_MODULE, []uintptr{p, 0}},
		{"restart the machine", unix.SYS_REBOOT, []uintptr{0, 0, 0, 0}},
		{"swap on", unix.SYS_SWAPON, []uintptr{p, 0}},
		{"swap off", unix.SYS_SWAPOFF, []uintptr{p}},
		{"account processes", unix.SYS_ACCT, []uintptr{0}},
		{"read the kernel's log", unix.SYS_SYSLOG, []uintptr{3, p, 256}},
		{"set the time", unix.SYS_SETTIMEOFDAY, []uintptr{p, 0}},
		{"set a clock", unix.SYS_CLOCK_SETTIME, []uintptr{0, p}},
		{"adjust the clock", unix.SYS_ADJTIMEX, []uintptr{p}},
		{"set the host's name", unix.SYS_SETHOSTNAME, []uintptr{p, 1}},
		{"set the domain's name", unix.SYS_SETDOMAINNAME, []uintptr{p, 1}},
		{"hang up a terminal", unix.SYS_VHANGUP, nil},
		{"set quotas", unix.SYS_QUOTACTL, []uintptr{0, 0, 0, 0}},
		{"watch all files", unix.SYS_FANOTIFY_INIT, []uintptr{0, 0}},
		{"mark all files", unix.SYS_FANOTIFY_MARK, []uintptr{0, 0, 0, 0, 0}},
		{"switch randomisation off", unix.SYS_PERSONALITY, []uintptr{0x40000}},
		{"map the zero page", unix.SYS_PERSONALITY, []uintptr{0x100000}},
		{"make data executable", unix.SYS_PERSONALITY, []uintptr{0x400000}},
		{"list the mounts by number", unix.SYS_LISTMOUNT, []uintptr{p, p, 1, 0}},
		{"look at a mount by number", unix.SYS_STATMOUNT, []uintptr{p, p, 256, 0}},
		{"move memory between nodes", unix.SYS_MBIND, []uintptr{0, 0, 0, 0, 0, 0}},
		{"list the security modules", unix.SYS_LSM_LIST_MODULES, []uintptr{p, p, 0}},
	} {
		add(c, a.name, perm, func() error { return call(a.nr, a.args...) })
	}
}
