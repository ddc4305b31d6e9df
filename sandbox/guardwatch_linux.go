//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// A cover on a file of the host goes away when somebody outside puts another file in its place, as an editor or git itself does when it
// saves: the kernel takes mounts off what is replaced, in every mount namespace. What was protected would then be open inside. Nobody
// inside can change a mount, so every change of the list means that; init sees it at once and ends the sandbox.

// maxMountInfo bounds the list of the sandbox's own mounts: a few hundred lines.
const maxMountInfo = 1 << 20

// guardWatch has the list of mounts as it was before the command ran.
type guardWatch struct {
	list   int // a bare descriptor: the runtime's own poller, in which an os.File would be, takes the news away from ours
	points map[string]int
}

func newGuardWatch() (*guardWatch, error) {
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the list of mounts: %w", err)
	}
	w := &guardWatch{list: fd}
	if w.points, err = w.read(); err != nil {
		return nil, err
	}
	return w, nil
}

// read counts the mounts at each place.
func (w *guardWatch) read() (map[string]int, error) {
	buf := make([]byte, 32<<10) // enough for nearly all; each page of it costs at the start
	n := 0
	for {
		got, err := unix.Pread(w.list, buf[n:], int64(n))
		if errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading the list of mounts: %w", err)
		}
		if got == 0 {
			break
		}
		if n += got; n == len(buf) {
			if n >= maxMountInfo {
				return nil, errors.New("the list of mounts is longer than it can be")
			}
			buf = append(buf, make([]byte, n)...)
		}
	}
	points := map[string]int{}
	for line := range strings.Lines(string(buf[:n])) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points[fields[4]]++
		}
	}
	return points, nil
}

// wait blocks until a mount is gone and names its place, as the kernel writes it.
func (w *guardWatch) wait() error {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(w.list), Events: unix.POLLPRI}}, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watching the mounts: %w", err)
		}
		now, err := w.read()
		if err != nil {
			return err
		}
		for point, n := range w.points {
			if now[point] < n {
				return fmt.Errorf("%s was replaced or removed outside while it was guarded here", point)
			}
		}
	}
}
