package proxy

import (
	"bytes"
	"io"
	"net"
	"strconv"

	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

const (
	// maxChunkLine bounds a chunk's size line with its extensions, which are dropped.
	maxChunkLine = 512
	// maxTrailers bounds a trailer section.
	maxTrailers = 16 << 10
)

// framing is how a body's end is found (RFC 9112 section 6.3).
type framing struct {
	kind   bodyKind
	length int64 // of bodySized
}

type bodyKind uint8

const (
	bodyNone bodyKind = iota
	bodySized
	bodyChunked
	bodyUntilClose
)

func (h *head) requestFraming() framing {
	switch {
	case h.chunked:
		return framing{kind: bodyChunked}
	case h.length > 0:
		return framing{kind: bodySized, length: h.length}
	}
	return framing{}
}

// responseFraming needs the request's method: what answers HEAD has no body whatever its headers say.
func (h *head) responseFraming(toHEAD bool) framing {
	switch {
	case toHEAD, h.status < 200, h.status == 204, h.status == 304:
		return framing{}
	case h.chunked:
		return framing{kind: bodyChunked}
	case h.length >= 0:
		return framing{kind: bodySized, length: h.length}
	}
	return framing{kind: bodyUntilClose}
}

// bodyWriter takes the bytes of one body and writes them framed anew, together with whatever head is still pending, in as
// few writes as there are reads: what arrived is passed on at once.
type bodyWriter struct {
	dst     io.Writer
	out     []byte // pending: a head, a chunk; kept between messages for its memory
	chunked bool   // frame as chunks
	moved   func(n int) error
	mask    *broker.Mask // nil in the ordinary case
}

func (w *bodyWriter) flush() error {
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.dst.Write(w.out)
	w.out = w.out[:0]
	return err
}

// data passes p on. Small pieces join what is pending into one write; a large one is written from where it lies.
func (w *bodyWriter) data(p []byte) error {
	if w.mask != nil {
		p = w.mask.Next(p)
	}
	return w.put(p)
}

func (w *bodyWriter) put(p []byte) error {
	if len(p) == 0 {
		return w.flush()
	}
	if w.moved != nil {
		if err := w.moved(len(p)); err != nil {
			return err
		}
	}
	if w.chunked {
		w.out = strconv.AppendInt(w.out, int64(len(p)), 16)
		w.out = append(w.out, '\r', '\n')
	}
	if len(p) > readSize && !w.chunked {
		pieces := net.Buffers{w.out, p} // one system call on TCP
		_, err := pieces.WriteTo(w.dst)
		w.out = w.out[:0]
		return err
	}
	w.out = append(w.out, p...)
	if w.chunked {
		w.out = append(w.out, '\r', '\n')
	}
	return w.flush()
}

// end finishes the body with its trailers and writes all that is pending.
func (w *bodyWriter) end(trailers []field) error {
	if w.mask != nil {
		if rest := w.mask.End(); len(rest) > 0 {
			if err := w.put(rest); err != nil {
				return err
			}
		}
	}
	if w.chunked {
		w.out = append(w.out, '0', '\r', '\n')
		for _, f := range trailers {
			w.out = appendField(w.out, f.name, w.masked(f.value))
		}
		w.out = append(w.out, '\r', '\n')
	}
	return w.flush()
}

func (w *bodyWriter) masked(v []byte) []byte {
	if w.mask == nil {
		return v
	}
	return w.mask.Whole(v)
}

func appendField(out, name, value []byte) []byte {
	out = append(out, name...)
	out = append(out, ':', ' ')
	out = append(out, value...)
	return append(out, '\r', '\n')
}

// copyBody moves one body from src, where f tells its end, to w. A readError is a fault of src's side, any other error of
// the destination's.
func copyBody(w *bodyWriter, src *stream, f framing) error {
	switch f.kind {
	case bodySized:
		if err := copySized(w, src, f.length); err != nil {
			return err
		}
		return w.end(nil)
	case bodyChunked:
		trailers, err := copyChunks(w, src)
		if err != nil {
			return err
		}
		return w.end(trailers)
	case bodyUntilClose:
		for {
			if _, err := copySome(w, src, bulkSize); err != nil {
				if r, ok := err.(readError); ok && r.error == io.EOF {
					return w.end(nil)
				}
				return err
			}
		}
	}
	return w.end(nil)
}

// readError marks a failure on the reading side of a copy.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// copySome moves between 1 and limit bytes and tells how many. Small bodies come through the stream's own buffer, large ones
// past it.
func copySome(w *bodyWriter, src *stream, limit int64) (int64, error) {
	if len(src.buffered()) == 0 {
		if err := w.flush(); err != nil { // never wait for more while something is pending
			return 0, err
		}
		if limit > readSize {
			buf := bulkBufs.Get().(*[bulkSize]byte)
			defer bulkBufs.Put(buf)
			n, err := src.Conn.Read(buf[:min(limit, bulkSize)])
			switch {
			case n > 0:
				return int64(n), w.data(buf[:n])
			case err != nil:
				return 0, readError{err}
			}
			return 0, nil
		}
		if err := src.fill(readSize); err != nil {
			return 0, readError{err}
		}
	}
	b := src.buffered()
	b = b[:min(int64(len(b)), limit)]
	err := w.data(b)
	src.discard(len(b))
	return int64(len(b)), err
}

func copySized(w *bodyWriter, src *stream, n int64) error {
	for n > 0 {
		moved, err := copySome(w, src, n)
		n -= moved
		if err != nil {
			if r, ok := err.(readError); ok && r.error == io.EOF {
				return readError{io.ErrUnexpectedEOF}
			}
			return err
		}
	}
	return nil
}

// copyChunks reads a chunked body (RFC 9112 section 7.1) to the end of its trailer section and returns the trailers that may
// go on. Chunk extensions end here.
func copyChunks(w *bodyWriter, src *stream) ([]field, error) {
	for {
		if bytes.IndexByte(src.buffered(), '\n') < 0 { // about to wait: what is pending goes first
			if err := w.flush(); err != nil {
				return nil, err
			}
		}
		size, err := readChunkLine(src)
		if err != nil {
			return nil, readError{err}
		}
		if size == 0 {
			trailers, err := readTrailers(src)
			if err != nil {
				return nil, readError{err}
			}
			return trailers, nil
		}
		if err := copySized(w, src, size); err != nil {
			return nil, err
		}
		if err := src.need(2); err != nil {
			return nil, readError{unexpected(err, 1)}
		}
		if b := src.buffered(); b[0] != '\r' || b[1] != '\n' {
			return nil, readError{errChunk}
		}
		src.discard(2)
	}
}

func readChunkLine(src *stream) (int64, error) {
	l, err := src.readLine(maxChunkLine)
	if err != nil {
		return 0, err
	}
	var size int64
	digits := 0
	for ; digits < len(l); digits++ {
		v := hexValue(l[digits])
		if v < 0 {
			break
		}
		if digits == 15 { // 60 bits: no body is longer, and nothing overflows
			return 0, errChunk
		}
		size = size<<4 | int64(v)
	}
	if digits == 0 || digits < len(l) && l[digits] != ';' || !isFieldValue(l) {
		return 0, errChunk
	}
	return size, nil
}

func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// readLine reads one line of at most limit bytes that ends in CR LF, and returns it without them.
func (s *stream) readLine(limit int) ([]byte, error) {
	seen := 0
	for {
		b := s.buffered()
		if i := bytes.IndexByte(b[seen:], '\n'); i >= 0 {
			end := seen + i
			if end == 0 || b[end-1] != '\r' {
				return nil, errLineEnd
			}
			if end >= limit {
				return nil, errTooLarge
			}
			if bytes.IndexByte(b[:end-1], '\r') >= 0 {
				return nil, errBareCR
			}
			s.discard(end + 1)
			return b[:end-1], nil
		}
		seen = len(b)
		if err := s.fill(limit); err != nil {
			return nil, unexpected(err, 1)
		}
	}
}

// readTrailers reads a trailer section and drops what must not stand in one: framing, routing, and whatever a recipient
// might take for part of the head (RFC 9110 section 6.5.1).
func readTrailers(src *stream) ([]field, error) {
	var trailers []field
	total := 0
	for {
		l, err := src.readLine(maxTrailers)
		if err != nil {
			return nil, err
		}
		if len(l) == 0 {
			return trailers, nil
		}
		total += len(l)
		if total > maxTrailers || len(trailers) == maxFields {
			return nil, errTrailer
		}
		f, err := parseField(bytes.Clone(l))
		if err != nil {
			return nil, err
		}
		if f.known == hOther && !neverTrailer(f.name) {
			trailers = append(trailers, f)
		}
	}
}

func neverTrailer(name []byte) bool {
	for _, n := range [...]string{
		"cookie", "set-cookie", "content-encoding", "content-type", "content-range", "cache-control", "max-forwards",
		"range", "www-authenticate", "location", "age", "expires", "date", "vary", "pragma", "retry-after",
	} {
		if fold(name, n) {
			return true
		}
	}
	return false
}
