//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A protected name that is absent cannot be covered: there is nothing to mount on. So it is made for the run (a hold), covered
// like the others, and removed afterwards if nobody outside has put anything into it. The janitor is a process outside the
// sandbox that removes the holds even if the caller is killed.
//
// Several sandboxes may be in one project: removing a hold would take its cover off in the others. So each has a shared lock on the
// folder, and a run that ends removes holds only if it is the last. A hold is known by the time it bears as long as nobody touched it,
// so that each run takes over what it finds.

// janitorName is the zeroth argument with which the program is started again as a janitor.
const janitorName = "hearsay-sandbox-janitor"

// holdTime is the modification time of an untouched hold: no folder or file of a person's has it.
var holdTime = unix.Timespec{Sec: 1_000_000_007}

// held is a hold as it was made.
type held struct {
	hold
	Dev, Ino uint64
}

// lockTime bounds the wait for a run that is removing its holds.
const (
	lockTime  = 2 * time.Second
	lockPause = 10 * time.Millisecond
)

// lockFolder takes the shared lock of a run. nil means that there is none: the file system has no locks, or somebody keeps it.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockTime); ; time.Sleep(lockPause) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			f.Close()
			return nil, nil
		}
	}
}

// lastIn reports whether no other run has the folder. It gives the shared lock up.
func lastIn(lock int) bool {
	return unix.Flock(lock, unix.LOCK_EX|unix.LOCK_NB) == nil
}

// isHold reports whether what is at a path is an untouched hold of another run.
func isHold(info fs.FileInfo, dir bool) bool {
	return info.IsDir() == dir && (dir || info.Mode().IsRegular()) && info.ModTime().Equal(time.Unix(holdTime.Unix()))
}

// janitorOrder is what a janitor is told.
type janitorOrder struct {
	Held *held `json:",omitempty"`
	Init int   `json:",omitempty"` // process to outlive: until it is gone the names must stay covered
}

// janitor is the caller's side.
type janitor struct {
	cmd  *exec.Cmd
	end  io.WriteCloser // closing it makes the janitor clean up
	held []held
	// locks stand in the order that hold.Lock counts in; both sides have them.
	locks []*os.File
}

// startJanitor makes the holds. The janitor runs before the first of them exists. It takes the locks over.
func startJanitor(holds []hold, locks []*os.File) (*janitor, error) {
	if len(holds) == 0 {
		closeAll(locks)
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{janitorName}, Env: []string{}, Stdin: r, Dir: "/"}
	cmd.ExtraFiles = locks
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's signals are not for it
	err = cmd.Start()
	r.Close()
	if err != nil {
		w.Close()
		closeAll(locks)
		return nil, fmt.Errorf("starting the janitor: %w", err)
	}
	j := &janitor{cmd: cmd, end: w, locks: locks}
	enc := json.NewEncoder(w)
	for _, h := range holds {
		made, err := h.make()
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s appeared while the sandbox started", h.Path)
		}
		if err == nil {
			j.held = append(j.held, made)
			err = enc.Encode(janitorOrder{Held: &made})
		}
		if err != nil {
			j.close()
			return nil, fmt.Errorf("holding a protected name: %w", err)
		}
	}
	return j, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func (h hold) make() (held, error) {
	switch {
	case h.Found:
	case h.Dir:
		if err := os.Mkdir(h.Path, 0o755); err != nil {
			return held{}, err
		}
	default:
		f, err := os.OpenFile(h.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return held{}, err
		}
		_, err = f.WriteString(h.Text)
		if err = errors.Join(err, f.Close()); err != nil {
			return held{}, err
		}
	}
	if !h.Found {
		times := []unix.Timespec{holdTime, holdTime}
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, h.Path, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return held{}, err
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(h.Path, &st); err != nil {
		return held{}, err
	}
	return held{h, st.Dev, st.Ino}, nil
}

// remove takes a hold away, unless somebody outside made it their own: a folder with something in it, a file with another
// content, another file in its place.
func (h held) remove() {
	var st unix.Stat_t
	if unix.Lstat(h.Path, &st) != nil || st.Dev != h.Dev || st.Ino != h.Ino {
		return
	}
	if h.Dir {
		_ = unix.Rmdir(h.Path)
		return
	}
	if data, err := os.ReadFile(h.Path); err == nil && string(data) == h.Text {
		_ = unix.Unlink(h.Path)
	}
}

// removeHolds removes the holds of every folder that no other run has.
func removeHolds(all []held, locks []int) {
	last := make([]bool, len(locks))
	for i, lock := range locks {
		last[i] = lastIn(lock)
	}
	for _, h := range all {
		if h.Lock < 0 || h.Lock < len(last) && last[h.Lock] {
			h.remove()
		}
	}
}

// outlive tells the janitor which process to outlive.
func (j *janitor) outlive(pid int) error {
	if j == nil {
		return nil
	}
	return json.NewEncoder(j.end).Encode(janitorOrder{Init: pid})
}

// close removes the holds and waits for the janitor, which removes them a second time.
func (j *janitor) close() {
	if j == nil {
		return
	}
	var fds []int
	for _, f := range j.locks {
		fds = append(fds, int(f.Fd()))
	}
	removeHolds(j.held, fds)
	j.end.Close()
	_ = j.cmd.Wait()
	closeAll(j.locks)
}

// runJanitor reads holds until its starter closes the pipe or is gone, and removes them.
func runJanitor() {
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		for range caught {
		}
	}()
	var all []held
	var locks []int
	init := -1
	dec := json.NewDecoder(os.Stdin)
	for {
		var o janitorOrder
		if dec.Decode(&o) != nil {
			break
		}
		if o.Held != nil && filepath.IsAbs(o.Held.Path) {
			all = append(all, *o.Held)
			for fd := controlFD + len(locks); len(locks) <= o.Held.Lock; fd++ {
				locks = append(locks, fd)
			}
		}
		if o.Init > 0 {
			init, _ = unix.PidfdOpen(o.Init, 0) // already gone when it fails
		}
	}
	if init >= 0 {
		for {
			// Readable once the process is gone, and with it all that it was the init of.
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(init), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
	removeHolds(all, locks)
}
