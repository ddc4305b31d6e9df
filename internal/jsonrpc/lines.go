package jsonrpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds of a Lines transport.
const (
	readBuffer   = 64 << 10        // one pipe's worth
	keepHead     = 4 << 10         // of a message that is too long: enough to find an id written first
	keepTail     = 256             // … or last
	maxBatch     = 100             // messages in one batch; honest ones are below ten
	maxQueue     = 1024            // messages waiting to be written
	maxQueueSize = 64 << 20        // bytes waiting to be written, beside the one message that may exceed it
	flushWithin  = 2 * time.Second // what Close waits for the queue
)

// LineOptions are the options of [NewLines].
type LineOptions struct {
	JSON  strictjson.Limits // bounds and strictness of each message
	Noise func(line string) // told of each line that is no message, cut at 4 KiB; raw, as the other side wrote it; may be nil
	Stats *Stats            // counts; nil = none kept

	// GiveUp is how long the other side may read nothing while something waits for it; then the connection ends with
	// [ErrStuck]. 0 = for ever. It needs a stream that knows write deadlines, as pipes do.
	GiveUp time.Duration
}

// Lines is a [Transport] of one JSON message a line, as MCP uses it on stdio. It accepts CRLF, blank lines and white space
// around a message, skips noise, and writes LF only.
type Lines struct {
	opt     LineOptions
	in      *bufio.Reader
	inc     io.Closer
	out     io.WriteCloser
	now     func([]byte) int // writes what needs no waiting, and tells how much that was
	ready   []Message        // the rest of a batch
	broken  error            // why reading ended, once it did
	skipped int              // bytes read of a line that was reported as too long before its end; 0 = none is

	mu      sync.Mutex
	busy    bool   // the goroutine writes
	spare   []byte // for the next message; memory that was just used is in the processor's cache
	queue   [][]byte
	size    int
	closing bool
	failed  error
	waiting int           // writers that wait for space
	space   chan struct{} // closed and replaced when the queue shrinks or fails
	wake    chan struct{} // to the writer: something changed
	done    chan struct{} // the writer has ended
}

// NewLines starts a transport that reads in and writes out. Close closes both.
func NewLines(in io.ReadCloser, out io.WriteCloser, opt LineOptions) *Lines {
	if opt.Stats == nil {
		opt.Stats = new(Stats)
	}
	l := &Lines{
		opt: opt, in: bufio.NewReaderSize(readNow(in), readBuffer), inc: in, out: out,
		wake: make(chan struct{}, 1), space: make(chan struct{}), done: make(chan struct{}),
	}
	l.now = writeNow(out)
	go l.write()
	return l
}

// Read returns the next message.
func (l *Lines) Read(ctx context.Context) (Message, error) {
	for {
		if len(l.ready) > 0 {
			m := l.ready[0]
			l.ready = l.ready[1:]
			return m, nil
		}
		if l.broken != nil {
			return Message{}, l.broken
		}
		line, err := l.line()
		if err != nil && err != strictjson.ErrTooLarge {
			l.broken = err
		}
		if err := ctx.Err(); err != nil {
			return Message{}, err
		}
		text := trim(line)
		switch {
		case err == strictjson.ErrTooLarge:
			return Message{}, l.bad(guess(line, err))
		case text == "":
			continue
		case text[0] != '{' && text[0] != '[':
			l.opt.Stats.Noise.Add(1)
			if l.opt.Noise != nil {
				l.opt.Noise(text[:min(len(text), keepHead)])
			}
			continue
		}
		if m, bad := l.decode(text); bad != nil {
			if err := l.bad(bad); l.broken == nil {
				return Message{}, err
			}
			continue // half of a message, and then the end: that is what its call is told
		} else if m.Kind != 0 {
			return m, nil
		}
	}
}

func trim(line string) string {
	if line != "" && line[0] == '{' && line[len(line)-1] == '}' { // most lines
		return line
	}
	return strings.Trim(line, " \t\r")
}

// Waiting reports whether more has come than was read. Only the goroutine that reads may ask.
func (l *Lines) Waiting() bool { return len(l.ready) > 0 || l.in.Buffered() > 0 }

func badMessage(m Message, err error) *BadMessage {
	bad := &BadMessage{Err: err, Request: m.Method != ""}
	if !m.ID.IsZero() {
		bad.IDs = []ID{m.ID}
	}
	return bad
}

func (l *Lines) bad(bad *BadMessage) error {
	l.opt.Stats.Bad.Add(1)
	if errors.Is(bad, strictjson.ErrTooLarge) {
		l.opt.Stats.TooLarge.Add(1)
	}
	return bad
}

// decode reads a message, or a batch into l.ready (then the message is zero).
func (l *Lines) decode(text string) (Message, *BadMessage) {
	v, err := strictjson.ParseString(text, l.opt.JSON)
	if err != nil {
		return Message{}, guess(text, err)
	}
	if v.Kind() == strictjson.KindObject {
		m, err := Decode(v)
		if err != nil {
			return Message{}, badMessage(m, err)
		}
		return m, nil
	}
	if v.Len() == 0 || v.Len() > maxBatch {
		return Message{}, &BadMessage{Err: invalid("an empty batch, or one of more than 100 messages")}
	}
	batch := make([]Message, 0, v.Len())
	for _, e := range v.Elems() {
		m, err := Decode(e)
		if err != nil { // one bad message spoils the batch: half of it would be a guess
			return Message{}, badMessage(m, err)
		}
		batch = append(batch, m)
	}
	l.ready = batch
	return Message{}, nil
}

// endless is how many times the bound a line may be long before it is taken for one without end. Up to there it is skipped;
// beyond, what follows could not be told from it.
const endless = 4

// line reads one line without its end. Of a line over the bound it returns head and tail, and strictjson.ErrTooLarge. The last line may
// lack its end: it is returned, and the error with the next call.
func (l *Lines) line() (string, error) {
	limit := l.opt.JSON.MaxBytes
	if limit == 0 {
		limit = strictjson.DefaultMaxBytes
	}
	if err := l.skip(limit); err != nil {
		return "", err
	}
	part, err := l.in.ReadSlice('\n')
	if err == nil {
		return string(part[:len(part)-1]), nil // most lines
	}
	var parts [][]byte
	size, over := 0, false
	var head, tail []byte
	for {
		size += len(part)
		if size > endless*limit {
			return "", ErrEndless
		}
		if !over && size > limit+2 { // the line's end does not count
			over = true
			for _, p := range parts {
				head = append(head, p[:min(len(p), keepHead-len(head))]...)
			}
			parts = nil
			if errors.Is(err, bufio.ErrBufferFull) && len(guess(string(head), nil).IDs) > 0 {
				l.skipped = size // whoever waits for it need not wait for its end
				return string(head), strictjson.ErrTooLarge
			}
		}
		if over {
			head = append(head, part[:min(len(part), keepHead-len(head))]...)
			tail = append(tail, part[max(0, len(part)-keepTail):]...)
			tail = tail[max(0, len(tail)-keepTail):]
		} else {
			parts = append(parts, append([]byte(nil), part...))
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = l.in.ReadSlice('\n')
	}
	if over {
		if err != nil {
			l.broken = err
		}
		return string(head) + "\n" + strings.TrimRight(string(tail), "\r\n"), strictjson.ErrTooLarge
	}
	var b strings.Builder
	b.Grow(size)
	for i, p := range parts {
		b.Write(p)
		parts[i] = nil
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if err != nil && text != "" && err == io.EOF {
		l.broken = err
		return text, nil
	}
	return text, err
}

// skip reads on to the end of a line whose head was reported as too long.
func (l *Lines) skip(limit int) error {
	for l.skipped > 0 {
		part, err := l.in.ReadSlice('\n')
		switch l.skipped += len(part); {
		case l.skipped > endless*limit:
			return ErrEndless
		case err == nil:
			l.skipped = 0
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	return nil
}

// Write hands over a message. Where nothing else is under way, what the stream takes without waiting is written at once; the
// rest is queued for the goroutine that writes. With a ctx that has ended Write never waits.
func (l *Lines) Write(ctx context.Context, m Message) error {
	l.mu.Lock()
	buf := l.spare
	l.spare = nil
	l.mu.Unlock()
	buf = append(m.Append(buf[:0]), '\n')
	data := buf
	for {
		l.mu.Lock()
		switch {
		case l.failed != nil:
			defer l.mu.Unlock()
			return l.failed
		case l.closing:
			l.mu.Unlock()
			return ErrClosed
		case !l.busy && len(l.queue) == 0:
			if data = data[l.now(data):]; len(data) == 0 {
				if cap(buf) <= readBuffer {
					l.spare = buf // nobody else has it
				}
				l.mu.Unlock()
				return nil
			}
			fallthrough
		case len(l.queue) < maxQueue && l.size+len(data) <= maxQueueSize:
			l.queue = append(l.queue, data)
			l.size += len(data)
			idle := !l.busy
			l.mu.Unlock()
			if idle {
				l.poke()
			}
			return nil
		}
		space := l.space
		l.waiting++
		l.mu.Unlock()
		select {
		case <-space:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// freed tells the waiting writers that there is space, or none any more. The caller holds mu.
func (l *Lines) freed() {
	if l.waiting > 0 {
		close(l.space)
		l.space, l.waiting = make(chan struct{}), 0
	}
}

func (l *Lines) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write is the goroutine that writes the queue.
func (l *Lines) write() {
	defer close(l.done)
	for {
		l.mu.Lock()
		queue, end := l.queue, l.closing
		l.queue, l.size, l.busy = nil, 0, len(queue) > 0
		l.freed()
		l.mu.Unlock()
		if len(queue) == 0 {
			if end {
				return
			}
			<-l.wake
			continue
		}
		for _, data := range queue {
			if err := l.send(data); err != nil {
				l.mu.Lock()
				l.failed = fmt.Errorf("%w: %w", ErrClosed, err)
				l.freed()
				l.mu.Unlock()
				return
			}
		}
	}
}

// send writes a message. A side that takes none of it for the time of GiveUp loses the connection.
func (l *Lines) send(data []byte) error {
	out, ok := l.out.(interface{ SetWriteDeadline(time.Time) error })
	if l.opt.GiveUp == 0 || !ok {
		_, err := l.out.Write(data)
		return err
	}
	for len(data) > 0 {
		if err := out.SetWriteDeadline(time.Now().Add(l.opt.GiveUp)); err != nil {
			return err
		}
		n, err := l.out.Write(data[:min(len(data), readBuffer)])
		if errors.Is(err, os.ErrDeadlineExceeded) && n == 0 {
			l.inc.Close()
			return ErrStuck
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		data = data[n:]
	}
	return nil
}

// CloseWrite writes what is queued as far as the other side takes it in time, then closes the stream to it. Reading goes on.
func (l *Lines) CloseWrite() error {
	l.mu.Lock()
	l.closing = true
	l.freed()
	l.mu.Unlock()
	l.poke()
	select {
	case <-l.done:
	case <-time.After(flushWithin):
	}
	return l.out.Close()
}

// Close is CloseWrite, and ends reading.
func (l *Lines) Close() error {
	return errors.Join(l.CloseWrite(), l.inc.Close())
}
