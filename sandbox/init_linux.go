//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// initName is the zeroth argument with which the program is started again as the init of a sandbox.
const initName = "hearsay-sandbox-init"

// Descriptors of init.
const (
	controlFD = 3
	planFD    = 4
)

// exitInit is the code of an init that could not make the sandbox. Nobody reads it but a person in a trace.
const exitInit = 125

// init takes the process over when it was started as the init of a sandbox, as its janitor, or as the probe of Examine. It is done here and not by a call in
// main, since a program's other packages would initialise first, in each start of a sandbox; the package imports little so that its
// turn comes early.
func init() {
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case initName:
		runInit()
		os.Exit(exitInit)
	case janitorName:
		runJanitor()
		os.Exit(0)
	case probeName:
		runProbe()
		os.Exit(0)
	}
}

// layerError is how a step of init says which layer it belongs to.
func layerError(layer string, err error) error {
	if err == nil {
		return nil
	}
	return &LayerError{Layer: layer, Err: err}
}

func runInit() {
	// Nobody may look into init: its memory holds the plan.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	ctl := control{os.NewFile(controlFD, "control")}
	in := &initer{ctl: ctl}
	// On a thread of its own, never unlocked: what is set on it, the command inherits. Not on the main thread, which is in charge of
	// the process's signals: were it in the Landlock domain, the command could signal init.
	ended := make(chan error)
	go func() {
		runtime.LockOSThread()
		ended <- in.run()
	}()
	if err := <-ended; err != nil {
		_ = ctl.send(message{Failed: describe(err)}) // the parent also sees the end of the socket
	}
}

// describe makes an error that crosses the socket.
func describe(err error) *failure {
	f := &failure{Text: err.Error(), Layer: "start"}
	var le *LayerError
	if errors.As(err, &le) {
		f.Layer, f.Remedy, f.Text = le.Layer, le.Remedy, le.Err.Error()
	}
	var ce *CommandError
	if errors.As(err, &ce) {
		f.Command, f.Remedy, f.NotFound, f.Text = ce.Command, ce.Hint, ce.NotFound, ce.Err.Error()
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		f.Errno = errno
		f.Text = strings.TrimSuffix(f.Text, ": "+errno.Error())
	}
	return f
}

// initer is process 1 of a sandbox.
type initer struct {
	ctl    control
	plan   plan
	root   root
	mounts []int  // grabbed, in the order of the entries
	covers [2]int // of a file and of a folder, opened while the root is built
	notes  []string
	inside map[string]string // namespaces
	pty    *os.File          // the command's side
	target int
	guard  *guardWatch // nil without a mount namespace
}

// run is the order of a start. It returns only with an error; otherwise the process ends in it.
//
// All of it happens on one thread: a change of threads costs more here than most steps.
func (in *initer) run() (err error) {
	if err := in.readPlan(); err != nil {
		return layerError("start", err)
	}
	closeInherited()
	// Caught and dropped: orders come over the socket. Ignored ones would stay ignored in the command.
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGABRT)
	go func() {
		for range caught {
		}
	}()

	if in.plan.NoNamespaces {
		return in.runWithoutNamespaces()
	}
	var fds []int
	if err := in.namespaces(); err != nil {
		return layerError("namespaces", err)
	}
	if in.plan.Off.Network {
		in.plan.Network = NoNetwork
	} else if err := loopbackUp(); err != nil {
		return layerError("network", err)
	}
	r := ready{}
	if in.plan.Network == Egress {
		socks, notes, err := openWayOut(in.plan.Ports)
		if err != nil {
			return layerError("network", err)
		}
		in.notes = append(in.notes, notes...)
		fds = socks
		r.Listeners, r.DNS = len(socks)-1, true
	}
	if err := in.grabAll(); err != nil {
		return layerError("files", err)
	}
	if err := in.build(); err != nil {
		return err
	}
	if in.plan.Terminal {
		outer, err := in.openTerminal()
		if err != nil {
			return layerError("terminal", err)
		}
		fds = append(fds, outer)
		r.Terminal = true
	}
	if in.guard, err = newGuardWatch(); err != nil {
		return layerError("files", err)
	}
	if r.Report, err = in.confine(); err != nil {
		return err
	}
	return in.serve(r, fds)
}

func (in *initer) readPlan() error {
	f := os.NewFile(planFD, "plan")
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 16<<20))
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	if err := json.Unmarshal(data, &in.plan); err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	return nil
}

// closeInherited closes what the parent's own starter left open: only descriptors that came over the exec lack the close-on-exec
// flag, those of the Go runtime have it.
func closeInherited() {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		f := os.NewFile(uintptr(dir), "fd")
		names, _ := f.Readdirnames(-1)
		f.Close()
		for _, n := range names {
			fd, err := strconv.Atoi(n)
			if err != nil || fd <= planFD {
				continue
			}
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
				unix.Close(fd)
			}
		}
	}
	// And whatever the look missed at least does not reach the command.
	_ = unix.CloseRange(controlFD, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
}

var namespaceKinds = []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}

// readNamespaces are the namespaces of the calling process. The host's /proc must be there.
func readNamespaces() (map[string]string, error) {
	ns := map[string]string{}
	for _, kind := range namespaceKinds {
		to, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return nil, fmt.Errorf("looking at the %s namespace: %w", kind, err)
		}
		ns[kind] = to
	}
	return ns, nil
}

// namespaces checks that none is shared with the parent.
func (in *initer) namespaces() error {
	inside, err := readNamespaces()
	if err != nil {
		return err
	}
	for _, kind := range namespaceKinds {
		if inside[kind] == in.plan.Namespaces[kind] && !(kind == "pid" && in.plan.Off.PID) && !(kind == "net" && in.plan.Off.Network) {
			return fmt.Errorf("the %s namespace is the parent's", kind)
		}
	}
	in.inside = inside
	return unix.Sethostname([]byte("sandbox"))
}

// grabAll clones every source before anything is mounted: what is under /tmp would otherwise vanish. For a root caller the parent
// did it, as its user inside may not walk to the sources.
func (in *initer) grabAll() error {
	var sources []entry
	for _, e := range in.plan.Entries {
		if e.Access != hidden {
			sources = append(sources, e)
		}
	}
	if !in.plan.Mounted {
		for _, e := range sources {
			fd, err := grab(e, -1)
			if err != nil {
				return err
			}
			in.mounts = append(in.mounts, fd)
		}
		return nil
	}
	for len(in.mounts) < len(sources) {
		m, fds, err := in.ctl.receive()
		if err != nil {
			return fmt.Errorf("receiving the mounts: %w", err)
		}
		if !m.Mounts || len(fds) == 0 {
			return errors.New("receiving the mounts: another message came")
		}
		in.mounts = append(in.mounts, fds...)
	}
	return nil
}

// openTerminal makes the command's terminal in the sandbox's own devpts and returns the outer side.
func (in *initer) openTerminal() (int, error) {
	outer, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.IoctlSetPointerInt(outer, unix.TIOCSPTLCK, 0); err != nil {
		return -1, fmt.Errorf("unlocking: %w", err)
	}
	n, err := unix.IoctlGetInt(outer, unix.TIOCGPTN)
	if err != nil {
		return -1, fmt.Errorf("asking for the number: %w", err)
	}
	inner, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	in.pty = os.NewFile(uintptr(inner), "terminal")
	return outer, nil
}

// confine sets the layers that hold the calling thread and what it starts, and measures them.
func (in *initer) confine() (Report, error) {
	p := &in.plan
	if err := setLimits(p); err != nil {
		return Report{}, layerError("limits", err)
	}
	if !p.Off.Caps {
		if err := dropCapabilities(!p.NoNamespaces || os.Geteuid() == 0); err != nil {
			return Report{}, layerError("capabilities", err)
		}
	} else if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return Report{}, layerError("capabilities", err)
	}
	if !p.NoLandlock && !p.Off.Landlock {
		if err := in.landlock(); err != nil {
			return Report{}, layerError("landlock", err)
		}
	}
	instructions := 0
	if !p.Off.Seccomp {
		n, err := loadFilter(p.Sockets)
		if err != nil {
			return Report{}, layerError("seccomp", err)
		}
		instructions = n
	}
	return in.measure(instructions)
}
