package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func open(t *testing.T, path string, opt Options) *Log {
	t.Helper()
	l, err := Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func fill(t *testing.T, path string, n int) {
	t.Helper()
	l := open(t, path, Options{})
	for i := range n {
		if err := l.Append(Event{Kind: Decision, Tool: fmt.Sprintf("tool-%d", i), Answer: "deny"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func verifyFile(t *testing.T, path string) Report {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var anchors []Anchor
	a, ok, err := ReadHead(path)
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		anchors = append(anchors, a)
	}
	r, err := Verify(f, anchors...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnUntouchedLogIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	fill(t, path, 5)
	fill(t, path, 5) // continued by a second process
	r := verifyFile(t, path)
	if !r.OK() || r.Lines != 10 || r.Last.Seq != 10 || r.Torn != 0 || r.Continues {
		t.Fatalf("%+v", r)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestEveryTamperingIsFoundWhereItIs(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "audit.jsonl")
	fill(t, whole, 6)
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := ReadHead(whole)
	lines := bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	lines[5] = append(lines[5][:len(lines[5]):len(lines[5])], '\n')
	forged := func(l []byte, from, to string) []byte { // with its hash made right again
		body := bytes.Replace(l[:len(l)-1-suffixLen], []byte(from), []byte(to), 1)
		e := Entry{}
		json.Unmarshal(l, &e)
		e.Tool = strings.Replace(e.Tool, from, to, 1)
		var prev [hashSize]byte
		copy(prev[:], mustHex(t, e.Prev))
		event, err := encode(e.Event)
		out, _ := appendLine(nil, e.Seq, prev, event)
		if err != nil || bytes.Equal(body, l) {
			t.Fatal(err)
		}
		return out
	}
	tests := []struct {
		name  string
		lines [][]byte
		line  int
		what  string
	}{
		{"changed", [][]byte{lines[0], bytes.Replace(lines[1], []byte("deny"), []byte("allo"), 1), lines[2], lines[3], lines[4], lines[5]}, 2, "changed"},
		{"changed with a right hash", [][]byte{lines[0], forged(lines[1], "tool-1", "tool-9"), lines[2], lines[3], lines[4], lines[5]}, 3, "does not follow"},
		{"missing", [][]byte{lines[0], lines[1], lines[3], lines[4], lines[5]}, 3, "1 line(s) missing between 2 and 4"},
		{"first missing", lines[1:], 0, ""}, // a log may continue another; Continues says so
		{"last cut", lines[:5], 6, "cut: the head names line 6"},
		{"reordered", [][]byte{lines[0], lines[2], lines[1], lines[3], lines[4], lines[5]}, 2, "missing"},
		{"repeated", [][]byte{lines[0], lines[1], lines[1], lines[2], lines[3], lines[4], lines[5]}, 3, "moved, repeated, or put in"},
		{"noise put in", [][]byte{lines[0], []byte("{}\n"), lines[1], lines[2], lines[3], lines[4], lines[5]}, 2, "not a line"},
		{"last forged", [][]byte{lines[0], lines[1], lines[2], lines[3], lines[4], forged(lines[5], "tool-5", "tool-9")}, 6, "not the one the head names"},
		{"blank", [][]byte{lines[0], []byte("\n"), lines[1], lines[2], lines[3], lines[4], lines[5]}, 2, "not a line"},
		{"endless line", [][]byte{lines[0], append(bytes.Repeat([]byte("a"), 3*MaxLine), '\n'), lines[1], lines[2], lines[3], lines[4], lines[5]}, 2, "longer than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Verify(bytes.NewReader(bytes.Join(tt.lines, nil)), head)
			if err != nil {
				t.Fatal(err)
			}
			if tt.what == "" {
				if !r.OK() || !r.Continues {
					t.Fatalf("%+v", r)
				}
				return
			}
			if r.OK() {
				t.Fatal("nothing found")
			}
			p := r.Problems[0]
			if p.Line != tt.line || !strings.Contains(p.What, tt.what) {
				t.Fatalf("found %+v, want line %d, %q", r.Problems, tt.line, tt.what)
			}
			if want := offsetOf(tt.lines, tt.line); p.Offset != want {
				t.Errorf("offset %d, want %d", p.Offset, want)
			}
		})
	}
}

func offsetOf(lines [][]byte, line int) (n int64) {
	for _, l := range lines[:min(line-1, len(lines))] {
		n += int64(len(l))
	}
	return n
}

func mustHex(t *testing.T, s string) []byte {
	t.Helper()
	var b []byte
	if _, err := fmt.Sscanf(s, "%x", &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Any single byte that is changed, taken out or put in is found, wherever it is.
func TestAnyChangedByteIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	fill(t, path, 4)
	data, _ := os.ReadFile(path)
	head, _, _ := ReadHead(path)
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		b := rapid.Byte().Draw(t, "byte")
		var changed []byte
		switch rapid.SampledFrom([]string{"change", "cut", "insert", "truncate"}).Draw(t, "how") {
		case "change":
			changed = bytes.Clone(data)
			changed[i] = b
		case "cut":
			changed = append(bytes.Clone(data[:i]), data[i+1:]...)
		case "insert":
			changed = append(append(bytes.Clone(data[:i]), b), data[i:]...)
		case "truncate":
			changed = data[:i]
		}
		if bytes.Equal(changed, data) {
			return
		}
		r, err := Verify(bytes.NewReader(changed), head)
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() {
			t.Fatalf("not found: %q", changed)
		}
	})
}

func TestOpenRefusesAChangedEnd(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"last line cut":     func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] },
		"last line changed": func(b []byte) []byte { b[len(b)-10] ^= 1; return b },
		"line put behind":   func(b []byte) []byte { return append(b, "{\"seq\":9}\n"...) },
		"emptied":           func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			fill(t, path, 3)
			data, _ := os.ReadFile(path)
			if err := os.WriteFile(path, change(data), 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := Open(path, Options{})
			if err == nil {
				l.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), "audit verify") {
				t.Errorf("error says not what to do: %v", err)
			}
		})
	}
}

func TestAnUnfinishedLineIsTakenOffAndRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	fill(t, path, 3)
	head, _, err := ReadHead(path)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	fmt.Fprintf(f, `{"seq":4,"prev":"%s`, head.Hash[:2])
	f.Close()
	if r := verifyFile(t, path); !r.OK() || r.Torn != 19 {
		t.Fatalf("%+v", r)
	}
	fill(t, path, 1)
	r := verifyFile(t, path)
	if !r.OK() || r.Lines != 5 || r.Torn != 0 {
		t.Fatalf("%+v", r)
	}
	data, _ := os.ReadFile(path)
	if !bytes.Contains(data, []byte(`"kind":"recover"`)) {
		t.Error("no line says so")
	}
}

// What stands behind the last line feed is the beginning of the next line, or somebody put it there.
func TestAnUnfinishedLineIsTheNextOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	fill(t, path, 3)
	data, _ := os.ReadFile(path)
	head, _, _ := ReadHead(path)
	lines := bytes.SplitAfter(data, []byte("\n"))
	var sum [hashSize]byte
	copy(sum[:], mustHex(t, head.Hash))
	next, _ := appendLine(nil, 4, sum, []byte(`{"kind":"decision"}`))
	for n := 1; n < len(next); n++ { // wherever the write stopped
		if r, err := Verify(bytes.NewReader(append(bytes.Clone(data), next[:n]...)), head); err != nil || !r.OK() || r.Torn != n {
			t.Fatalf("%d bytes of the next line: %+v, %v", n, r, err)
		}
	}
	for n := 1; n < len(lines[0]); n++ { // of the first line ever, and the first one after a rotation
		if r, _ := Verify(bytes.NewReader(lines[0][:n])); r.OK() || r.Torn != n || !strings.Contains(r.Problems[0].What, "empty") {
			t.Fatalf("%d bytes of the first line: %+v", n, r)
		}
		if r, _ := Verify(bytes.NewReader(next[:min(n, len(next)-1)]), head); r.OK() || r.Torn == 0 {
			t.Fatalf("%d bytes after a rotation: %+v", n, r)
		}
	}
	wrong := bytes.Replace(next, []byte("decision"), []byte("approval"), 1)
	for name, tail := range map[string]string{
		"words":                    "nothing to see here",
		"an object":                "{}",
		"half an object":           `{"kind":"dec`,
		"zeros":                    strings.Repeat("\x00", 40),
		"zeros in the line":        string(next[:90]) + strings.Repeat("\x00", 40),
		"the line before":          string(bytes.TrimSuffix(lines[2], []byte("\n"))),
		"another number":           `{"seq":5,"prev":"` + head.Hash,
		"another hash":             `{"seq":4,"prev":"` + strings.Repeat("0", 64) + `","time":"`,
		"a whole line, wrong hash": string(bytes.TrimSuffix(wrong, []byte("\n"))),
		"two on one line":          string(bytes.TrimSuffix(next, []byte("\n"))) + "{",
	} {
		r, err := Verify(strings.NewReader(string(data)+tail), head)
		if err != nil || r.OK() || r.Torn != 0 || r.Problems[0].Line != 4 || r.Problems[0].Offset != int64(len(data)) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestNothingVouchesForAnEmptyLog(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "words": "words", "zeros": "\x00\x00\x00"} {
		for _, anchors := range [][]Anchor{nil, {{3, strings.Repeat("a", 64)}}} {
			if r, err := Verify(strings.NewReader(content), anchors...); err != nil || r.OK() || r.Torn != 0 {
				t.Errorf("%s, %d anchors: %+v, %v", name, len(anchors), r, err)
			}
		}
	}
}

func TestAKillWhileRotating(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	fill(t, path, 3)
	if err := os.Rename(path, path+".000000000003"); err != nil {
		t.Fatal(err)
	}
	fill(t, path, 1)
	if r := verifyFile(t, path); !r.OK() || !r.Continues || r.First.Seq != 4 {
		t.Fatalf("%+v", r)
	}
}

// The child appends until it is killed and prints the number of each line once Append has returned.
func TestMain(m *testing.M) {
	if path := os.Getenv("AUDIT_TEST_CHILD"); path != "" {
		l, err := Open(path, Options{MaxBytes: 20_000})
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		for i := 0; ; i++ {
			if err := l.Note(Event{Kind: Result}); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			if err := l.Append(Event{Kind: Decision, Session: os.Getenv("AUDIT_TEST_NAME"), Tool: strconv.Itoa(i)}); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			fmt.Println(i)
		}
	}
	os.Exit(m.Run())
}

// Two processes write one log, rotating it, and are killed at whatever they are doing. Each line that was acknowledged is there, and the chain holds.
func TestKilledWritersLeaveAVerifiableLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	acked := map[string]int{}
	for round := range 12 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for w := range 2 {
			name := fmt.Sprintf("%d-%d", round, w)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "AUDIT_TEST_CHILD="+path, "AUDIT_TEST_NAME="+name)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				var seen bytes.Buffer
				buf := make([]byte, 256)
				for seen.Len() < 40+17*round { // then kill it in the middle of whatever comes next
					n, err := out.Read(buf)
					if err != nil {
						break
					}
					seen.Write(buf[:n])
				}
				cmd.Process.Kill()
				rest, _ := io.ReadAll(out)
				cmd.Wait()
				seen.Write(rest)
				text := seen.String()
				if strings.Contains(text, "error") {
					t.Errorf("writer %s: %s", name, text)
				}
				whole := text[:strings.LastIndexByte(text, '\n')+1]
				mu.Lock()
				acked[name] = strings.Count(whole, "\n")
				mu.Unlock()
			}()
		}
		wg.Wait()
	}
	l := open(t, path, Options{}) // settles the end
	l.Close()
	files, _ := filepath.Glob(path + ".[0-9]*")
	if len(files) == 0 {
		t.Error("never rotated")
	}
	var all bytes.Buffer
	for _, f := range append(files, path) {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	head, _, err := ReadHead(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(bytes.NewReader(all.Bytes()), head)
	if err != nil || !r.OK() || r.Continues {
		t.Fatalf("%.2000v %v", r, err)
	}
	written := map[string]int{}
	if err := Entries(&all, func(e Entry, err error) bool {
		if err != nil {
			t.Error(err)
		}
		if e.Kind == Decision {
			written[e.Session]++
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for name, n := range acked {
		if written[name] < n {
			t.Errorf("writer %s: %d lines acknowledged, %d in the log", name, n, written[name])
		}
	}
}

// faulty is a file whose next operations fail.
type faulty struct {
	file
	short    int // bytes of the next write that reach the disk before it fails; -1 for no fault
	sync     error
	truncate error
}

var errNoSpace = errors.New("no space left on device")

func (f *faulty) WriteAt(p []byte, off int64) (int, error) {
	if f.short < 0 {
		return f.file.WriteAt(p, off)
	}
	n, _ := f.file.WriteAt(p[:min(f.short, len(p))], off)
	return n, errNoSpace
}

func (f *faulty) Sync() error {
	if f.sync != nil {
		return f.sync
	}
	return f.file.Sync()
}

func (f *faulty) Truncate(n int64) error {
	if f.truncate != nil {
		return f.truncate
	}
	return f.file.Truncate(n)
}

func TestAFullDiskIsAnErrorAndLeavesTheChainWhole(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault faulty
	}{
		{"nothing written", faulty{short: 0}},
		{"half a line written", faulty{short: 60}},
		{"half a line written and it cannot be cut back", faulty{short: 60, truncate: errNoSpace}},
		{"sync fails", faulty{short: -1, sync: errNoSpace}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l := open(t, path, Options{})
			if err := l.Append(Event{Kind: Start}); err != nil {
				t.Fatal(err)
			}
			real := l.file
			fault := tt.fault
			fault.file = real
			l.file = &fault
			for range 2 {
				if err := l.Append(Event{Kind: Decision, Answer: "allow"}); !errors.Is(err, errNoSpace) {
					t.Fatalf("error %v, want the disk's", err)
				}
			}
			l.file = real // there is space again
			if err := l.Append(Event{Kind: Decision, Answer: "deny"}); err != nil {
				t.Fatal(err)
			}
			l.Close()
			r := verifyFile(t, path)
			if !r.OK() || r.Torn != 0 {
				t.Fatalf("%+v", r)
			}
		})
	}
}

// The head is not synced itself: one that named lines which a power cut may still take would make an honest log look cut.
func TestTheHeadNeverRunsAheadOfTheDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, Options{})
	if err := l.Append(Event{Kind: Start}); err != nil {
		t.Fatal(err)
	}
	before, err := l.head.read()
	if err != nil {
		t.Fatal(err)
	}
	real := l.file
	l.mu.Lock()
	l.file = &faulty{file: real, short: -1, sync: errNoSpace}
	l.mu.Unlock()
	if err := l.Note(Event{Kind: Result}); err != nil {
		t.Fatal(err)
	}
	l.late() // what the timer does, unless it is at it
	l.mu.Lock()
	for l.writing {
		l.idle.Wait()
	}
	failed := l.failed
	l.writing = true // the file is the test's from here
	l.mu.Unlock()
	if !errors.Is(failed, errNoSpace) {
		t.Errorf("the note is taken for written, and nothing was synced: %v", failed)
	}
	if after, err := l.head.read(); err != nil || after != before {
		t.Errorf("the head moved to %v, %v", after, err)
	}

	// Nor where it takes in a line that another process wrote and did not come to sync.
	event, err := encode(Event{Kind: Decision, Answer: "allow"})
	if err != nil {
		t.Fatal(err)
	}
	line, _ := appendLine(nil, before.seq+1, before.hash, event)
	if _, err := real.WriteAt(line, before.size); err != nil {
		t.Fatal(err)
	}
	if err := l.locked(func() error { return nil }); !errors.Is(err, errNoSpace) {
		t.Errorf("taking in a line that is on no disk: %v", err)
	}
	if after, err := l.head.read(); err != nil || after != before {
		t.Errorf("the head moved to %v, %v", after, err)
	}
	l.mu.Lock()
	l.file, l.writing = real, false
	l.mu.Unlock()
	if err := l.Append(Event{Kind: Decision, Answer: "deny"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r := verifyFile(t, path); !r.OK() || r.Lines != 4 {
		t.Errorf("%+v", r)
	}
}

// Notes reach the file by themselves, and before a later Append in any case; one that a full disk did not take waits for space.
func TestNotesKeepTheirPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, Options{})
	put := func(put func(Event) error, tool string) {
		t.Helper()
		if err := put(Event{Kind: Result, Tool: tool}); err != nil {
			t.Fatal(err)
		}
	}
	put(l.Note, "alone")
	for written(t, path) == "" { // the timer's work
		time.Sleep(time.Millisecond)
	}
	put(l.Append, "first")
	put(l.Note, "second")
	put(l.Note, "third")
	put(l.Append, "fourth")
	l.mu.Lock()
	real := l.file
	l.file = &faulty{file: real, short: 10}
	l.mu.Unlock()
	put(l.Note, "fifth")
	if err := l.Append(Event{Kind: Decision, Tool: "lost"}); !errors.Is(err, errNoSpace) {
		t.Fatalf("error %v, want the disk's", err)
	}
	if err := l.Note(Event{Kind: Result, Tool: "sixth"}); !errors.Is(err, errNoSpace) {
		t.Errorf("a note on a full disk: %v", err)
	}
	for range maxNotes {
		l.Note(Event{Kind: Result, Tool: "more"})
	}
	if err := l.Note(Event{Kind: Result, Tool: "too much"}); !errors.Is(err, errFull) {
		t.Errorf("too many notes: %v", err)
	}
	l.mu.Lock()
	for l.writing { // the timer may be at it
		l.idle.Wait()
	}
	l.file = real
	l.mu.Unlock()
	put(l.Append, "last")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := written(t, path); !strings.HasPrefix(got, "alone first second third fourth fifth sixth more ") || !strings.HasSuffix(got, " more last") || strings.Contains(got, "lost") || strings.Contains(got, "too much") {
		t.Errorf("the log holds %.200s", got)
	}
	if r := verifyFile(t, path); !r.OK() || r.Torn != 0 {
		t.Fatalf("%+v", r)
	}
}

func written(t *testing.T, path string) string {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var tools []string
	if err := Entries(f, func(e Entry, err error) bool { tools = append(tools, e.Tool); return err == nil }); err != nil {
		t.Fatal(err)
	}
	return strings.Join(tools, " ")
}

// slow is a file whose syncs wait, and are counted.
type slow struct {
	file
	begun   chan struct{}
	proceed chan struct{}
	syncs   int
}

func (s *slow) Sync() error {
	s.syncs++
	s.begun <- struct{}{}
	<-s.proceed
	return s.file.Sync()
}

// Whoever comes while the disk is busy shares the next sync, and all are told.
func TestThoseWhoWaitShareASync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, Options{})
	s := &slow{file: l.file, begun: make(chan struct{}), proceed: make(chan struct{})}
	l.file = s
	var wg sync.WaitGroup
	appendOne := func() {
		if err := l.Append(Event{Kind: Decision}); err != nil {
			t.Error(err)
		}
	}
	wg.Go(appendOne)
	<-s.begun
	const others = 15
	for range others {
		wg.Go(appendOne)
	}
	for waiting := 0; waiting < others; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		waiting = len(l.queue)
		l.mu.Unlock()
	}
	s.proceed <- struct{}{}
	<-s.begun
	s.proceed <- struct{}{}
	wg.Wait()
	if s.syncs != 2 {
		t.Errorf("%d syncs for one call and 15 at once, want 2", s.syncs)
	}
	l.file = s.file
	l.Close()
	if r := verifyFile(t, path); !r.OK() || r.Lines != others+1 {
		t.Fatalf("%+v", r)
	}
}

func TestManyWritersAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a, b := open(t, path, Options{}), open(t, path, Options{})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			l := []*Log{a, b}[i%2]
			put := l.Append
			if i%3 == 0 {
				put = l.Note
			}
			if err := put(Event{Kind: Decision}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	a.Close()
	b.Close()
	if err := a.Append(Event{}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if r := verifyFile(t, path); !r.OK() || r.Lines != 200 {
		t.Fatalf("%+v", r)
	}
}

func TestLongAndBrokenStringsAreCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, Options{Now: func() time.Time { return time.Unix(0, 0) }})
	wide := map[string]string{}
	for i := range 200 {
		wide[strconv.Itoa(i)] = strings.Repeat("é", 3000)
	}
	if err := l.Append(Event{Kind: Refusal, Tool: strings.Repeat("語", 5000), Text: "bad \xff bytes", Detail: wide}); err != nil {
		t.Fatal(err)
	}
	l.Close()
	data, _ := os.ReadFile(path)
	if len(data) > MaxLine {
		t.Errorf("line of %d bytes", len(data))
	}
	if !strings.Contains(string(data), "(15000 bytes)") || !strings.Contains(string(data), "omitted") {
		t.Errorf("%.300s", data)
	}
	if r := verifyFile(t, path); !r.OK() || r.Lines != 1 {
		t.Fatalf("%+v", r)
	}
}

func TestShapeHoldsNoContent(t *testing.T) {
	var args any
	const secret = "hunter2-hunter2"
	doc := `{"to":"` + secret + `","n":123456,"deep":{"a":{"b":{"c":{"d":{"e":{"f":"` + secret + `"}}}}}},"list":["` + secret + `",true,null]}`
	if err := json.Unmarshal([]byte(doc), &args); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(Shape(args))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "hunter2") || strings.Contains(string(out), "123456") {
		t.Fatalf("content in %s", out)
	}
	const want = `{"deep":{"a":{"b":{"c":{"d":{"e":"object(1)"}}}}},"list":["string(15)","bool","null"],"n":"number","to":"string(15)"}`
	if string(out) != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}

func FuzzVerify(f *testing.F) {
	path := filepath.Join(f.TempDir(), "audit.jsonl")
	l, err := Open(path, Options{})
	if err != nil {
		f.Fatal(err)
	}
	for range 3 {
		l.Append(Event{Kind: Decision, Answer: "deny", Detail: map[string]string{"a": "b"}})
	}
	l.Close()
	data, _ := os.ReadFile(path)
	f.Add(data)
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"seq":1,"hash":"` + strings.Repeat("0", 64) + "\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Verify(bytes.NewReader(data), Anchor{3, "00"})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Problems) > MaxProblems {
			t.Fatal("too many problems")
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	e := Event{Kind: Decision, Session: "s", Server: "files", Tool: "read_file", Answer: "allow", Rule: "allow files__read_*", Reason: "rule", Shape: map[string]any{"path": "string(12)"}}
	noted := func(l *Log, e Event) error { // as a call is: what came of the one before goes with it
		return errors.Join(l.Note(e), l.Append(e))
	}
	for name, put := range map[string]func(*Log, Event) error{"append": (*Log).Append, "note-and-append": noted} {
		b.Run(name, func(b *testing.B) {
			l, err := Open(filepath.Join(b.TempDir(), "audit.jsonl"), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			for b.Loop() {
				if err := put(l, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("baseline-write-and-sync", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "plain"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		line := bytes.Repeat([]byte("x"), 400)
		for b.Loop() {
			f.Write(line)
			f.Sync()
		}
	})
}

// failsOnce is a file whose first write fails.
type failsOnce struct {
	file
	failed bool
}

func (f *failsOnce) WriteAt(p []byte, off int64) (int, error) {
	if !f.failed {
		f.failed = true
		return 0, errNoSpace
	}
	return f.file.WriteAt(p, off)
}

// Much that waits goes in several writes: a later one that succeeds does not hide that an earlier one failed.
func TestCloseTellsOfALostNote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, Options{})
	l.mu.Lock()
	l.writing = true // so that no timer writes meanwhile
	l.mu.Unlock()
	const notes = 3 * maxBatch / 2 / MaxString
	for range notes {
		if err := l.Note(Event{Kind: Result, Text: strings.Repeat("x", MaxString)}); err != nil {
			t.Fatal(err)
		}
	}
	l.mu.Lock()
	l.file, l.writing = &failsOnce{file: l.file}, false
	l.mu.Unlock()
	if err := l.Close(); !errors.Is(err, errNoSpace) {
		t.Errorf("error %v, want the disk's", err)
	}
	if r := verifyFile(t, path); !r.OK() || r.Lines == 0 || r.Lines >= notes {
		t.Errorf("%+v", r)
	}
}
