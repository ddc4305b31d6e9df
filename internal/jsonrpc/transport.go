package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// Transport carries messages between two sides.
type Transport interface {
	// Read returns the next message. A [*BadMessage] error is about one message: read on. Any other error ends the transport;
	// io.EOF is its ordinary end. One goroutine reads.
	Read(ctx context.Context) (Message, error)
	// Write hands over a message, in order. It blocks while the other side is slow, until ctx ends. Any number may write.
	Write(ctx context.Context, m Message) error
	// Close ends reading and writing; what was handed over before is still written where the other side takes it in time.
	Close() error
}

// ErrClosed says that the transport, or the peer on it, has ended.
var ErrClosed = errors.New("the connection is closed")

// ErrEndless says that the other side wrote a line without end.
var ErrEndless = errors.New("a line that does not end")

// ErrStuck says that the other side stopped reading.
var ErrStuck = errors.New("the other side does not read what it is sent")

// BadMessage is a message that could not be read. It quotes nothing of it.
type BadMessage struct {
	Err error
	IDs []ID // the ids it may carry, so that an open call need not wait; at most four
	// Request says that it is most likely a request (true) and not a response.
	Request bool
}

// ID returns the only id the message may carry; the zero ID if there is none or more than one.
func (e *BadMessage) ID() ID {
	if len(e.IDs) != 1 {
		return ID{}
	}
	return e.IDs[0]
}

func (e *BadMessage) Error() string { return fmt.Sprintf("unreadable message: %v", e.Err) }
func (e *BadMessage) Unwrap() error { return e.Err }

// Stats counts what was dropped. All fields only grow.
type Stats struct {
	Noise       atomic.Int64 // lines that are no JSON object or array
	Bad         atomic.Int64 // messages that could not be read
	TooLarge    atomic.Int64 // of these: over the bound
	Unsolicited atomic.Int64 // answers nobody waits for: unknown, late or second
}
