package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// Exit is how the command ended.
type Exit struct {
	Code   int            // exit code, when Signal is 0
	Signal syscall.Signal // the signal that ended it
}

// Status is the exit code a shell would show: the command's own, or 128 and the signal.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("ended by signal %d (%v)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// ErrGone says that the sandbox ended before its command did: it was killed from outside, or its init was.
var ErrGone = errors.New("sandbox: ended before its command")

// Process is a sandbox and the command in it. [Process.Wait] must be called once; it frees what Start made.
type Process struct {
	// Ends of the pipes for what the Spec left nil; nil otherwise. The caller closes them; Wait closes what is still open
	// of Stdin only, so that output can be read to its end after the command is gone.
	Stdin          io.WriteCloser
	Stdout, Stderr io.ReadCloser

	// Terminal is the outer side of the command's terminal with Spec.Terminal; nil otherwise. The caller closes it.
	Terminal *os.File

	listener    net.Listener
	transparent []net.Listener
	dns         net.PacketConn
	box         box

	started atomic.Bool
	report  Report
}

// box is what the platform holds of a sandbox.
type box interface {
	run() error
	wait() (Exit, error)
	signal(syscall.Signal) error
	kill() error
}

// Listener is the socket of the proxy, made inside the sandbox's network: who connects to it is in this sandbox. nil without
// [Egress]. The caller serves and closes it.
func (p *Process) Listener() net.Listener { return p.listener }

// Transparent are listeners for programs that know no proxy. The local address of a connection is the address and port
// the program meant to reach. Empty without [Egress]. The caller serves and closes them.
func (p *Process) Transparent() []net.Listener { return p.transparent }

// DNS is the socket that the sandbox's resolver asks. nil without [Egress]. The caller serves and closes it.
func (p *Process) DNS() net.PacketConn { return p.dns }

// Go lets the command start, and returns once it runs or could not be started ([CommandError], [LayerError]). After an
// error the sandbox is gone; Wait is still to be called.
func (p *Process) Go() error {
	if p.started.Swap(true) {
		return errors.New("sandbox: Go was called before")
	}
	return p.box.run()
}

// Wait blocks until the command has ended and every process inside is gone. The error is not nil only when the end of the
// command is not known ([ErrGone]).
func (p *Process) Wait() (Exit, error) {
	exit, err := p.box.wait()
	if p.Stdin != nil {
		p.Stdin.Close()
	}
	return exit, err
}

// Signal sends sig to the command. Before Go and after the end it is an error.
func (p *Process) Signal(sig syscall.Signal) error {
	if !p.started.Load() {
		return errors.New("sandbox: the command has not been started")
	}
	return p.box.signal(sig)
}

// Kill ends every process inside at once.
func (p *Process) Kill() error { return p.box.kill() }

// Report says what is enforced. It is complete before Go: it can be recorded before the command runs.
func (p *Process) Report() Report { return p.report }
