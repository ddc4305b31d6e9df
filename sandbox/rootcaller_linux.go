//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// sendMounts grabs the sources for a root caller, whose user inside may not walk to them, and hands them to init. On what the
// operator listed, the owner is mapped to that user: it acts on the project as the project's owner would, and as nobody
// everywhere else.
func (s *starter) sendMounts() error {
	maps := map[owner]*os.File{}
	defer func() {
		for _, f := range maps {
			f.Close()
		}
	}()
	var batch []int
	flush := func() error {
		defer func() {
			for _, fd := range batch {
				unix.Close(fd)
			}
			batch = nil
		}()
		if len(batch) == 0 {
			return nil
		}
		return s.ctl.send(message{Mounts: true}, batch...)
	}
	for _, e := range s.plan.Entries {
		if e.Access == hidden {
			continue
		}
		idmap := -1
		if e.Listed {
			f, err := ownerMap(e.Source, maps)
			if err != nil {
				return errors.Join(err, flush())
			}
			idmap = int(f.Fd())
		}
		fd, err := grab(e, idmap)
		if err != nil {
			le := &LayerError{Layer: "files", Err: err}
			if idmap >= 0 {
				le.Remedy = "For a root caller the file system must know idmapped mounts (ext4, xfs, btrfs, tmpfs from 6.3): run as an ordinary user instead"
			}
			_ = flush()
			return le
		}
		if batch = append(batch, fd); len(batch) == maxFDs {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

type owner struct{ uid, gid uint32 }

// ownerMap is a user namespace that maps the owner of a source to the sandbox's user.
func ownerMap(source string, maps map[owner]*os.File) (*os.File, error) {
	fd, err := openNoLinks(unix.AT_FDCWD, source, 0)
	if err != nil {
		return nil, &LayerError{Layer: "files", Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &LayerError{Layer: "files", Err: err}
	}
	o := owner{st.Uid, st.Gid}
	if f, ok := maps[o]; ok {
		return f, nil
	}
	f, err := newIDMap(o)
	if err != nil {
		return nil, &LayerError{Layer: "files", Err: fmt.Errorf("making an id map: %w", err)}
	}
	maps[o] = f
	return f, nil
}

// newIDMap makes a user namespace that lives as long as the file. A process must be in it while its maps are written: it is
// stopped before its first instruction, and ended.
func newIDMap(o owner) (*os.File, error) {
	// A traced process belongs to the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"hearsay-sandbox-idmap"}, Env: []string{}, Dir: "/", SysProcAttr: &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		Ptrace:      true,
		Pdeathsig:   syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: int(o.uid), HostID: nobody, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: int(o.gid), HostID: nobody, Size: 1}},
	}}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return f, err
}
