package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/gate"
)

// What the gateways of one agent share lies in a journal, one for each process that runs agents: the user's words, as
// hearsay hook hears them, and what each gateway has read, so that two gateways beside each other shrink together. A
// gateway reads only the journal of the very process that started it.

// maxAncestors is how far above the hook the agent's process may be: hosts start hooks directly or through a shell.
const maxAncestors = 4

// entry is one line of a journal.
type entry struct {
	Said string `json:"said,omitempty"` // the user's words
	Read string `json:"read,omitempty"` // a source of untrusted content
}

// journalPath names the process in the file's name, so that it can be swept. Nothing in it comes from a client.
func journalPath(dir string, h Host) string {
	return filepath.Join(dir, "journals", fmt.Sprintf("%d-%d-%s.jsonl", h.PID, h.Start, h.Boot))
}

func hostOfJournal(path string) (Host, bool) {
	parts := strings.SplitN(strings.TrimSuffix(filepath.Base(path), ".jsonl"), "-", 3)
	if len(parts) != 3 {
		return Host{}, false
	}
	pid, err := strconv.Atoi(parts[0])
	start, err2 := strconv.ParseUint(parts[1], 10, 64)
	return Host{PID: pid, Start: start, Boot: parts[2]}, err == nil && err2 == nil
}

// KeepWords hands the user's words to the gateways that the same process runs: the nearest ancestors of the process pid,
// one of which is the agent's host. It is durable when it returns.
func KeepWords(dir string, pid int, text string) error {
	if len(text) > gate.MaxWords {
		return fmt.Errorf("keeping the user's words: more than %d bytes", gate.MaxWords)
	}
	if text == "" {
		return nil
	}
	if err := tell(dir, pid, entry{Said: text}); err != nil {
		return fmt.Errorf("keeping the user's words: %w", err)
	}
	return nil
}

// KeepRead tells the gateways that the same process runs of untrusted content that none of them has seen, such as that of
// a conversation taken up again.
func KeepRead(dir string, pid int, source string) error {
	if err := tell(dir, pid, entry{Read: source}); err != nil {
		return fmt.Errorf("telling what was read: %w", err)
	}
	return nil
}

func tell(dir string, pid int, e entry) error {
	hosts, err := Ancestors(pid, maxAncestors)
	if err != nil {
		return err
	}
	if len(hosts) == 0 {
		return errors.New("no process above this one runs an agent")
	}
	if err := os.MkdirAll(filepath.Join(dir, "journals"), 0o700); err != nil {
		return err
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	for _, h := range hosts {
		if err := appendLine(journalPath(dir, h), append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// appendLine adds a line in one write, so that two writers at once do not mix theirs.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size()+int64(len(line)) > maxJournal {
		return fmt.Errorf("the journal of the session holds more than %d bytes", maxJournal)
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	return f.Sync()
}

// journal reads one journal as it grows, and adds to it.
type journal struct {
	path   string
	offset int64
	shared map[string]bool // the sources that stand in it
}

// next gives the entries that came since the last call. A line that is not whole yet waits; one that cannot be read counts
// as untrusted content.
func (j *journal) next() ([]gate.Observation, error) {
	if info, err := os.Stat(j.path); err == nil && info.Size() == j.offset {
		return nil, nil // before most decisions: one system call instead of six
	}
	f, err := os.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the session's journal: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, j.offset, maxJournal-j.offset))
	if err != nil {
		return nil, fmt.Errorf("reading the session's journal: %w", err)
	}
	var out []gate.Observation
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return out, nil
		}
		j.offset += int64(len(line)) + 1
		data = rest
		var e entry
		switch err := json.Unmarshal(line, &e); {
		case err == nil && e.Said != "" && e.Read == "":
			out = append(out, gate.Observation{Source: "user", Trust: gate.User, Text: e.Said})
		case err == nil && e.Read != "" && e.Said == "":
			j.shared[e.Read] = true
			out = append(out, gate.Observation{Source: e.Read, Trust: gate.Untrusted})
		default:
			out = append(out, gate.Observation{Source: "a journal that could not be read", Trust: gate.Untrusted})
		}
	}
}

// share tells the other gateways of the agent what was read.
func (j *journal) share(sources []string) error {
	for _, source := range sources {
		if j.shared[source] {
			continue
		}
		line, err := json.Marshal(entry{Read: source})
		if err != nil {
			return err
		}
		if err := appendLine(j.path, append(line, '\n')); err != nil {
			return err
		}
		j.shared[source] = true
	}
	return nil
}
