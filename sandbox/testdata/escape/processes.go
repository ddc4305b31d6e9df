package main

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

func processes() {
	const k = "processes"
	perm := errs(unix.EPERM)
	none := errs(unix.ESRCH)
	add(k, "signal a process outside", none, func() error { return unix.Kill(bait.HostPID, unix.SIGCONT) })
	add(k, "see a process outside", errs(unix.ENOENT), read(fmt.Sprintf("/proc/%d/cmdline", bait.HostPID)))
	add(k, "hold a process outside", none, func() error { _, err := unix.PidfdOpen(bait.HostPID, 0); return err })
	add(k, "a process besides the own ones", errs(errNothing), func() error {
		dirs, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		n := 0
		for _, d := range dirs {
			if _, err := strconv.Atoi(d.Name()); err == nil {
				n++
			}
		}
		return unless(n != 2, "init and this one")
	})
	add(k, "kill init", perm, func() error { return unix.Kill(1, unix.SIGKILL) })
	add(k, "terminate init", perm, func() error { return unix.Kill(1, unix.SIGTERM) })
	add(k, "queue a signal to init", perm, func() error {
		var info [128]byte
		return call(unix.SYS_RT_SIGQUEUEINFO, 1, uintptr(unix.SIGTERM), uintptr(unsafe.Pointer(&info)))
	})
	add(k, "signal a thread of init", perm, func() error { return call(unix.SYS_TGKILL, 1, 1, uintptr(unix.SIGTERM)) })
	add(k, "signal init by descriptor", perm, func() error {
		fd, err := unix.PidfdOpen(1, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
	})
	add(k, "take a descriptor of init", perm, func() error {
		fd, err := unix.PidfdOpen(1, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.PidfdGetfd(fd, 3, 0)
		return err
	})
	add(k, "attach to init", perm, func() error { return unix.PtraceAttach(1) })
	add(k, "attach to the parent", perm, func() error { return unix.PtraceAttach(os.Getppid()) })
	add(k, "be traced", perm, func() error { return inChild("traceme") })
	var buf [8]byte
	local := unix.Iovec{Base: &buf[0], Len: 8}
	remote := unix.RemoteIovec{Base: 0x400000, Len: 8}
	add(k, "read the memory of init", perm, func() error {
		return call(unix.SYS_PROCESS_VM_READV, 1, uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	})
	add(k, "write the memory of init", perm, func() error {
		return call(unix.SYS_PROCESS_VM_WRITEV, 1, uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	})
	add(k, "the memory of init as a file", errs(unix.EACCES), read("/proc/1/mem"))
	add(k, "the memory map of init", errs(unix.EACCES), read("/proc/1/maps"))
	add(k, "advise the memory of init", perm, func() error { return call(unix.SYS_PROCESS_MADVISE, 0, 0, 0, 0, 0) })
	add(k, "compare with init", perm, func() error { return call(unix.SYS_KCMP, 1, uintptr(os.Getpid()), 0, 0, 0) })
	add(k, "limit init", perm, func() error { return unix.Prlimit(1, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil) })
	add(k, "read the limits of init", perm, func() error {
		var r unix.Rlimit
		return unix.Prlimit(1, unix.RLIMIT_NOFILE, nil, &r)
	})
	add(k, "limit init, with a high bit set", perm, func() error {
		r := unix.Rlimit{Cur: 3, Max: 3}
		return call(unix.SYS_PRLIMIT64, 1<<32|1, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&r)), 0)
	})
	add("ipc", "a shared memory segment of the host", errs(errNothing), func() error {
		// SHM_INFO gives the highest index in use: this namespace has none.
		var info [128]byte
		n, _, errno := unix.Syscall(unix.SYS_SHMCTL, 0, 14, uintptr(unsafe.Pointer(&info)))
		if errno != 0 {
			return errno
		}
		used := *(*int32)(unsafe.Pointer(&info))
		return unless(used > 0 || n > 0, "none")
	})
}

func namespaces() {
	const k = "namespaces"
	perm := errs(unix.EPERM)
	for name, flag := range map[string]uintptr{"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID, "network": unix.CLONE_NEWNET,
		"ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP, "time": unix.CLONE_NEWTIME} {
		add(k, "unshare a "+name+" namespace", perm, func() error { return call(unix.SYS_UNSHARE, flag) })
		if name == "time" {
			continue // clone has no flag for it
		}
		add(k, "clone into a "+name+" namespace", perm, func() error {
			pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flag|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if errno != 0 {
				return errno
			}
			if pid == 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			_, _ = unix.Wait4(int(pid), nil, 0, nil)
			return nil
		})
	}
	add(k, "clone into a user namespace, with a high bit set", perm, func() error {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, 1<<32|unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, _ = unix.Wait4(int(pid), nil, 0, nil)
		return nil
	})
	add(k, "clone3, which hides its flags", errs(unix.ENOSYS), func() error {
		args := [11]uint64{unix.CLONE_NEWUSER, 0, 0, 0, uint64(unix.SIGCHLD)}
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, _ = unix.Wait4(int(pid), nil, 0, nil)
		return nil
	})
	add(k, "open the namespaces of init", errs(unix.EACCES), read("/proc/1/ns/net"))
	add(k, "enter a namespace", perm, func() error {
		fd, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Setns(fd, 0)
	})

	const m = "mounts"
	add(m, "mount a file system in memory", perm, func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") })
	add(m, "mount the processes", perm, func() error { return unix.Mount("none", "/tmp", "proc", 0, "") })
	add(m, "bind a folder", perm, func() error { return unix.Mount("/usr", "/tmp", "", unix.MS_BIND, "") })
	add(m, "make the root writable", perm, func() error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") })
	add(m, "uncover /proc/keys", perm, func() error { return unix.Unmount("/proc/keys", unix.MNT_DETACH) })
	add(m, "uncover the hooks", perm, func() error { return unix.Unmount(bait.Project+"/.git/hooks", unix.MNT_DETACH) })
	add(m, "uncover a hidden folder", perm, func() error { return unix.Unmount(bait.HiddenDir, unix.MNT_DETACH) })
	add(m, "pivot the root", perm, func() error { return unix.PivotRoot("/tmp", "/tmp") })
	add(m, "change the root", perm, func() error { return unix.Chroot("/tmp") })
	add(m, "open a file system", perm, func() error { _, err := unix.Fsopen("tmpfs", 0); return err })
	add(m, "pick a file system", perm, func() error { _, err := unix.Fspick(unix.AT_FDCWD, "/", 0); return err })
	add(m, "clone a mount", perm, func() error { _, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE); return err })
	add(m, "move a mount", perm, func() error { return unix.MoveMount(unix.AT_FDCWD, "/tmp", unix.AT_FDCWD, "/usr", 0) })
	add(m, "change a mount", perm, func() error {
		return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
	})
}
