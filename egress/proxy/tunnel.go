package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// lingerTime is how long a side whose words no longer reach anyone may go on sending before it is cut off: long enough for
// it to read what was sent to it, since closing on unread bytes throws that away (RFC 9112 section 9.6).
const lingerTime = 10 * time.Second

// joint is a tunnel while its bytes move.
type joint struct {
	client, server net.Conn
	up, down       func(n int) error // told of each piece that moved; an error ends the tunnel
	firstUp        func() error      // runs before the relay of its direction, nil for nothing; its error ends the tunnel, see also errTaken
	firstDown      func() error
	recovered      func(*error) // deferred where a panic could come
	linger         func()       // called once, when nothing can reach anyone any more but a side still sends
	splice         *spliceSet
	crew           *crew

	mu    sync.Mutex
	quiet int // directions that deliver nothing any more
	ends  int // directions that ended in order

	toClient, toServer writes
}

// writes is what became of the writes to one side.
type writes struct {
	ended bool          // in order: its input was ended from here
	err   error         // what one has met
	told  chan struct{} // closed with err
}

// run moves bytes until both directions have ended, and closes both connections. Each direction ends on its own: an end of
// input becomes a closed write side, and the other direction lives on. A reset becomes a reset, so that a cut stream never
// looks like a whole one. Where a side takes no more, what it sent before is still delivered. The error is the first that was
// not an orderly end, nil for none.
func (j *joint) run() error {
	j.toClient.told, j.toServer.told = make(chan struct{}), make(chan struct{})
	var upErr error
	var wg sync.WaitGroup
	wg.Add(1)
	j.crew.do(func() {
		defer wg.Done()
		upErr = j.direction(j.server, j.client, j.up, j.firstUp)
	})
	downErr := j.direction(j.client, j.server, j.down, j.firstDown)
	wg.Wait()
	if upErr == errTaken && downErr == errTaken {
		return errTaken
	}
	j.server.Close()
	j.client.Close()
	if upErr != nil && (downErr == nil || errors.Is(downErr, net.ErrClosed)) {
		return upErr
	}
	return downErr
}

func (j *joint) direction(dst, src net.Conn, moved func(int) error, first func() error) (err error) {
	defer func() {
		if err == errPanic {
			abort(dst)
			abort(src)
		}
	}()
	defer j.recovered(&err)
	if first != nil {
		err = first()
	}
	if err == nil {
		err = relay(dst, src, moved, j.splice)
	}
	if err == errTaken {
		return err
	}
	var w writeError
	if err == nil && j.wasReset(src) {
		err = syscall.ECONNRESET
	}
	switch {
	case err == nil:
		// Behind the last end of all both are closed at once.
		if !j.lastEnd(dst) && closeWrite(dst) != nil {
			dst.Close()
		}
		j.fallQuiet()
		return nil
	case errors.As(err, &w):
		j.met(dst, err)
		j.fallQuiet()
		_, _ = io.Copy(io.Discard, onlyReader{src})
		return err
	}
	// The source was reset, the tunnel was ended, or a limit was reached: a clean end would be a lie to either side.
	abort(dst)
	abort(src)
	return err
}

// errTaken is the error of a first function whose direction is taken over by somebody else: where both are, nothing is closed.
var errTaken = errors.New("taken over")

func (j *joint) writesTo(side net.Conn) *writes {
	if side == j.client {
		return &j.toClient
	}
	return &j.toServer
}

// lastEnd notes an orderly end that is passed on to a side, and reports whether the other direction has had its own.
func (j *joint) lastEnd(to net.Conn) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ends++
	j.writesTo(to).ended = true
	return j.ends == 2
}

// met notes what a write to a side has met.
func (j *joint) met(side net.Conn, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := j.writesTo(side)
	w.err = err
	close(w.told)
}

// resetTime is how long an end of input waits for the write that met a reset to say so. It is on its way already.
const resetTime = time.Second

// wasReset reports whether an end of input from a side is the trace of a reset that a write to it has met, or is about to
// tell. A reset behind an orderly end is a broken pipe to the kernel, and no loss.
func (j *joint) wasReset(side net.Conn) bool {
	unmet, met := endOf(side)
	if unmet != nil {
		return errors.Is(unmet, syscall.ECONNRESET)
	}
	w := j.writesTo(side)
	j.mu.Lock()
	waits := met && !w.ended // a side that was ended from both ends is closed as well
	j.mu.Unlock()
	if waits {
		select {
		case <-w.told:
		case <-time.After(resetTime):
			return true
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Is(w.err, syscall.ECONNRESET)
}

// fallQuiet notes that a direction delivers nothing any more.
func (j *joint) fallQuiet() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.quiet++
	if j.quiet == 2 {
		j.linger()
	}
}

// onlyReader hides what io.Copy would use to read in larger pieces than needed here.
type onlyReader struct{ io.Reader }

// writeError marks a failure on the writing side of a relay.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

// relay moves bytes from src to dst until the end of input (nil), a failure of the reading side, or a writeError.
func relay(dst, src net.Conn, moved func(int) error, set *spliceSet) error {
	if d, ok := dst.(*net.TCPConn); ok {
		if s, ok := src.(*net.TCPConn); ok && set != nil {
			return relayTCP(d, s, moved, set)
		}
	}
	return relayAny(dst, src, moved)
}

// relayAny waits with a small buffer and takes a large one while much arrives.
func relayAny(dst, src net.Conn, moved func(int) error) error {
	small := readBufs.Get().(*[readSize]byte)
	defer readBufs.Put(small)
	for {
		n, err := src.Read(small[:])
		if n > 0 {
			if err := pass(dst, small[:n], moved); err != nil {
				return err
			}
		}
		if n == readSize && err == nil {
			err = relayBulk(dst, src, moved)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func relayBulk(dst, src net.Conn, moved func(int) error) error {
	bulk := bulkBufs.Get().(*[bulkSize]byte)
	defer bulkBufs.Put(bulk)
	for {
		n, err := src.Read(bulk[:])
		if n > 0 {
			if err := pass(dst, bulk[:n], moved); err != nil {
				return err
			}
		}
		if err != nil || n < readSize {
			return err
		}
	}
}

func pass(dst net.Conn, p []byte, moved func(int) error) error {
	if err := moved(len(p)); err != nil {
		return err
	}
	if _, err := dst.Write(p); err != nil {
		return writeError{err}
	}
	return nil
}

// closeWrite ends the write side of a connection that has two sides to end.
func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return errors.ErrUnsupported
}

// abort closes with a reset where the connection can, so that the peer does not take what it has for all there is.
func abort(c net.Conn) {
	raw := c
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		raw = t.NetConn()
	}
	if t, ok := raw.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0)
	}
	raw.Close()
}
