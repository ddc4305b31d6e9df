package proxy

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// framePiece is how much of a frame is masked at once. A longer one goes on as several.
const framePiece = 32 << 10

// errFrame ends a WebSocket whose frames cannot be read, so that nothing in them goes on unmasked.
var errFrame = errors.New("not a well-formed WebSocket frame")

const (
	frameFinal    = 0x80
	frameReserved = 0x70 // bits of extensions, none of which was let through
	frameClose    = 8    // the first opcode of a control frame
	framePong     = 10
	frameMasked   = 0x80 // in the second byte: only clients do so
)

// frames reads the WebSocket frames (RFC 6455 section 5.2) of a host that was given a secret, and writes them anew to the client with
// the secret masked, wherever in a message it stands. Frames of a message may be cut differently (section 5.4), none is held back
// but for an end that could be the start of the secret.
type frames struct {
	c    *conn
	in   *stream
	mask *broker.Mask
	out  []byte
	open bool // a message is not at its end
	next byte // the opcode of the next frame of data: the message's own, or 0 for more of it
}

// run returns nil at the end of the input, which the relay meets again.
func (f *frames) run() error {
	for {
		f.in.release()
		if err := f.in.need(2); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		first, n, err := f.head()
		if err != nil {
			return err
		}
		if first&0xf >= frameClose {
			err = f.control(first, int(n))
		} else {
			err = f.data(first, n)
		}
		if err != nil {
			return unexpected(err, 1)
		}
	}
}

// head reads the head of a frame: its first byte, and the length of its payload.
func (f *frames) head() (first byte, n uint64, err error) {
	b := f.in.buffered()
	first, second := b[0], b[1]
	n = uint64(second)
	size := 2
	switch second {
	case 126:
		size = 4
	case 127:
		size = 10
	}
	if err := f.in.need(size); err != nil {
		return 0, 0, err
	}
	switch b = f.in.buffered(); size {
	case 4:
		n = uint64(binary.BigEndian.Uint16(b[2:]))
	case 10:
		n = binary.BigEndian.Uint64(b[2:])
	}
	f.in.discard(size)
	op, final := first&0xf, first&frameFinal != 0
	switch {
	case first&frameReserved != 0, second&frameMasked != 0, n > 1<<62,
		op > framePong, op > 2 && op < frameClose,
		op >= frameClose && (size > 2 || !final),
		op < frameClose && (op == 0) != f.open:
		return 0, 0, errFrame
	}
	return first, n, nil
}

// control passes on a close, ping or pong, which may stand between the frames of a message.
func (f *frames) control(first byte, n int) error {
	if err := f.in.need(n); err != nil {
		return err
	}
	err := f.write(first, f.mask.Whole(f.in.buffered()[:n]), nil)
	f.in.discard(n)
	return err
}

func (f *frames) data(first byte, n uint64) error {
	if !f.open {
		f.next = first & 0xf
	}
	f.open = first&frameFinal == 0
	for {
		piece := int(min(n, framePiece))
		if err := f.in.need(piece); err != nil {
			return err
		}
		clear := f.mask.Next(f.in.buffered()[:piece])
		f.in.discard(piece)
		n -= uint64(piece)
		op := f.next
		var rest []byte
		if n == 0 && !f.open {
			op |= frameFinal
			rest = f.mask.End()
		}
		if len(clear) > 0 || op&frameFinal != 0 {
			if err := f.write(op, clear, rest); err != nil {
				return err
			}
			f.next = 0
		}
		if n == 0 {
			return nil
		}
	}
}

// write sends one frame whose payload lies in two parts.
func (f *frames) write(first byte, a, b []byte) error {
	out := append(f.out[:0], first)
	switch n := len(a) + len(b); {
	case n < 126:
		out = append(out, byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, 126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, 127), uint64(n))
	}
	out = append(append(out, a...), b...)
	f.out = out
	return pass(f.c.in.Conn, out, f.c.movedDn)
}
