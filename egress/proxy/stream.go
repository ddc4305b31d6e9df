package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
)

const (
	// readSize is the buffer of a connection between messages: an ordinary request head fits, and an idle one costs little.
	readSize = 4 << 10
	// bulkSize is the buffer that bodies move through: large enough that system calls do not dominate.
	bulkSize = 64 << 10
)

var (
	readBufs = sync.Pool{New: func() any { return new([readSize]byte) }}
	bulkBufs = sync.Pool{New: func() any { return new([bulkSize]byte) }}
)

var errTooLarge = errors.New("message head is over the limit")

// stream is one side of a connection: the connection, and the bytes read from it that nobody has used yet. It belongs to one
// goroutine at a time for reading; writes go to the connection itself.
type stream struct {
	net.Conn
	pooled *[readSize]byte // what buf began as, to be handed back
	buf    []byte          // nil when nothing is buffered
	r, w   int             // buf[r:w] is unread
}

// buffered returns the unread bytes; they stay valid until the next call of any other method.
func (s *stream) buffered() []byte { return s.buf[s.r:s.w] }

func (s *stream) discard(n int) { s.r += n }

// release hands the buffer back if it holds nothing, so that a quiet connection costs no memory for it.
func (s *stream) release() {
	if s.r != s.w {
		return
	}
	if s.pooled != nil {
		readBufs.Put(s.pooled)
	}
	s.pooled, s.buf, s.r, s.w = nil, nil, 0, 0
}

// fill reads once more behind the unread bytes, growing the buffer up to limit unread bytes; beyond that it is errTooLarge.
// It returns nil only when at least one byte was added.
func (s *stream) fill(limit int) error {
	if s.buf == nil {
		s.pooled = readBufs.Get().(*[readSize]byte)
		s.buf = s.pooled[:]
	}
	if s.r == s.w {
		s.r, s.w = 0, 0
	}
	if s.w-s.r >= limit {
		return errTooLarge
	}
	if s.w == len(s.buf) {
		if s.r >= len(s.buf)/2 {
			s.w = copy(s.buf, s.buf[s.r:s.w])
		} else {
			grown := make([]byte, min(2*len(s.buf), limit+readSize))
			s.w = copy(grown, s.buf[s.r:s.w])
			s.buf = grown
			if s.pooled != nil {
				readBufs.Put(s.pooled)
				s.pooled = nil
			}
		}
		s.r = 0
	}
	for range 16 { // a reader may return 0 and nil a few times, not for ever
		n, err := s.Conn.Read(s.buf[s.w:])
		s.w += n
		if n > 0 {
			return nil // an error beside data is seen again at the next read
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// need fills until n bytes are unread.
func (s *stream) need(n int) error {
	for s.w-s.r < n {
		if err := s.fill(n); err != nil {
			return unexpected(err, s.w-s.r)
		}
	}
	return nil
}

// Read gives the unread bytes first, then the connection's.
func (s *stream) Read(p []byte) (int, error) {
	if s.r == s.w {
		return s.Conn.Read(p)
	}
	n := copy(p, s.buf[s.r:s.w])
	s.r += n
	return n, nil
}

// unexpected turns an end of input in the middle of something into an error that says so.
func unexpected(err error, have int) error {
	if err == io.EOF && have > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}
