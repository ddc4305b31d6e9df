package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func read(path string) func() error {
	return func() error {
		_, err := os.ReadFile(path)
		return err
	}
}

func list(path string) func() error {
	return func() error {
		_, err := os.ReadDir(path)
		return err
	}
}

func write(path string) func() error {
	return func() error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString("escaped\n")
		return err
	}
}

func rename(from, to string) func() error {
	return func() error { return os.Rename(from, to) }
}

func remove(path string) func() error {
	return func() error { return os.Remove(path) }
}

func files() {
	const k = "files"
	gone := errs(unix.ENOENT)
	closed := errs(unix.EACCES)
	readOnly := errs(unix.EROFS)
	fixed := errs(unix.EBUSY)
	tmp := "/tmp/escape"
	_ = os.MkdirAll(tmp, 0o755)

	add(k, "read a file outside", gone, read(bait.Secret))
	add(k, "look at a file outside", gone, func() error { _, err := os.Stat(bait.Secret); return err })
	add(k, "list the launcher's home", errs(unix.ENOENT, unix.EACCES), list(bait.Home))
	add(k, "read /etc/shadow", gone, read("/etc/shadow"))
	add(k, "walk up out of the project", gone, read(bait.Project+"/"+strings.Repeat("../", 20)+bait.Secret))
	add(k, "follow a planted link", gone, read(filepath.Join(bait.Project, "link-out")))
	add(k, "make a link and follow it", gone, func() error {
		l := filepath.Join(bait.Project, "own-link")
		_ = os.Remove(l)
		if err := os.Symlink(bait.Secret, l); err != nil {
			return err
		}
		defer os.Remove(l)
		return read(l)()
	})
	add(k, "the root of init", closed, list("/proc/1/root"))
	add(k, "the working folder of init", closed, list("/proc/1/cwd"))
	add(k, "out of the own root", gone, read("/proc/self/root/../.."+bait.Secret))
	add(k, "write /etc/passwd", readOnly, write("/etc/passwd"))
	add(k, "write into /usr/bin", errs(unix.EROFS, unix.EACCES), write("/usr/bin/escaped"))
	add(k, "write into /", readOnly, write("/escaped"))
	add(k, "make a folder in /", readOnly, func() error { return os.Mkdir("/escaped.d", 0o755) })
	add(k, "rename /usr", errs(unix.EBUSY, unix.EROFS, unix.EXDEV), rename("/usr", "/usr.old"))
	add(k, "write a file listed for reading", readOnly, write(filepath.Join(bait.Read, "file")))
	add(k, "make a file in a folder listed for reading", readOnly, write(filepath.Join(bait.Read, "new")))
	add(k, "truncate a file listed for reading", readOnly, func() error { return os.Truncate(filepath.Join(bait.Read, "file"), 0) })
	add(k, "change the mode of a file listed for reading", readOnly, func() error { return os.Chmod(filepath.Join(bait.Read, "file"), 0o777) })
	add(k, "change the times of a file listed for reading", readOnly, func() error { return unix.Utime(filepath.Join(bait.Read, "file"), nil) })
	add(k, "set an attribute of a file listed for reading", readOnly, func() error {
		return unix.Setxattr(filepath.Join(bait.Read, "file"), "user.escaped", []byte("1"), 0)
	})
	add(k, "hard link out of a folder listed for reading", errs(unix.EXDEV, unix.EPERM, unix.EACCES), func() error { return os.Link(filepath.Join(bait.Read, "file"), tmp+"/hard") })
	add(k, "hard link from the read-only into the writable", errs(unix.EXDEV, unix.EPERM, unix.EACCES), func() error {
		return os.Link(filepath.Join(bait.Read, "file"), filepath.Join(bait.Project, "hard"))
	})
	add(k, "rename a file listed for reading into the project", errs(unix.EROFS, unix.EXDEV, unix.EACCES), rename(filepath.Join(bait.Read, "file"), filepath.Join(bait.Project, "moved")))

	add(k, "list a hidden folder", closed, list(bait.HiddenDir))
	add(k, "read in a hidden folder", closed, read(filepath.Join(bait.HiddenDir, "key")))
	add(k, "write in a hidden folder", errs(unix.EACCES, unix.EROFS), write(filepath.Join(bait.HiddenDir, "new")))
	add(k, "open up a hidden folder", readOnly, func() error { return os.Chmod(bait.HiddenDir, 0o777) })
	add(k, "rename a hidden folder", errs(unix.EBUSY, unix.EXDEV), rename(bait.HiddenDir, filepath.Join(bait.Project, "unhidden")))
	add(k, "rename the folder above a hidden one", fixed, rename(filepath.Dir(bait.HiddenDir), filepath.Join(bait.Project, "unhidden")))
	add(k, "through a link to a hidden folder", errs(unix.EACCES, unix.ENOTDIR), list(bait.HiddenRef))
	add(k, "replace a link to a hidden folder", errs(unix.EBUSY), remove(bait.HiddenRef))

	git := filepath.Join(bait.Project, ".git")
	add(k, "make a git hook", readOnly, write(git+"/hooks/post-checkout"))
	add(k, "write git's configuration", readOnly, write(git+"/config"))
	add(k, "remove git's configuration", fixed, remove(git+"/config"))
	add(k, "rename another file over git's configuration", fixed, func() error {
		if err := os.WriteFile(git+"/x", []byte("[core]\n"), 0o644); err != nil {
			return err
		}
		defer os.Remove(git + "/x")
		return os.Rename(git+"/x", git+"/config")
	})
	add(k, "rename .git away from under its guard", fixed, rename(git, filepath.Join(bait.Project, "git.old")))
	add(k, "rename the hooks away", fixed, rename(git+"/hooks", git+"/hooks.old"))
	add(k, "remove the hooks", fixed, remove(git+"/hooks"))
	add(k, "write git's attributes", readOnly, write(git+"/info/attributes"))
	add(k, "point another work tree elsewhere", readOnly, write(git+"/worktrees/x"))
	add(k, "point git to another folder for its configuration", readOnly, write(git+"/commondir"))
	add(k, "configure the work tree", readOnly, write(git+"/config.worktree"))
	add(k, "remove the held name of git's pointer", fixed, remove(git+"/commondir"))
	add(k, "configure a submodule", readOnly, write(git+"/modules/x"))
	add(k, "name a server to the agent", readOnly, write(filepath.Join(bait.Project, ".mcp.json")))
	add(k, "remove the held name of a server file", fixed, remove(filepath.Join(bait.Project, ".mcp.json")))
	add(k, "write the agent's settings", readOnly, write(filepath.Join(bait.Project, ".claude/settings.json")))
	add(k, "rename the agent's settings away", fixed, rename(filepath.Join(bait.Project, ".claude"), filepath.Join(bait.Project, "claude.old")))
	add(k, "write the editor's tasks", readOnly, write(filepath.Join(bait.Project, ".vscode/tasks.json")))
	add(k, "write a shell's start-up file", readOnly, write(filepath.Join(bait.Project, ".bashrc")))
	add(k, "write a shell's start-up file that is a link", readOnly, write(filepath.Join(bait.Project, ".profile")))
	add(k, "write where a protected link leads", readOnly, write(filepath.Join(bait.Project, "dotfiles/profile")))
	add(k, "remove a protected link", fixed, remove(filepath.Join(bait.Project, ".profile")))
	add(k, "rename the project away", errs(unix.EBUSY, unix.EROFS, unix.EXDEV), rename(bait.Project, bait.Project+".old"))

	for _, dev := range []string{"mem", "kmem", "kmsg", "port", "vda", "sda", "nvme0n1", "fuse", "kvm", "net/tun", "loop-control", "mapper/control", "console", "vsock", "vhost-net", "uinput", "mqueue"} {
		add("devices", "open /dev/"+dev, gone, read("/dev/"+dev))
	}
	add("devices", "make a character device", errs(unix.EPERM, unix.EACCES), func() error { return unix.Mknod(tmp+"/mem", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))) })
	add("devices", "make a block device", errs(unix.EPERM, unix.EACCES), func() error { return unix.Mknod(tmp+"/vda", unix.S_IFBLK|0o666, int(unix.Mkdev(254, 0))) })
	add("devices", "make a device in the project", errs(unix.EPERM, unix.EACCES), func() error {
		return unix.Mknod(filepath.Join(bait.Project, "mem"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1)))
	})
	add("devices", "make a file in /dev", readOnly, write("/dev/escaped"))
	add("devices", "open the launcher's terminal", errs(unix.ENXIO), read("/dev/tty"))

	add("descriptors", "one more than the standard streams", errs(errNothing), func() error {
		for fd := 3; fd < 1024; fd++ {
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			if err == nil && flags&unix.FD_CLOEXEC == 0 { // those of this program's own runtime close on exec
				return nil
			}
		}
		return unless(false, "no descriptor")
	})
	add("descriptors", "open the standard input again for writing", closed, write("/proc/self/fd/0"))
	add("descriptors", "open what init has open", closed, list("/proc/1/fd"))
	add("descriptors", "a place that only the second wall guards", closed, write("/run/hearsay/witness/file"))
	add("descriptors", "walk by handle", errs(unix.EPERM), func() error {
		return call(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), 0, 0)
	})
	add("descriptors", "make a handle", errs(unix.EPERM), func() error {
		_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, "/", 0)
		return err
	})

	for _, sock := range []string{"/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/dbus/system_bus_socket", "/run/user/0/bus", "/run/user/1000/bus",
		"/run/systemd/private", "/run/systemd/notify", "/tmp/.X11-unix/X0", "/run/udev/control"} {
		add("delegates", "the socket "+sock, gone, func() error { _, err := os.Stat(sock); return err })
	}
	for _, f := range []string{"kcore", "kallsyms", "keys", "key-users", "kmsg", "timer_list", "cmdline", "iomem", "ioports", "modules", "config.gz", "partitions", "interrupts", "slabinfo", "vmallocinfo", "swaps", "locks"} {
		if _, err := os.Lstat("/proc/" + f); err == nil {
			add("proc and sys", "read /proc/"+f, closed, read("/proc/"+f))
		}
	}
	for _, d := range []string{"bus", "fs", "irq", "driver", "acpi", "tty", "sysvipc", "pressure"} {
		if _, err := os.Lstat("/proc/" + d); err == nil {
			add("proc and sys", "list /proc/"+d, closed, list("/proc/"+d))
		}
	}
	add("proc and sys", "press a system request", errs(unix.EACCES, unix.ENOENT, unix.EROFS), write("/proc/sysrq-trigger"))
	for _, s := range []string{"kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "vm/drop_caches", "net/ipv4/ip_forward", "kernel/ns_last_pid", "user/max_user_namespaces", "fs/binfmt_misc/register", "net/ipv4/ping_group_range"} {
		add("proc and sys", "write /proc/sys/"+s, errs(unix.EROFS, unix.ENOENT, unix.EACCES), write("/proc/sys/"+s))
	}
	add("proc and sys", "list /sys", gone, list("/sys"))
	add("proc and sys", "control groups", gone, list("/sys/fs/cgroup"))
	add("proc and sys", "the kernel's trace", gone, list("/sys/kernel/tracing"))
	add("proc and sys", "firmware variables", gone, list("/sys/firmware/efi"))
	add("proc and sys", "change the own id map", errs(unix.EPERM), write("/proc/self/uid_map"))
	add("proc and sys", "allow set groups", errs(unix.EPERM, unix.EACCES), write("/proc/self/setgroups"))
	add("proc and sys", "hide from the killer of processes", errs(unix.EACCES), func() error {
		return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	})
	add("proc and sys", "name of the own control group on the host", errs(errNothing), func() error {
		data, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			if path := strings.TrimSpace(line[strings.LastIndexByte(line, ':')+1:]); path != "/" && !strings.HasPrefix(path, "/..") {
				return nil
			}
		}
		return unless(false, "the root of its own namespace")
	})

	const t = "terminal"
	for name, cmd := range map[string]uintptr{"type into the terminal": unix.TIOCSTI, "paste into the console": unix.TIOCLINUX, "set a line discipline": unix.TIOCSETD, "take the console's output": unix.TIOCCONS} {
		add(t, name, errs(unix.EPERM), func() error {
			b := byte('x')
			return call(unix.SYS_IOCTL, 0, cmd, uintptr(unsafe.Pointer(&b)))
		})
		add(t, name+", with a high bit set", errs(unix.EPERM), func() error {
			b := byte('x')
			return call(unix.SYS_IOCTL, 0, 1<<32|cmd, uintptr(unsafe.Pointer(&b)))
		})
	}
	add(t, "type into a terminal of its own", errs(unix.EPERM), func() error {
		fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		b := byte('x')
		return call(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&b)))
	})

	const e = "environment"
	add(e, "the launcher's secret in the own environment", errs(errNothing), func() error {
		return unless(strings.Contains(strings.Join(os.Environ(), "\n"), bait.Marker), "not there")
	})
	add(e, "the environment of init", closed, read("/proc/1/environ"))
	add(e, "the launcher's secret in any environment or command line", errs(errNothing), func() error {
		dirs, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		for _, d := range dirs {
			if _, err := strconv.Atoi(d.Name()); err != nil || d.Name() == strconv.Itoa(os.Getpid()) {
				continue // the own command line holds the mark to look for
			}
			if contains("/proc/"+d.Name()+"/environ", bait.Marker) || contains("/proc/"+d.Name()+"/cmdline", bait.Marker) {
				return nil
			}
		}
		return unless(false, "not there")
	})
	add(e, "the host's name", errs(errNothing), func() error {
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		return unless(name != "sandbox", name)
	})
}
