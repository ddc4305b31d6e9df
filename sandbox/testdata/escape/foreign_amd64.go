package main

import "golang.org/x/sys/unix"

// int80 makes the 32-bit call getpid.
func int80()

// x32 makes the x32 call getpid.
func x32() { unix.RawSyscall(0x40000000|unix.SYS_GETPID, 0, 0, 0) }

func foreign() {
	const k = "foreign calls"
	add(k, "a 32-bit call", errs(killed(unix.SIGSYS)), func() error { return inChild("int80") })
	add(k, "an x32 call", errs(killed(unix.SIGSYS)), func() error { return inChild("x32") })
	for name, nr := range map[string]uintptr{"raise the port level": unix.SYS_IOPL, "open ports": unix.SYS_IOPERM, "change segments": unix.SYS_MODIFY_LDT} {
		add("kernel", name, errs(unix.EPERM), func() error { return call(nr, 3, 1, 1) })
	}
	add("set-id", "chmod u+s", errs(unix.EPERM), func() error { return call(unix.SYS_CHMOD, ptr("/tmp/escape/f"), 0o4755) })
	add("set-id", "creat with u+s", errs(unix.EPERM), func() error { return call(unix.SYS_CREAT, ptr("/tmp/escape/new4"), 0o4755) })
	add("set-id", "open of a new file with u+s", errs(unix.EPERM), func() error {
		return call(unix.SYS_OPEN, ptr("/tmp/escape/new5"), unix.O_CREAT|unix.O_WRONLY, 0o4755)
	})
}
