package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Anchor names a line by its number and the hex of its hash: a point of the chain noted elsewhere.
type Anchor struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Entry is one line as read: the event, its number, the hash before it and its own.
type Entry struct {
	Seq  uint64 `json:"seq"`
	Prev string `json:"prev"`
	Event
	Hash string `json:"hash"`
}

// Problem is one place where a log is not what was written.
type Problem struct {
	Line   int    `json:"line"`   // of the input, from 1
	Offset int64  `json:"offset"` // in bytes, of the line's start
	What   string `json:"what"`
}

// Report is what [Verify] found.
type Report struct {
	Lines int    `json:"lines"` // whole lines read
	First Anchor `json:"first"`
	Last  Anchor `json:"last"`
	// Continues is true when the first line names a line before it: the log goes on from an earlier file.
	Continues bool `json:"continues,omitzero"`
	// Torn is the length of an unfinished last line, where it begins as the next line of the chain would. A process that was killed
	// while it wrote leaves one; it acknowledged nothing. Anything else without a line feed is a problem.
	Torn     int       `json:"torn,omitzero"`
	Problems []Problem `json:"problems,omitzero"` // at most MaxProblems
}

// MaxProblems bounds Report.Problems.
const MaxProblems = 100

// OK reports whether the log is whole and unchanged, as far as the chain and the anchors tell. A log without a whole line is not:
// there is nothing to vouch for.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Verify reads a log, or several in order one after the other, and reports every line that was changed, cut, moved, taken out or
// put in. Anchors are points that must lie on the chain: a head file's content, a head noted elsewhere. The error is that of reading alone.
func Verify(r io.Reader, anchors ...Anchor) (Report, error) {
	v := verifier{anchors: map[uint64]string{}}
	for _, a := range anchors {
		v.anchors[a.Seq] = a.Hash
	}
	in := bufio.NewReaderSize(r, MaxLine+1)
	for {
		data, err := in.ReadSlice('\n')
		switch {
		case err == nil:
			v.line(data[:len(data)-1], len(data))
		case err == io.EOF:
			v.end(data)
			return v.report, nil
		case errors.Is(err, bufio.ErrBufferFull):
			n := len(data)
			for errors.Is(err, bufio.ErrBufferFull) {
				data, err = in.ReadSlice('\n')
				n += len(data)
			}
			if err != nil && err != io.EOF {
				return v.report, err
			}
			v.n++
			v.problem("longer than any line this program writes")
			v.offset += int64(n)
		default:
			return v.report, err
		}
	}
}

type verifier struct {
	report  Report
	anchors map[uint64]string
	n       int
	offset  int64
	started bool
	last    Entry
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.report.Problems) < MaxProblems {
		v.report.Problems = append(v.report.Problems, Problem{v.n, v.offset, fmt.Sprintf(format, args...)})
	}
}

func (v *verifier) line(data []byte, size int) {
	v.n++
	defer func() { v.offset += int64(size) }()
	v.report.Lines++
	e, _, err := parseLine(data)
	if err != nil {
		v.problem("%v", err)
		if e.Seq == 0 {
			return // nothing of the line can be used
		}
	}
	switch {
	case !v.started:
		v.started = true
		v.report.First = Anchor{e.Seq, e.Hash}
		v.report.Continues = e.Seq > 1
		if e.Seq == 1 && e.Prev != hex.EncodeToString(make([]byte, hashSize)) {
			v.problem("line 1 of the chain names a line before it")
		}
	case e.Seq == v.last.Seq+1 && e.Prev != v.last.Hash:
		v.problem("does not follow the line before it: that line, or this one, was changed")
	case e.Seq > v.last.Seq+1:
		v.problem("%d line(s) missing between %d and %d", e.Seq-v.last.Seq-1, v.last.Seq, e.Seq)
	case e.Seq <= v.last.Seq:
		v.problem("line %d of the chain stands after line %d: moved, repeated, or put in", e.Seq, v.last.Seq)
	}
	if want, ok := v.anchors[e.Seq]; ok {
		delete(v.anchors, e.Seq)
		if want != e.Hash {
			v.problem("line %d of the chain is not the one the head names", e.Seq)
		}
	}
	v.last = e
	v.report.Last = Anchor{e.Seq, e.Hash}
}

// end judges what stands behind the last line feed, and what is missing.
func (v *verifier) end(tail []byte) {
	v.n++
	switch {
	case len(tail) == 0:
	case v.mayBegin(tail):
		v.report.Torn = len(tail)
	default:
		v.problem("the last %d bytes are no line, and not the beginning of the one that would follow", len(tail))
	}
	if v.report.Lines == 0 {
		v.problem("empty: there is no line to vouch for")
	}
	for seq := range v.anchors {
		switch {
		case seq == 0:
		case seq > v.last.Seq:
			v.problem("cut: the head names line %d, %s", seq, v.ends())
		case seq >= v.report.First.Seq:
			v.problem("line %d of the chain, which the head names, is missing", seq)
		}
	}
}

func (v *verifier) ends() string {
	if !v.started {
		return "no line is left; right after a rotation it is the last one of the file before"
	}
	return fmt.Sprintf("the log ends with line %d", v.last.Seq)
}

// mayBegin reports whether tail is what a process that was stopped while it wrote leaves: the beginning of the line that follows the last
// one or, where there is none yet, the first line of a chain or the one behind an anchor (a new file after a rotation).
func (v *verifier) mayBegin(tail []byte) bool {
	var any json.RawMessage
	switch err := json.NewDecoder(bytes.NewReader(tail)).Decode(&any); err {
	case io.ErrUnexpectedEOF:
	case nil: // all but the line feed
		if _, _, err := parseLine(tail); err != nil {
			return false
		}
	default:
		return false
	}
	follows := func(seq uint64, hash string) bool {
		start := fmt.Sprintf(`{"seq":%d,"prev":"%s",`, seq+1, hash)
		n := min(len(start), len(tail))
		return string(tail[:n]) == start[:n]
	}
	if v.started {
		return follows(v.last.Seq, v.last.Hash)
	}
	for seq, hash := range v.anchors {
		if follows(seq, hash) {
			return true
		}
	}
	return follows(0, hex.EncodeToString(make([]byte, hashSize)))
}

// parseLine reads one line without its line feed and checks its own hash. With an error, the Entry holds what could be read.
func parseLine(data []byte) (Entry, [hashSize]byte, error) {
	var e Entry
	cut := len(data) - suffixLen
	if cut < 0 || !bytes.HasPrefix(data[cut:], []byte(hashKey)) || !bytes.HasSuffix(data, []byte(`"}`)) {
		return e, [hashSize]byte{}, errors.New("not a line of an audit log, or a changed one")
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return Entry{}, [hashSize]byte{}, errors.New("not a line of an audit log, or a changed one")
	}
	sum := sha256.Sum256(data[:cut])
	if hex.EncodeToString(sum[:]) != e.Hash {
		return e, sum, fmt.Errorf("line %d of the chain was changed: its content does not have its hash", e.Seq)
	}
	return e, sum, nil
}

// Entries reads the lines of a log one by one, checking each line's own hash only; use [Verify] for the chain.
func Entries(r io.Reader, yield func(Entry, error) bool) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 4096), MaxLine+1)
	for in.Scan() {
		e, _, err := parseLine(in.Bytes())
		if !yield(e, err) {
			return nil
		}
	}
	return in.Err()
}
