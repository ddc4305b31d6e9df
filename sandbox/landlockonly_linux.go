//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// The mode for machines that refuse namespaces, most of them containers: Landlock holds the files, and keeps signals and tracing inside;
// seccomp refuses every socket. It needs what earlier versions of Landlock lack, and refuses where something would be left open.

// minABI is the first version of Landlock that keeps signals inside; nothing else does without a process namespace.
const minABI = 6

// hostText are the files of /etc that every program reads, and that hold no secret. With a root of its own the sandbox makes them up.
var hostText = []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf"}

func startWithoutNamespaces(ctx context.Context, spec Spec) (*Process, error) {
	refuse := func(layer, format string, args ...any) (*Process, error) {
		return nil, &LayerError{Layer: layer, Err: fmt.Errorf(format, args...), Remedy: "This mode is for servers without a network that need no more than folders to read and to write"}
	}
	switch abi := landlockABI(); {
	case spec.weaker(NoLandlock):
		return refuse("landlock", "nothing would be left of the sandbox: %s and %s exclude each other", NoLandlock, FilesByLandlockNoNetwork)
	case abi < minABI:
		return nil, &LayerError{Layer: "landlock", Err: fmt.Errorf("the kernel has Landlock ABI %d, and only from %d on does it keep signals inside", abi, minABI), Remedy: "Use a kernel from 6.12 on"}
	case spec.Network != NoNetwork:
		return refuse("network", "there is none in the mode %s", FilesByLandlockNoNetwork)
	case spec.weaker(UnixSocketsInView):
		return refuse("network", "the mode %s refuses every socket", FilesByLandlockNoNetwork)
	case spec.Terminal:
		return refuse("terminal", "the mode %s has none", FilesByLandlockNoNetwork)
	case len(spec.CA) > 0:
		return refuse("files", "the mode %s has no certificates of its own", FilesByLandlockNoNetwork)
	}
	v, err := newView(&spec)
	if err != nil {
		return nil, err
	}
	closeAll(v.locks) // nothing is held here
	for _, e := range v.entries {
		if e.Access == hidden || e.Access == protected || e.Access == pinned {
			return refuse("files", "%s lies inside a listed folder and must be %s, which Landlock alone cannot do", e.Target, e.Access)
		}
	}
	if len(v.holds) > 0 {
		return refuse("files", "%s would have to be held, which Landlock alone cannot do", v.holds[0].Path)
	}
	base, err := os.MkdirTemp("", "hearsay-")
	if err != nil {
		return nil, fmt.Errorf("sandbox: making scratch folders: %w", err)
	}
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return nil, err
	}
	sc := scratch{Base: base, Home: filepath.Join(base, "home"), Tmp: filepath.Join(base, "tmp"), Witness: filepath.Join(base, "witness")}
	for _, dir := range []string{sc.Home, filepath.Join(sc.Home, ".cache"), filepath.Join(sc.Home, ".config"), sc.Tmp, sc.Tmp + runtimeFolder, sc.Witness} {
		if err = errors.Join(err, os.Mkdir(dir, 0o700)); err != nil {
			break
		}
	}
	at := places{home: sc.Home, tmp: sc.Tmp}
	for i, e := range v.entries {
		if e.Target == StateDir { // there is no other root to put it into
			v.entries[i].Target, at.state = e.Source, e.Source
		}
	}
	var p *plan
	if err == nil {
		p, err = newPlan(&spec, v, at)
	}
	if err != nil {
		os.RemoveAll(base)
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	p.NoNamespaces, p.Scratch, p.Sockets, p.Mounted, p.Files = true, sc, noSockets, false, nil
	v.notes = append(v.notes, "processes of the machine are visible by name; what left the command's session is ended by a search, not by the kernel")
	if os.Geteuid() == 0 {
		v.notes = append(v.notes, "the caller is root and stays root, without capabilities")
	}
	return spawn(ctx, &spec, v, p)
}

// runWithoutNamespaces is run for this mode.
func (in *initer) runWithoutNamespaces() error {
	// Orphans come to init, which ends them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return layerError("start", err)
	}
	if found, err := filepath.Glob("/proc/self/task/*/children"); err != nil || len(found) == 0 {
		return layerError("processes", errors.New("the kernel does not list the children of a process, so that they could not be ended"))
	}
	report, err := in.confine()
	if err != nil {
		return err
	}
	return in.serve(ready{Report: report}, nil)
}

// sweeping makes the end of the command and the end of the parent take turns.
var sweeping sync.Mutex

// sweep ends everything that init started: it kills its children until there are none, and orphans become its children. Then
// it removes the scratch folders.
func (in *initer) sweep() {
	sweeping.Lock()
	defer sweeping.Unlock()
	for {
		kids := children()
		if len(kids) == 0 {
			break
		}
		for _, pid := range kids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		// Whoever waits, here or in reap, takes the dead away.
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			break
		}
	}
	// Not on the confined thread, which may remove nothing there.
	removed := make(chan struct{})
	go func() {
		defer close(removed)
		_ = os.RemoveAll(in.plan.Scratch.Base)
	}()
	<-removed
}

// children are those of every thread of this process.
func children() []int {
	var pids []int
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, f := range files {
		data, _ := os.ReadFile(f)
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
