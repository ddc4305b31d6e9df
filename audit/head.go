package audit

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/atomicfile"
)

// headFile holds the position of the last acknowledged line, in one fixed-length line, and carries the lock between
// processes. It is written after the line is, so it never runs ahead of the log.
type headFile struct{ *os.File }

const headFormat = "hearsay-audit %020d %x %020d\n"

var headLen = len(fmt.Sprintf(headFormat, 0, [hashSize]byte{}, 0))

func openHead(path string) (*headFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &headFile{f}, nil
}

func (h *headFile) write(p position) error {
	_, err := h.WriteAt(fmt.Appendf(nil, headFormat, p.seq, p.hash, p.size), 0)
	return err
}

// read gives the position; the zero one where the head is new.
func (h *headFile) read() (position, error) {
	buf := make([]byte, headLen)
	n, err := h.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		return position{}, err
	}
	if n == 0 {
		return position{}, nil
	}
	return parseHead(buf[:n])
}

func parseHead(data []byte) (position, error) {
	var p position
	fields := strings.Split(string(data), " ")
	damaged := errors.New("the head file is damaged; check the log with hearsay audit verify, then move both files aside")
	if len(data) != headLen || len(fields) != 4 || fields[0] != "hearsay-audit" || len(fields[2]) != 2*hashSize {
		return position{}, damaged
	}
	var err, err2, err3 error
	p.seq, err = strconv.ParseUint(fields[1], 10, 64)
	_, err2 = hex.Decode(p.hash[:], []byte(fields[2]))
	p.size, err3 = strconv.ParseInt(strings.TrimSuffix(fields[3], "\n"), 10, 64)
	if err != nil || err2 != nil || err3 != nil || p.size < 0 {
		return position{}, damaged
	}
	return p, nil
}

// locked runs do with the lock between processes held and l.at at the true end of the log.
func (l *Log) locked(do func() error) error {
	unlock, err := lock(l.head.File)
	if err != nil {
		return fmt.Errorf("locking the audit log: %w", err)
	}
	defer unlock()
	if err := l.settle(); err != nil {
		return err
	}
	return do()
}

// settle makes l.at the end of the log: another process may have written or rotated, and one that was killed may have left a
// line the head does not know, or half of one.
func (l *Log) settle() error {
	head, err := l.head.read()
	if err != nil {
		return err
	}
	info := l.here()
	if head.size < l.at.size || info == nil {
		if err := l.reopen(); err != nil {
			return err
		}
		if info, err = l.file.Stat(); err != nil {
			return err
		}
	}
	if info.Size() == 0 && head.size > 0 {
		// A process that was killed in the middle of rotating left the full file under its new name.
		if full, err := os.Stat(l.rotated(head.seq)); err == nil && full.Size() == head.size {
			head.size = 0
			if err := l.head.write(head); err != nil {
				return err
			}
		}
	}
	if info.Size() < head.size {
		return fmt.Errorf("it is %d bytes long, its head says %d: lines were cut off; check it with hearsay audit verify, then move both files aside", info.Size(), head.size)
	}
	if head != l.at {
		if err := l.checkEnd(head); err != nil {
			return err
		}
		l.at = head
	}
	if info.Size() == head.size {
		return nil
	}
	return l.takeTail(info.Size())
}

// here describes the open file; nil where it is no longer the one at l.path.
func (l *Log) here() os.FileInfo {
	if l.file == nil {
		return nil
	}
	open, err := l.file.Stat()
	if err != nil {
		return nil
	}
	there, err := os.Stat(l.path)
	if err != nil || !os.SameFile(open, there) {
		return nil
	}
	return open
}

// reopen opens the file at l.path, or makes it, and has its name outlive a crash of the machine, and what was renamed to make room.
func (l *Log) reopen() error {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	l.file = f
	return atomicfile.SyncDir(filepath.Dir(l.path))
}

// checkEnd compares the line that ends at p with p itself.
func (l *Log) checkEnd(p position) error {
	if p.size == 0 {
		return nil
	}
	start := max(0, p.size-MaxLine)
	buf := make([]byte, p.size-start)
	if _, err := l.file.ReadAt(buf, start); err != nil {
		return err
	}
	if !bytes.HasSuffix(buf, append(hex.AppendEncode(nil, p.hash[:]), "\"}\n"...)) {
		return errors.New("its end is not the one its head names: it was changed; check it with hearsay audit verify, then move both files aside")
	}
	return nil
}

// takeTail deals with what stands behind l.at: whole lines of the chain are taken in, an unfinished one is cut off and recorded.
func (l *Log) takeTail(size int64) error {
	tail := make([]byte, size-l.at.size)
	if _, err := l.file.ReadAt(tail, l.at.size); err != nil && err != io.EOF {
		return err
	}
	at := l.at
	for {
		end := bytes.IndexByte(tail, '\n')
		if end < 0 {
			break
		}
		entry, sum, err := parseLine(tail[:end])
		if err != nil || entry.Seq != at.seq+1 || entry.Prev != hex.EncodeToString(at.hash[:]) {
			return fmt.Errorf("line %d does not continue the chain: the log was changed; check it with hearsay audit verify, then move both files aside", at.seq+1)
		}
		at = position{entry.Seq, sum, at.size + int64(end) + 1}
		tail = tail[end+1:]
	}
	l.at = at
	if len(tail) == 0 {
		if err := l.file.Sync(); err != nil { // who wrote it may not have come to it
			return err
		}
		return l.head.write(at)
	}
	if err := l.file.Truncate(at.size); err != nil {
		return err
	}
	note := Event{Time: l.opt.Now().UTC(), Kind: Recover, Text: "an unfinished line of a stopped process was taken off the end", Digest: Digest(tail),
		Detail: map[string]string{"bytes": fmt.Sprint(len(tail))}}
	event, err := encode(note)
	if err != nil {
		return err
	}
	buf, sum := appendLine(nil, at.seq+1, at.hash, event)
	return l.commit(buf, position{at.seq + 1, sum, at.size + int64(len(buf))})
}

// ReadHead gives the number and hash of the last line the log at path acknowledged; ok is false where there is no head file.
func ReadHead(path string) (a Anchor, ok bool, err error) {
	data, err := os.ReadFile(path + ".head")
	if errors.Is(err, fs.ErrNotExist) {
		return Anchor{}, false, nil
	}
	if err != nil || len(data) == 0 {
		return Anchor{}, false, err
	}
	p, err := parseHead(data)
	return Anchor{p.seq, hex.EncodeToString(p.hash[:])}, err == nil, err
}
