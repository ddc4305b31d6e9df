package main

import (
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func ptr(s string) uintptr {
	b, _ := unix.BytePtrFromString(s)
	return uintptr(unsafe.Pointer(b))
}

func identity() {
	const k = "set-id"
	perm := errs(unix.EPERM)
	dir := "/tmp/escape"
	f := filepath.Join(dir, "f")
	_ = os.WriteFile(f, nil, 0o755)
	inProject := filepath.Join(bait.Project, "f")
	_ = os.WriteFile(inProject, nil, 0o755)
	at := func() uintptr { v := unix.AT_FDCWD; return uintptr(v) }
	add(k, "fchmodat u+s", perm, func() error { return call(unix.SYS_FCHMODAT, at(), ptr(f), 0o4755) })
	add(k, "fchmodat g+s", perm, func() error { return call(unix.SYS_FCHMODAT, at(), ptr(f), 0o2755) })
	add(k, "fchmodat u+s in the project", perm, func() error { return call(unix.SYS_FCHMODAT, at(), ptr(inProject), 0o4755) })
	add(k, "fchmodat u+s, with a high bit set", perm, func() error { return call(unix.SYS_FCHMODAT, at(), ptr(f), 1<<32|0o4755) })
	add(k, "fchmodat2 u+s", perm, func() error { return call(unix.SYS_FCHMODAT2, at(), ptr(f), 0o4755, 0) })
	add(k, "fchmod u+s", perm, func() error {
		fd, err := unix.Open(f, unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return call(unix.SYS_FCHMOD, uintptr(fd), 0o4755)
	})
	add(k, "openat of a new file with u+s", perm, func() error {
		return call(unix.SYS_OPENAT, at(), ptr(dir+"/new"), unix.O_CREAT|unix.O_WRONLY, 0o4755)
	})
	add(k, "a nameless file with u+s", perm, func() error {
		return call(unix.SYS_OPENAT, at(), ptr(dir), unix.O_TMPFILE|unix.O_WRONLY, 0o4755)
	})
	add(k, "openat2, which hides its mode", errs(unix.ENOSYS), func() error {
		how := unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755}
		_, err := unix.Openat2(unix.AT_FDCWD, dir+"/new2", &how)
		return err
	})
	add(k, "mknodat of a file with u+s", perm, func() error {
		return call(unix.SYS_MKNODAT, at(), ptr(dir+"/new3"), unix.S_IFREG|0o4755, 0)
	})
	add(k, "mkdirat with g+s", perm, func() error { return call(unix.SYS_MKDIRAT, at(), ptr(dir+"/new.d"), 0o2755) })
	add(k, "file capabilities", errs(unix.EPERM, unix.EOPNOTSUPP), func() error {
		return unix.Setxattr(inProject, "security.capability", []byte("\x01\x00\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"), 0)
	})
	add(k, "set-id programs of the system count", errs(errNothing), func() error {
		var st unix.Statfs_t
		if err := unix.Statfs("/usr", &st); err != nil {
			return err
		}
		return unless(st.Flags&unix.ST_NOSUID == 0, "mounted nosuid")
	})
	add(k, "devices in the project count", errs(errNothing), func() error {
		var st unix.Statfs_t
		if err := unix.Statfs(bait.Project, &st); err != nil {
			return err
		}
		return unless(st.Flags&unix.ST_NODEV == 0, "mounted nodev")
	})

	const c = "identity"
	add(c, "become root", errs(unix.EPERM, unix.EINVAL), func() error { return call(unix.SYS_SETUID, 0) })
	add(c, "become root's group", errs(unix.EPERM, unix.EINVAL), func() error { return call(unix.SYS_SETGID, 0) })
	add(c, "become another user", errs(unix.EPERM, unix.EINVAL), func() error { return call(unix.SYS_SETRESUID, 1, 1, 1) })
	add(c, "choose groups", perm, func() error { return call(unix.SYS_SETGROUPS, 0, 0) })
	add(c, "a capability in any set", errs(errNothing), func() error {
		data, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			if name, v, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(name, "Cap") && strings.Trim(strings.TrimSpace(v), "0") != "" {
				return nil
			}
		}
		return unless(false, "none")
	})
	add(c, "take capabilities", perm, func() error {
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		d := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
		return unix.Capset(&h, &d[0])
	})
	add(c, "raise an ambient capability", perm, func() error {
		return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_ADMIN, 0, 0)
	})
	add(c, "allow new privileges again", errs(unix.EINVAL), func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) })
	add(c, "change the secure bits", perm, func() error { return unix.Prctl(unix.PR_SET_SECUREBITS, 0, 0, 0, 0) })
	add(c, "replace the seccomp filter by none", errs(unix.EINVAL), func() error { return unix.Prctl(unix.PR_SET_SECCOMP, 0, 0, 0, 0) })

	const l = "limits"
	add(l, "a core file of any size", errs(errNothing), func() error {
		var r unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_CORE, &r); err != nil {
			return err
		}
		return unless(r.Max != 0, "limit 0")
	})
	for name, what := range map[string]int{"core files": unix.RLIMIT_CORE, "processes": unix.RLIMIT_NPROC, "open files": unix.RLIMIT_NOFILE} {
		add(l, "raise the limit of "+name, perm, func() error {
			return unix.Prlimit(0, what, &unix.Rlimit{Cur: 1 << 40, Max: 1 << 40}, nil)
		})
	}
}
