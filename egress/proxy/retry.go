package proxy

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync/atomic"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

// retryRandom marks a ServerHello that asks for a second ClientHello (RFC 8446 section 4.1.3).
var retryRandom = []byte{
	0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
	0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
}

const (
	recordCCS       = 20
	recordHandshake = 22
	recordData      = 23
	// maxRecord is the largest record with its head (RFC 8446 section 5.2).
	maxRecord = 5 + 1<<14 + 256
	// retryAt is where a ServerHello's random lies in its record.
	retryAt = 5 + 4 + 2
)

// farWords is what the far side of a tunnel says first, as far as it bears on what the client may say. A client can make a
// server ask for a second ClientHello, and some servers heed the name in it alone: it is held to the name of the first.
type farWords struct {
	c     *conn
	t     egress.Target
	told  chan struct{} // closed when retry and given are known
	retry bool          // it asks for a second hello
	taken atomic.Bool   // the connection is wanted for requests
	given bool          // it had said nothing by then, and is left alone
	stale bool          // it has been sent part of what is no longer meant for it
}

// watchFar reads what the far side says first, notes what it is, and passes it on.
func (s *farWords) watchFar(far net.Conn) error {
	in := stream{Conn: far}
	s.listen(&in)
	if s.given {
		in.release()
		return errTaken
	}
	// An end or a fault is the relay's to meet, behind what came before it.
	if b := in.buffered(); len(b) > 0 {
		if err := s.c.movedDn(len(b)); err != nil {
			return err
		}
		if _, err := s.c.in.Conn.Write(b); err != nil {
			return writeError{err}
		}
		in.discard(len(b))
	}
	in.release()
	return nil
}

func (s *farWords) listen(in *stream) {
	defer close(s.told)
	err := in.need(1)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.given = s.taken.Load()
	case err == nil && in.buffered()[0] == recordHandshake:
		if in.need(2) != nil || in.buffered()[1] != 3 || in.need(retryAt+len(retryRandom)) != nil {
			return
		}
		b := in.buffered()
		s.retry = b[5] == 2 && bytes.Equal(b[retryAt:retryAt+len(retryRandom)], retryRandom)
	}
}

// takeOver ends watchFar, and reports whether the far side has neither spoken nor ended, so that the connection may be used anew.
func (s *farWords) takeOver(far net.Conn) bool {
	s.taken.Store(true)
	_ = far.SetReadDeadline(longAgo)
	<-s.told
	_ = far.SetReadDeadline(noDeadline)
	return s.given
}

// watchClient passes on what a client says behind its first hello until no second one can come, and judges the second one.
func (s *farWords) watchClient(far net.Conn) (egress.Reason, error) {
	in := &s.c.in
	for {
		if s.isTold() && !s.retry {
			return "", nil
		}
		if err := in.need(5); err != nil {
			return "", nil // an end or a fault, which the relay meets again
		}
		b := in.buffered()
		switch n := 5 + int(b[3])<<8 + int(b[4]); {
		case s.isTold() && !s.retry:
			return "", nil
		case b[0] != recordHandshake && isRecord(b[0]) && n <= maxRecord: // early data, what middleboxes like to see, a warning
			if err := in.need(n); err != nil {
				return "", nil
			}
			if err := s.pass(far, n); err != nil {
				return "", err
			}
			continue
		}
		<-s.told
		switch {
		case !s.retry:
			return "", nil
		case b[0] != recordHandshake: // no client says such a thing here
			return ReasonNotTLS, nil
		}
		h, err := in.readHello(nil)
		if err != nil {
			return ReasonNotTLS, nil
		}
		return s.c.judgeHello(s.t, h), nil
	}
}

func (s *farWords) isTold() bool {
	select {
	case <-s.told:
		return true
	default:
		return false
	}
}

func (s *farWords) pass(far net.Conn, n int) error {
	if err := s.c.passUp(far, s.c.in.buffered()[:n]); err != nil {
		return err
	}
	s.c.in.discard(n)
	return nil
}
