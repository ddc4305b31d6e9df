//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openNoLinks opens a place without following any symbolic link: the path was resolved before, so one that is there now was put
// there since.
func openNoLinks(dir int, path string, resolve uint64) (int, error) {
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | resolve,
	})
	if err != nil {
		return -1, fmt.Errorf("opening %s: %w", path, err)
	}
	return fd, nil
}

// grab clones the mount of an entry and sets what it may do, before it is attached anywhere. idmap, when not negative, is the
// user namespace that maps the owner of the source.
func grab(e entry, idmap int) (int, error) {
	src, err := openNoLinks(unix.AT_FDCWD, e.Source, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(src)
	var st unix.Stat_t
	if err := unix.Fstat(src, &st); err != nil {
		return -1, fmt.Errorf("looking at %s: %w", e.Source, err)
	}
	kind := st.Mode & unix.S_IFMT
	if want := map[bool]uint32{true: unix.S_IFDIR, false: unix.S_IFREG}[e.Dir]; e.Access != device && kind != want || e.Access == device && kind != unix.S_IFCHR {
		return -1, fmt.Errorf("%s changed its kind since it was looked at", e.Source)
	}
	// Recursive, as a part of a mount may not be cloned without the mounts that the host put over it.
	tree, err := unix.OpenTree(src, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("cloning the mount of %s: %w", e.Source, err)
	}
	// Private: what the host mounts below later must not appear inside.
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID, Propagation: unix.MS_PRIVATE}
	switch e.Access {
	case device:
		attr.Attr_set |= unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY
	case writable, pinned:
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	default:
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY
	}
	if idmap >= 0 {
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(idmap)
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		unix.Close(tree)
		return -1, fmt.Errorf("setting the mount of %s to %s: %w", e.Source, e.Access, err)
	}
	return tree, nil
}

// newFS makes a mount of a file system of its own, attached nowhere.
func newFS(kind string, options map[string]string, attrs int) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("opening a %s: %w", kind, err)
	}
	defer unix.Close(fs)
	for k, v := range options {
		if err := unix.FsconfigSetString(fs, k, v); err != nil {
			return -1, fmt.Errorf("setting %s of a %s: %w", k, kind, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("creating a %s: %w", kind, err)
	}
	m, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return -1, fmt.Errorf("mounting a %s: %w", kind, err)
	}
	return m, nil
}

// newTmpfs is bounded: it is memory.
func newTmpfs(size uint64, mode string, attrs int) (int, error) {
	return newFS("tmpfs", map[string]string{"size": strconv.FormatUint(size, 10), "nr_inodes": "1048576", "mode": mode}, attrs)
}

// root is the sandbox's file tree while it is being built. Every path in it is walked from its descriptor.
type root struct{ fd int }

// at opens a place inside the root, without leaving it and without following links.
func (r root) at(p string) (int, error) {
	rel := strings.TrimPrefix(path.Clean(p), "/")
	if rel == "" {
		rel = "."
	}
	return openNoLinks(r.fd, rel, unix.RESOLVE_BENEATH)
}

// mkdir makes the folders that lead to p, and p itself.
func (r root) mkdir(p string) error {
	dir := r.fd
	defer func() {
		if dir != r.fd {
			unix.Close(dir)
		}
	}()
	for _, name := range strings.Split(strings.Trim(path.Clean(p), "/"), "/") {
		if name == "" {
			continue
		}
		err := unix.Mkdirat(dir, name, 0o755)
		if err != nil && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EACCES) {
			return fmt.Errorf("making %s inside: %w", p, err)
		}
		next, err := openNoLinks(dir, name, unix.RESOLVE_BENEATH)
		if err != nil {
			return fmt.Errorf("making %s inside: %w", p, err)
		}
		if dir != r.fd {
			unix.Close(dir)
		}
		dir = next
	}
	return nil
}

// touch makes an empty file at p where nothing is.
func (r root) touch(p string) error {
	if err := r.mkdir(path.Dir(p)); err != nil {
		return err
	}
	dir, err := r.at(path.Dir(p))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, path.Base(p), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o644)
	if errors.Is(err, unix.EEXIST) {
		return nil
	} else if err != nil {
		return fmt.Errorf("making %s inside: %w", p, err)
	}
	return unix.Close(fd)
}

// write makes a file with a content.
func (r root) write(p string, data []byte) error {
	if err := r.touch(p); err != nil {
		return err
	}
	dir, err := r.at(path.Dir(p))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, path.Base(p), unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("writing %s inside: %w", p, err)
	}
	f := os.NewFile(uintptr(fd), p)
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// symlink makes a link, unless something is there.
func (r root) symlink(p, to string) error {
	if err := r.mkdir(path.Dir(p)); err != nil {
		return err
	}
	dir, err := r.at(path.Dir(p))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := unix.Symlinkat(to, dir, path.Base(p)); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("linking %s inside: %w", p, err)
	}
	return nil
}

// attach puts a mount at p and closes its descriptor.
func (r root) attach(mount int, p string) error {
	defer unix.Close(mount)
	at, err := r.at(p)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if err := unix.MoveMount(mount, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounting at %s: %w", p, err)
	}
	return nil
}

// again clones what is at p inside the root, with further attributes.
func (r root) again(p string, attrs uint64) (int, error) {
	at, err := r.at(p)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	tree, err := unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("cloning the mount of %s: %w", p, err)
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attrs, Propagation: unix.MS_PRIVATE}); err != nil {
		unix.Close(tree)
		return -1, fmt.Errorf("setting the mount of %s: %w", p, err)
	}
	return tree, nil
}
