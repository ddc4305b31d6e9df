//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Places in the sandbox's root that are its own.
const (
	ownDir    = "/run/hearsay"
	coverDir  = "/run/hearsay/folder"  // covers a hidden folder
	coverFile = "/run/hearsay/file"    // covers a hidden file
	witness   = "/run/hearsay/witness" // writable by the mounts, by no rule of Landlock: shows that Landlock holds
)

// shownInProc is what stays of /proc besides the processes. Everything else in it is the kernel's or the host's.
var shownInProc = []string{"cpuinfo", "filesystems", "loadavg", "meminfo", "mounts", "net", "self", "stat", "sys", "thread-self", "uptime", "version"}

// build makes the root, puts every mount in its place and moves into it.
func (in *initer) build() error {
	p := &in.plan
	if p.Off.Files { // a test: the host's tree stays the root
		fd, err := newFS("proc", nil, 0)
		if err == nil {
			err = unix.MoveMount(fd, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH)
		}
		return err
	}
	fd, err := newTmpfs(16<<20, "0755", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return layerError("files", err)
	}
	in.root = root{fd}
	if err := in.skeleton(); err != nil {
		return layerError("files", err)
	}
	// The root must be attached before mounts can be put into it. It covers the host's in this namespace alone.
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, "/tmp", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return layerError("files", fmt.Errorf("attaching the root: %w", err))
	}
	if err := in.mountCovers(); err != nil {
		return layerError("files", err)
	}
	if err := in.ownMounts(); err != nil {
		return layerError("files", err)
	}
	grabbed := 0
	for _, e := range p.Entries {
		var fd int
		if e.Access == hidden {
			if fd, err = in.cover(e); err != nil {
				return layerError("files", err)
			}
		} else {
			fd = in.mounts[grabbed]
			grabbed++
		}
		if err := in.place(e); err != nil {
			return layerError("files", err)
		}
		if err := in.root.attach(fd, e.Target); err != nil {
			return layerError("files", err)
		}
	}
	if err := in.mountProc(); err != nil {
		return err
	}
	for _, fd := range in.covers {
		unix.Close(fd)
	}
	return layerError("files", in.enter())
}

// skeleton makes folders, files and links while the root is still writable.
func (in *initer) skeleton() error {
	r := in.root
	for _, dir := range []string{"/etc", "/dev/pts", "/dev/shm", "/home", HomeDir, "/proc", "/run", "/tmp", "/var/tmp", "/run/hearsay"} {
		if err := r.mkdir(dir); err != nil {
			return err
		}
	}
	for _, l := range in.plan.Links {
		if err := r.symlink(l.Path, l.To); err != nil {
			return err
		}
	}
	for _, l := range []link{{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"},
		{"/dev/stderr", "/proc/self/fd/2"}, {"/dev/ptmx", "pts/ptmx"}, {"/etc/mtab", "/proc/self/mounts"}, {"/var/run", "/run"}} {
		if err := r.symlink(l.Path, l.To); err != nil {
			return err
		}
	}
	for _, f := range in.plan.Files {
		if err := r.write(f.Path, f.Data); err != nil {
			return err
		}
	}
	if err := unix.Mkdirat(r.fd, coverDir[1:], 0); err != nil {
		return fmt.Errorf("making a cover: %w", err)
	}
	fd, err := unix.Openat(r.fd, coverFile[1:], unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making a cover: %w", err)
	}
	unix.Close(fd)
	return r.mkdir(witness)
}

// ownMounts are file systems of the sandbox's own, in memory.
func (in *initer) ownMounts() error {
	const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	size := in.plan.ScratchSize
	for _, m := range []struct{ path, mode string }{{HomeDir, "0700"}, {"/tmp", "1777"}, {"/var/tmp", "1777"}, {"/dev/shm", "1777"}} {
		fd, err := newTmpfs(size, m.mode, quiet)
		if err != nil {
			return err
		}
		if err := in.root.attach(fd, m.path); err != nil {
			return err
		}
		for _, l := range in.plan.Links { // those of the skeleton lie below the mount now
			if within(l.Path, m.path) {
				if err := in.root.symlink(l.Path, l.To); err != nil {
					return err
				}
			}
		}
	}
	for _, dir := range []string{HomeDir + "/.cache", HomeDir + "/.config", HomeDir + "/.local/share", HomeDir + "/.local/state", "/tmp" + runtimeFolder} {
		if err := in.root.mkdir(dir); err != nil {
			return err
		}
	}
	if at, err := in.root.at("/tmp" + runtimeFolder); err == nil {
		_ = unix.Fchmodat(at, ".", 0o700, 0)
		unix.Close(at)
	}
	fd, err := newTmpfs(4096, "0700", quiet|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	if err := in.root.attach(fd, witness); err != nil {
		return err
	}
	fd, err = newFS("devpts", map[string]string{"ptmxmode": "0666", "mode": "0620"}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	return in.root.attach(fd, "/dev/pts")
}

// place makes the mount point of an entry, where the root is the sandbox's own. Inside a folder of the host it is there already.
func (in *initer) place(e entry) error {
	if e.Link || e.Access == hidden {
		return nil
	}
	if e.Dir {
		return in.root.mkdir(e.Target)
	}
	if at, err := in.root.at(e.Target); err == nil {
		unix.Close(at)
		return nil
	}
	return in.root.touch(e.Target)
}

// cover clones a cover: a mount with mode 0 and nothing in it. The covers themselves were mounted with all attributes, which a clone
// inherits.
func (in *initer) cover(e entry) (int, error) {
	from := in.covers[0]
	if e.Dir {
		from = in.covers[1]
	}
	fd, err := unix.OpenTree(from, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("cloning a cover: %w", err)
	}
	return fd, nil
}

// mountCovers gives the two covers the attributes of their clones, and opens them.
func (in *initer) mountCovers() error {
	for i, path := range []string{coverFile, coverDir} {
		fd, err := in.root.again(path, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
		if err != nil {
			return err
		}
		if err := in.root.attach(fd, path); err != nil {
			return err
		}
		if in.covers[i], err = in.root.at(path); err != nil {
			return err
		}
	}
	return nil
}

// mountProc mounts the process list of the sandbox's own process namespace, and covers what else the kernel shows in it.
func (in *initer) mountProc() error {
	const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	fd, err := newFS("proc", nil, quiet)
	if in.plan.Off.PID { // a test: the host's processes
		fd, err = unix.OpenTree(unix.AT_FDCWD, "/proc", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	}
	if err != nil {
		return &LayerError{Layer: "proc", Err: err, Remedy: "A container that hides parts of /proc does not let a new one be mounted: " +
			"start it with --security-opt systempaths=unconfined, or run with --weaker=" + string(FilesByLandlockNoNetwork)}
	}
	if err := in.root.attach(fd, "/proc"); err != nil {
		return layerError("proc", err)
	}
	at, err := in.root.at("/proc")
	if err != nil {
		return layerError("proc", err)
	}
	defer unix.Close(at)
	dir, err := unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return layerError("proc", err)
	}
	f := os.NewFile(uintptr(dir), "proc")
	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return layerError("proc", err)
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil || slices.Contains(shownInProc, e.Name()) || e.Type()&os.ModeSymlink != 0 {
			continue
		}
		cover, err := in.cover(entry{Dir: e.IsDir()})
		if err == nil {
			err = in.root.attach(cover, "/proc/"+e.Name())
		}
		if err != nil {
			return layerError("proc", err)
		}
	}
	sys, err := in.root.again("/proc/sys", quiet|unix.MOUNT_ATTR_RDONLY)
	if err == nil {
		err = in.root.attach(sys, "/proc/sys")
	}
	return layerError("proc", err)
}

// enter closes the root for writing and makes it the root of the process; the host's tree is let go.
func (in *initer) enter() error {
	if err := unix.MountSetattr(in.root.fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("closing the root for writing: %w", err)
	}
	if err := unix.Fchdir(in.root.fd); err != nil {
		return fmt.Errorf("entering the root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	// The old root lies over the new one now, and the working folder is in it.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("letting the host's root go: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("entering the root: %w", err)
	}
	return unix.Close(in.root.fd)
}

// landlock repeats the file view as rules. Without a mount namespace they are the file view.
func (in *initer) landlock() error {
	p := &in.plan
	d, err := newDomain(p.ABI)
	if err != nil {
		return err
	}
	allow := func(rights uint64, paths ...string) {
		for _, path := range paths {
			if err == nil {
				err = d.allow(path, rights)
			}
		}
	}
	for _, e := range p.Entries {
		switch e.Access {
		case writable, pinned:
			allow(mayWrite, e.Target)
		case readOnly, protected:
			allow(mayRead, e.Target)
		case device:
			allow(mayUseDevice, e.Target)
		}
	}
	inMemory := uint64(mayWrite)
	if p.Sockets == unixSockets {
		inMemory |= unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	if p.NoNamespaces {
		allow(mayWrite, p.Scratch.Home, p.Scratch.Tmp)
		allow(mayRead, hostText...)
		allow(mayRead, "/proc")
		for _, l := range p.Links {
			allow(mayRead, l.Path)
		}
	} else {
		allow(inMemory, HomeDir, "/tmp", "/var/tmp", "/dev/shm")
		allow(mayRead, "/etc", "/dev", "/home", coverDir, "/var")
		allow(unix.LANDLOCK_ACCESS_FS_READ_DIR, "/") // names in the root; what must not be read is covered
		allow(mayRead|mayUseDevice, "/dev/pts")
		allow(mayRead|unix.LANDLOCK_ACCESS_FS_WRITE_FILE|unix.LANDLOCK_ACCESS_FS_TRUNCATE, "/proc") // own limits, names and out-of-memory scores are written here
		for _, f := range p.Files {
			allow(mayRead, f.Path)
		}
	}
	if err != nil {
		unix.Close(d.fd)
		return err
	}
	return d.enter()
}
