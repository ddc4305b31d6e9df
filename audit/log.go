package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Options of [Open]. The zero value is the default.
type Options struct {
	// MaxBytes is the size at which the file is renamed to PATH.SEQ, SEQ being its last line's number, and a new one continues
	// the chain. 0 means 256 MiB.
	MaxBytes int64
	// Now gives the time of an event that has none; nil means time.Now.
	Now func() time.Time
}

const defaultMaxBytes = 256 << 20

// ErrClosed is returned after Close.
var ErrClosed = errors.New("audit log is closed")

// Log appends to one file. It is safe for use by many goroutines, and several processes may append to the same file: each
// write holds a lock on the head file beside it.
type Log struct {
	path string
	opt  Options
	head *headFile

	mu      sync.Mutex // guards queue, closed and sending on wake
	queue   []*request
	closed  bool
	wake    chan struct{}
	stopped chan struct{}

	file file // owned by the writer goroutine after Open
	at   position
}

// file is what a log needs of the file it appends to; a test puts a failing one in its place.
type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Stat() (os.FileInfo, error)
	Close() error
}

type request struct {
	event   Event
	durable bool
	done    chan error
}

// position is the end of the chain: the last line's number and hash, and the size of the file after it.
type position struct {
	seq  uint64
	hash [hashSize]byte
	size int64
}

// Open opens the log at path, creating it with mode 0600 where it is absent. It refuses a log whose end does not agree
// with the head file: that log was changed after it was written. An unfinished last line, left by a process that was
// killed while it wrote, is taken off and recorded by a line of kind [Recover].
func Open(path string, opt Options) (*Log, error) {
	if opt.MaxBytes == 0 {
		opt.MaxBytes = defaultMaxBytes
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	head, err := openHead(path + ".head")
	if err != nil {
		return nil, fmt.Errorf("opening the audit log's head: %w", err)
	}
	l := &Log{path: path, opt: opt, head: head, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	if err := l.locked(func() error { return nil }); err != nil {
		head.Close()
		if l.file != nil {
			l.file.Close()
		}
		return nil, fmt.Errorf("opening the audit log %s: %w", path, err)
	}
	go l.write()
	return l, nil
}

// Append writes the event and returns once it is on disk. On an error nothing is known to be written, and what the event
// would allow must not happen.
func (l *Log) Append(e Event) error { return l.put(e, true) }

// Note writes the event in its place in the chain and returns without waiting for the disk; the next Append makes it
// durable too. It is for what is already past: a result, a taint, a closed connection.
func (l *Log) Note(e Event) error { return l.put(e, false) }

func (l *Log) put(e Event, durable bool) error {
	if e.Time.IsZero() {
		e.Time = l.opt.Now()
	}
	e.Time = e.Time.UTC()
	r := &request{e, durable, make(chan error, 1)}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.queue = append(l.queue, r)
	select { // under the lock, so that Close cannot close the channel first
	case l.wake <- struct{}{}:
	default:
	}
	l.mu.Unlock()
	return <-r.done
}

// Close writes what is waiting and closes the file. It does not write a stop line; the caller says why it stops.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	close(l.wake)
	l.mu.Unlock()
	<-l.stopped
	return errors.Join(l.file.Sync(), l.file.Close(), l.head.Close())
}

// write is the one goroutine that touches the file. Everything that waits goes out in one write and one sync.
func (l *Log) write() {
	defer close(l.stopped)
	for open := true; open; {
		_, open = <-l.wake
		l.mu.Lock()
		batch := l.queue
		l.queue = nil
		l.mu.Unlock()
		for len(batch) > 0 {
			n, err := l.writeBatch(batch)
			for _, r := range batch[:n] {
				r.done <- err
			}
			batch = batch[n:]
		}
	}
}

// maxBatch bounds the bytes of one write.
const maxBatch = 1 << 20

// writeBatch writes the first n events of batch, n at least 1, and says whether they are written.
func (l *Log) writeBatch(batch []*request) (n int, err error) {
	err = l.locked(func() error {
		if l.at.size >= l.opt.MaxBytes {
			if err := l.rotate(); err != nil {
				return err
			}
		}
		var buf []byte
		next := l.at
		durable := false
		for n = 0; n < len(batch) && len(buf) < maxBatch; n++ {
			var err error
			buf, next.hash, err = appendLine(buf, next.seq+1, next.hash, batch[n].event)
			if err != nil {
				return err
			}
			next.seq++
			durable = durable || batch[n].durable
		}
		next.size += int64(len(buf))
		return l.commit(buf, next, durable)
	})
	return max(n, 1), err
}

// commit writes buf at the end of the file and moves the head to next. When it fails the file is cut back to where it was.
func (l *Log) commit(buf []byte, next position, durable bool) error {
	_, err := l.file.WriteAt(buf, l.at.size)
	if err == nil && durable {
		err = l.file.Sync()
	}
	if err == nil {
		err = l.head.write(next)
	}
	if err != nil {
		l.file.Truncate(l.at.size) // best effort: locked() looks at the end again before the next line
		return fmt.Errorf("writing the audit log: %w", err)
	}
	l.at = next
	return nil
}

// rotate renames the full file and starts the next one; the chain goes on.
func (l *Log) rotate() error {
	if err := l.file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(l.path, l.rotated(l.at.seq)); err != nil {
		return fmt.Errorf("rotating the audit log: %w", err)
	}
	next := l.at
	next.size = 0
	if err := l.head.write(next); err != nil {
		return err
	}
	l.at = next
	return l.reopen()
}

// rotated is where the file whose last line is seq is kept.
func (l *Log) rotated(seq uint64) string { return fmt.Sprintf("%s.%012d", l.path, seq) }
