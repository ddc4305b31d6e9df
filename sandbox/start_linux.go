//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Identities. A caller who is root appears to the host as nobody, so that limits and file rights hold; inside it is an ordinary
// user. Any other caller keeps its number.
const (
	nobody   = 65534
	insideID = 1000
)

// Defaults of Limits.
const (
	defaultProcs   = 4096
	defaultFiles   = 65536
	defaultScratch = 2 << 30
)

// ambient are the capabilities in its own user namespace that init needs until the command starts; without the ambient set an
// ordinary caller's init would have none after the exec.
var ambient = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP}

const cloneFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Start makes a sandbox ready and returns before its command runs: the caller first serves the listeners, then calls
// [Process.Go]. When ctx ends, the sandbox is killed. A [LayerError] says what the machine lacks.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if spec.weaker(FilesByLandlockNoNetwork) {
		return startWithoutNamespaces(ctx, spec)
	}
	if err := preflight(&spec); err != nil {
		return nil, err
	}
	v, err := newView(&spec)
	if err != nil {
		return nil, err
	}
	p, err := newPlan(&spec, v, insidePlaces)
	if err != nil {
		closeAll(v.locks)
		return nil, err
	}
	return spawn(ctx, &spec, v, p)
}

// spawn makes the processes of a plan, or leaves nothing behind.
func spawn(ctx context.Context, spec *Spec, v *view, p *plan) (*Process, error) {
	s := &starter{ctx: ctx, spec: spec, view: v, plan: p}
	proc, err := s.start()
	if err != nil {
		s.abort()
		return nil, err
	}
	return proc, nil
}

// starter is a start under way, and afterwards the box of its Process.
type starter struct {
	ctx  context.Context
	spec *Spec
	view *view
	plan *plan

	janitor *janitor
	cmd     *exec.Cmd
	ctl     control
	group   *cgroup
	stop    func() bool // ends the watch on ctx

	running chan error    // the answer to Go
	ended   chan struct{} // closed when init is gone and everything with it
	mu      sync.Mutex
	exit    *exitStatus
	failed  error // why init ended, if it said so
	toClose []io.Closer
	once    sync.Once
}

func (s *starter) start() (*Process, error) {
	var err error
	if s.janitor, err = startJanitor(s.view.holds, s.view.locks); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	proc := &Process{}
	stdio, err := s.streams(proc)
	if err != nil {
		return nil, err
	}
	err = s.launch(stdio)
	for _, f := range stdio {
		if f != s.spec.Stdin && f != s.spec.Stdout && f != s.spec.Stderr {
			f.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	if err := s.janitor.outlive(s.cmd.Process.Pid); err != nil {
		return nil, fmt.Errorf("sandbox: telling the janitor: %w", err)
	}
	s.stop = context.AfterFunc(s.ctx, func() { _ = s.kill() })
	if s.plan.Mounted {
		if err := s.sendMounts(); err != nil {
			return nil, s.explain(err)
		}
	}
	m, fds, err := s.ctl.receive()
	if err != nil {
		return nil, s.explain(fmt.Errorf("waiting for init: %w", err))
	}
	if m.Failed != nil {
		return nil, withRemedy(m.Failed.error())
	}
	if m.Ready == nil {
		return nil, errors.New("sandbox: init said something else than ready")
	}
	if err := proc.take(*m.Ready, fds); err != nil {
		return nil, err
	}
	proc.report = s.complete(m.Ready.Report)
	proc.box = s
	s.running, s.ended = make(chan error, 1), make(chan struct{})
	go s.watch()
	return proc, nil
}

// streams gives the command's standard streams, and the caller the other ends of those it did not bring.
func (s *starter) streams(proc *Process) ([]*os.File, error) {
	if s.spec.Terminal {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		return []*os.File{null, null, null}, nil
	}
	stdio := []*os.File{s.spec.Stdin, s.spec.Stdout, s.spec.Stderr}
	for i, f := range stdio {
		if f != nil {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		switch i {
		case 0:
			stdio[i], proc.Stdin = r, w
			s.toClose = append(s.toClose, w)
		case 1:
			stdio[i], proc.Stdout = w, r
			s.toClose = append(s.toClose, r)
		case 2:
			stdio[i], proc.Stderr = w, r
			s.toClose = append(s.toClose, r)
		}
	}
	return stdio, nil
}

// launch starts init.
func (s *starter) launch(stdio []*os.File) error {
	plan, err := s.planFile()
	if err != nil {
		return err
	}
	defer plan.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("sandbox: opening the control socket: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return err
	}
	s.ctl = control{os.NewFile(uintptr(pair[0]), "control")}
	s.toClose = append(s.toClose, s.ctl.f)

	s.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{initName}, Dir: "/",
		Env:   []string{}, // process 1 is visible inside: nothing of the caller's is in it
		Stdin: stdio[0], Stdout: stdio[1], Stderr: stdio[2],
		ExtraFiles: []*os.File{theirs, plan},
	}
	host, hostGroup := os.Geteuid(), os.Getegid()
	if s.plan.NoNamespaces {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := s.cmd.Start(); err != nil {
			return fmt.Errorf("sandbox: starting init: %w", err)
		}
		return nil
	}
	attr := &syscall.SysProcAttr{Setsid: true, Cloneflags: cloneFlags, AmbientCaps: ambient}
	if s.spec.off.PID {
		attr.Cloneflags &^= unix.CLONE_NEWPID
	}
	if s.spec.off.Network {
		attr.Cloneflags &^= unix.CLONE_NEWNET
	}
	if s.plan.Mounted {
		host, hostGroup = nobody, nobody
		// Root can drop its groups; an ordinary caller cannot.
		attr.Credential = &syscall.Credential{Uid: uint32(s.plan.UID), Gid: uint32(s.plan.GID)}
		attr.GidMappingsEnableSetgroups = true
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: s.plan.UID, HostID: host, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: s.plan.GID, HostID: hostGroup, Size: 1}}
	if s.group, err = newCgroup(s.spec.Limits); err != nil {
		return &LayerError{Layer: "cgroup", Err: err, Remedy: "A memory limit needs a delegated cgroup v2, as systemd-run --user --scope -p Delegate=yes gives"}
	}
	if s.group != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(s.group.dir.Fd())
	}
	s.cmd.SysProcAttr = attr
	if err := s.cmd.Start(); err != nil {
		return explainClone(err)
	}
	return nil
}

// planFile holds the plan in memory: its environment may carry secrets of the operator's.
func (s *starter) planFile() (*os.File, error) {
	data, err := json.Marshal(s.plan)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("sandbox: making a memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), "plan")
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, fmt.Errorf("sandbox: writing the plan: %w", err)
	}
	return f, nil
}

// take wraps what init passed out.
func (p *Process) take(r ready, fds []int) error {
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), "from the sandbox")
	}
	want := r.Listeners
	if r.DNS {
		want++
	}
	if r.Terminal {
		want++
	}
	err := error(nil)
	if len(files) != want {
		err = errors.New("sandbox: init passed another number of descriptors than it said")
	}
	for i := 0; i < r.Listeners && err == nil; i++ {
		var l net.Listener
		if l, err = net.FileListener(files[i]); err != nil {
			break
		}
		if i == 0 {
			p.listener = l
		} else {
			p.transparent = append(p.transparent, l)
		}
	}
	if err == nil && r.DNS {
		p.dns, err = net.FilePacketConn(files[r.Listeners])
	}
	keep := -1
	if err == nil && r.Terminal {
		keep = len(files) - 1
		if err = unix.SetNonblock(fds[keep], true); err == nil {
			dup, derr := unix.FcntlInt(uintptr(fds[keep]), unix.F_DUPFD_CLOEXEC, 0)
			if err = derr; err == nil {
				p.Terminal = os.NewFile(uintptr(dup), "terminal")
			}
		}
	}
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		p.closeWayOut()
	}
	return err
}

func (p *Process) closeWayOut() {
	if p.listener != nil {
		p.listener.Close()
	}
	for _, l := range p.transparent {
		l.Close()
	}
	if p.dns != nil {
		p.dns.Close()
	}
}

// abort undoes a start that did not come to a Process.
func (s *starter) abort() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
	s.clean()
	for _, c := range s.toClose {
		c.Close()
	}
}

// explain prefers what init had to say over the error of talking to it, and the end of ctx over both.
func (s *starter) explain(err error) error {
	if ctxErr := s.ctx.Err(); ctxErr != nil {
		return fmt.Errorf("sandbox: %w", ctxErr)
	}
	if le := (*LayerError)(nil); errors.As(err, &le) {
		return le
	}
	if m, _, rerr := s.ctl.receive(); rerr == nil && m.Failed != nil {
		return withRemedy(m.Failed.error())
	}
	return fmt.Errorf("sandbox: init ended early: %w", err)
}
