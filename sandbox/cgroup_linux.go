//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroup is a group of a sandbox's own below the caller's, where a delegation allows one.
type cgroup struct {
	path   string
	dir    *os.File
	detail string
}

var errNotDelegated = errors.New("this process may not make a cgroup with the controllers that the limits need")

// newCgroup makes the group. Without a delegation it is nil, which is an error only when a limit was asked for that nothing else
// enforces.
func newCgroup(lim Limits) (*cgroup, error) {
	g, err := tryCgroup(lim)
	if err != nil && lim.Memory == 0 {
		return nil, nil
	}
	return g, err
}

func tryCgroup(lim Limits) (*cgroup, error) {
	own, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(own, "hearsay-")
	if err != nil {
		return nil, errNotDelegated
	}
	g := &cgroup{path: path}
	if err := g.limit(lim); err != nil {
		g.remove()
		return nil, err
	}
	if g.dir, err = os.Open(path); err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

func (g *cgroup) limit(lim Limits) error {
	data, err := os.ReadFile(filepath.Join(g.path, "cgroup.controllers"))
	if err != nil {
		return err
	}
	controllers := strings.Fields(string(data))
	if !slices.Contains(controllers, "pids") || lim.Memory > 0 && !slices.Contains(controllers, "memory") {
		return errNotDelegated
	}
	procs := orDefault(lim.Processes, defaultProcs)
	if err := g.set("pids.max", procs); err != nil {
		return err
	}
	g.detail = fmt.Sprintf("%d processes", procs)
	if lim.Memory == 0 {
		return nil
	}
	if err := g.set("memory.max", lim.Memory); err != nil {
		return err
	}
	if err := g.set("memory.swap.max", 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	g.detail += fmt.Sprintf(", %d MiB of memory", lim.Memory>>20)
	return nil
}

func (g *cgroup) set(name string, value uint64) error {
	return os.WriteFile(filepath.Join(g.path, name), []byte(strconv.FormatUint(value, 10)), 0)
}

// remove takes the group away; its processes are gone. It is nil-safe.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	if g.dir != nil {
		g.dir.Close()
	}
	_ = unix.Rmdir(g.path)
}

// ownCgroup is the folder of the caller's group in the second version's tree.
func ownCgroup() (string, error) {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for _, base := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			var st unix.Statfs_t
			if unix.Statfs(base, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
				return filepath.Join(base, path), nil
			}
		}
	}
	return "", errNotDelegated
}
