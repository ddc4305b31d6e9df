package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
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

var errFull = errors.New("too many events wait for the audit log")

// Log appends to one file. It is safe for use by many goroutines, and several processes may append to the same file: each
// write holds a lock on the head file beside it.
type Log struct {
	path string
	opt  Options
	head *headFile

	mu      sync.Mutex // guards what follows up to failed
	queue   []*request // in the order of the chain
	taken   int        // of those before, how many are being written
	writing bool       // a goroutine writes: the one that owns file and at
	idle    sync.Cond  // on mu: nobody writes any more
	closed  bool
	timer   *time.Timer // writes notes that no Append takes along; nil before the first
	waiting bool        // the timer is set
	failed  error       // of the last writes; nil once all notes are written
	crowd   bool        // the last write was for several

	file file
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

// request is one event on its way to the file.
type request struct {
	event []byte       // as JSON
	done  chan outcome // nil for a note
}

// outcome is what the goroutine that writes tells one that waits: the event is written or not, or it is its turn to write.
type outcome struct {
	err  error
	lead bool
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
	l := &Log{path: path, opt: opt, head: head}
	l.idle.L = &l.mu
	if err := l.locked(func() error { return nil }); err != nil {
		head.Close()
		if l.file != nil {
			l.file.Close()
		}
		return nil, fmt.Errorf("opening the audit log %s: %w", path, err)
	}
	return l, nil
}

// Bounds of what waits to be written.
const (
	noteWithin = 100 * time.Millisecond // a note waits at most so long for an Append that takes it along
	maxNotes   = 4096                   // notes that wait, on a disk that takes none; further ones are refused
	maxBatch   = 1 << 20                // bytes of one write
)

// Append writes the event and returns once it is on disk. On an error nothing is known to be written, and what the event
// would allow must not happen.
//
// The caller writes itself, so that one alone waits for nothing but the disk; those that come meanwhile wait, and one of
// them then writes for all.
func (l *Log) Append(e Event) error {
	r, err := l.request(e)
	if err != nil {
		return err
	}
	r.done = make(chan outcome, 1)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.queue = append(l.queue, r)
	if l.writing {
		l.mu.Unlock()
		if o := <-r.done; !o.lead {
			return o.err
		}
	} else {
		l.writing = true
		l.mu.Unlock()
	}
	l.writeAll()
	return (<-r.done).err
}

// Note gives the event its place in the chain and returns. The next Append writes it, or else a timer within a tenth of a
// second; a process that is killed before loses it. It is for what is already past: a result, a closed connection. The
// error is that of an earlier write, and the event waits for a better one, unless there are too many.
func (l *Log) Note(e Event) error {
	r, err := l.request(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrClosed
	case len(l.queue)+l.taken >= maxNotes:
		return errors.Join(errFull, l.failed)
	}
	l.queue = append(l.queue, r)
	if !l.writing {
		l.writeLater()
	}
	return l.failed
}

func (l *Log) request(e Event) (*request, error) {
	if e.Time.IsZero() {
		e.Time = l.opt.Now()
	}
	e.Time = e.Time.UTC()
	event, err := encode(e)
	return &request{event: event}, err
}

// writeLater sets the timer for the notes that wait. The caller holds mu, and nobody writes.
func (l *Log) writeLater() {
	switch {
	case l.waiting:
	case l.timer == nil:
		l.timer = time.AfterFunc(noteWithin, l.late)
	default:
		l.timer.Reset(noteWithin)
	}
	l.waiting = true
}

// late writes the notes that no Append has taken along.
func (l *Log) late() {
	l.mu.Lock()
	l.waiting = false
	if l.writing || l.closed || len(l.queue) == 0 {
		l.mu.Unlock()
		return
	}
	l.writing = true
	l.mu.Unlock()
	l.writeAll()
}

// writeAll writes what waits in one write and one sync, or a few, and tells those who wait. Then one that came meanwhile
// writes. The caller has set writing.
func (l *Log) writeAll() {
	l.mu.Lock()
	for n := 0; l.crowd && len(l.queue) > n; { // others are on their way here: one sync for all of them
		n = len(l.queue)
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
	batch := l.queue
	l.queue, l.taken = nil, len(batch)
	l.crowd = len(batch) > 2 // one and the note of the call before are no crowd
	l.mu.Unlock()
	var kept []*request
	var failed error
	for len(batch) > 0 {
		n, err := l.writeBatch(batch)
		for _, r := range batch[:n] {
			switch {
			case r.done != nil:
				r.done <- outcome{err: err}
			case err != nil:
				kept = append(kept, r)
			}
		}
		failed = cmp.Or(err, failed)
		batch = batch[n:]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = failed
	l.queue, l.taken = append(kept, l.queue...), 0
	for _, r := range l.queue {
		if r.done != nil {
			r.done <- outcome{lead: true}
			return
		}
	}
	l.writing = false
	l.idle.Broadcast()
	if len(l.queue) > 0 && !l.closed {
		l.writeLater()
	}
}

// Close writes what is waiting and closes the file. It does not write a stop line; the caller says why it stops.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	for l.writing {
		l.idle.Wait()
	}
	l.writing = true
	l.mu.Unlock()
	l.writeAll()
	if l.file == nil { // it could not be opened again; what was written is on disk
		return errors.Join(l.failed, l.head.Close())
	}
	return errors.Join(l.failed, l.file.Close(), l.head.Close())
}

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
		for n = 0; n < len(batch) && len(buf) < maxBatch; n++ {
			next.seq++
			buf, next.hash = appendLine(buf, next.seq, next.hash, batch[n].event)
		}
		next.size += int64(len(buf))
		return l.commit(buf, next)
	})
	return max(n, 1), err
}

// commit writes buf at the end of the file and moves the head to next once the disk has the lines: after a power cut a head that
// had run ahead of the file would say that lines were cut off. When it fails the file is cut back to where it was.
func (l *Log) commit(buf []byte, next position) error {
	_, err := l.file.WriteAt(buf, l.at.size)
	if err == nil {
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

// rotate renames the full file and starts the next one; the chain goes on. Each step is on disk before the next: a head of the one file
// beside the other would look as if lines were cut off or put in.
func (l *Log) rotate() error {
	if err := l.file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(l.path, l.rotated(l.at.seq)); err != nil {
		return fmt.Errorf("rotating the audit log: %w", err)
	}
	if err := l.reopen(); err != nil {
		return err
	}
	next := l.at
	next.size = 0
	if err := errors.Join(l.head.write(next), l.head.Sync()); err != nil {
		return err
	}
	l.at = next
	return nil
}

// rotated is where the file whose last line is seq is kept.
func (l *Log) rotated(seq uint64) string { return fmt.Sprintf("%s.%012d", l.path, seq) }
