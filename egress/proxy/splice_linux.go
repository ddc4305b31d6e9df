package proxy

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

const (
	// spliceSize is how much one call moves at most, and what a pipe is asked to hold.
	spliceSize = 1 << 20
	// bulkLeast is what a read must bring for the next to go through a pipe.
	bulkLeast = 32 << 10
	// idlePipes bounds the pipes kept for the next burst.
	idlePipes = 32

	spliceMove     = 1    // SPLICE_F_MOVE
	spliceNonblock = 2    // SPLICE_F_NONBLOCK
	setPipeSize    = 1031 // F_SETPIPE_SZ
)

// spliceSet lends pipes to tunnels while they have much to move: a tunnel that waits holds neither pipe nor buffer.
type spliceSet struct {
	mu    sync.Mutex
	users int
	free  []kernelPipe
}

type kernelPipe struct{ r, w int }

func (s *spliceSet) enter() {
	s.mu.Lock()
	s.users++
	s.mu.Unlock()
}

// leave closes the kept pipes behind the last user.
func (s *spliceSet) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if s.users == 0 {
		for _, p := range s.free {
			p.close()
		}
		s.free = nil
	}
}

func (s *spliceSet) get() (kernelPipe, bool) {
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		p := s.free[n-1]
		s.free = s.free[:n-1]
		s.mu.Unlock()
		return p, true
	}
	s.mu.Unlock()
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return kernelPipe{}, false
	}
	// Best effort: an unprivileged user over the kernel's soft limit keeps the small pipe, which is only slower.
	_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(fds[1]), setPipeSize, spliceSize)
	return kernelPipe{fds[0], fds[1]}, true
}

// put takes back a pipe that is empty.
func (s *spliceSet) put(p kernelPipe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) < idlePipes {
		s.free = append(s.free, p)
		return
	}
	p.close()
}

func (p kernelPipe) close() {
	syscall.Close(p.r)
	syscall.Close(p.w)
}

// tcpRelay is the state of one direction. Its callbacks are made once, so that a piece that moves costs no allocation.
type tcpRelay struct {
	set   *spliceSet
	pipe  kernelPipe
	piped bool // pipe is held and may hold n bytes
	hasty bool // the destination was prepared
	bulk  bool // much arrives: use the pipe
	buf   *[bulkSize]byte
	n     int
	err   error
	spent int // of n, written
}

// relayTCP is relay between TCP connections: small pieces through a buffer, large ones through the kernel (splice(2)).
func relayTCP(dst, src *net.TCPConn, moved func(int) error, set *spliceSet) error {
	in, err := src.SyscallConn()
	if err != nil {
		return err
	}
	out, err := dst.SyscallConn()
	if err != nil {
		return writeError{err}
	}
	r := tcpRelay{set: set}
	defer r.drop()
	receive, send := r.receive, r.send
	for {
		r.n, r.spent = 0, 0
		if err := in.Read(receive); err != nil {
			return err
		}
		switch {
		case r.err != nil:
			return os.NewSyscallError("read", r.err)
		case r.n == 0:
			return nil
		}
		if err := moved(r.n); err != nil {
			return err
		}
		if r.bulk = r.n >= bulkLeast; r.bulk && !r.hasty {
			hasten(dst)
			r.hasty = true
		}
		if r.piped {
			if err := out.Write(send); err != nil {
				return writeError{err}
			}
			if r.err != nil {
				return writeError{os.NewSyscallError("splice", r.err)}
			}
			r.set.put(r.pipe)
			r.piped = false
			continue
		}
		_, err := dst.Write(r.buf[:r.n])
		bulkBufs.Put(r.buf)
		r.buf = nil
		if err != nil {
			return writeError{err}
		}
	}
}

// receive tries once to read, and gives back what it would have read into when there is nothing yet.
func (r *tcpRelay) receive(fd uintptr) bool {
	if r.bulk && !r.piped {
		r.pipe, r.piped = r.set.get()
	}
	if r.piped {
		r.n, r.err = again(func() (int, error) {
			n, err := syscall.Splice(int(fd), nil, r.pipe.w, nil, spliceSize, spliceMove|spliceNonblock)
			return int(n), err
		})
		if r.err == syscall.EAGAIN || r.n == 0 {
			r.set.put(r.pipe)
			r.piped = false
		}
		return r.err != syscall.EAGAIN
	}
	r.buf = bulkBufs.Get().(*[bulkSize]byte)
	r.n, r.err = again(func() (int, error) { return syscall.Read(int(fd), r.buf[:]) })
	if r.err != nil || r.n == 0 {
		bulkBufs.Put(r.buf)
		r.buf = nil
	}
	return r.err != syscall.EAGAIN
}

// send empties the pipe into a connection.
func (r *tcpRelay) send(fd uintptr) bool {
	for r.spent < r.n {
		n, err := again(func() (int, error) {
			n, err := syscall.Splice(r.pipe.r, nil, int(fd), nil, r.n-r.spent, spliceMove|spliceNonblock)
			return int(n), err
		})
		if err == syscall.EAGAIN {
			return false
		}
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			r.err = err
			return true
		}
		r.spent += n
	}
	r.err = nil
	return true
}

// drop lets go of a pipe that still holds bytes: the next tunnel must never see them.
func (r *tcpRelay) drop() {
	if r.piped {
		r.pipe.close()
		r.piped = false
	}
	if r.buf != nil {
		bulkBufs.Put(r.buf)
	}
}

// again repeats a system call that a signal interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
