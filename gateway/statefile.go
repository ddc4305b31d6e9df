package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/atomicfile"
)

// Bounds of what is kept. The state itself is bounded by the gate.
const (
	maxStateFile = 64 << 20
	maxJournal   = 8 << 20 // a long day of prompts
)

// stateWait is how long a gateway that was started again waits for the one before to end.
const stateWait = 5 * time.Second

// StateKey says whose state it is. It holds nothing a client sends: a client can neither choose another state, nor start a
// second one beside its own, nor leave its own behind.
type StateKey struct {
	Host      Host   // on stdio: the process that started the gateway
	Principal string // on HTTP: who was authenticated
	Gateway   string // which of the host's gateways it is: its configuration and command line
}

func (k StateKey) name() string {
	h := sha256.New()
	for _, part := range []string{strconv.Itoa(k.Host.PID), strconv.FormatUint(k.Host.Start, 10), k.Host.Boot, k.Principal, k.Gateway} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// StateFile keeps what one session may do over a restart of the gateway. One process holds it at a time.
type StateFile struct {
	path    string
	lock    *os.File
	kept    []byte
	record  stateRecord // whose state it is
	state   gate.State
	spent   gate.Budget
	journal *journal // nil where nothing is shared
}

type stateRecord struct {
	Host      *Host       `json:"host,omitempty"` // so that the states of processes that ended can be swept
	Principal string      `json:"principal,omitempty"`
	State     gate.State  `json:"state"`
	Budget    gate.Budget `json:"budget"`
}

// ErrStateHeld says that another gateway runs with this state.
var ErrStateHeld = errors.New("another gateway serves the same session; stop it, or give one of the two another configuration")

// OpenState takes hold of the state of a session, in a folder that only the operator can write. A file that cannot be read
// as a state is kept aside and the session starts tainted, without trusted values: damage never gives more.
func OpenState(dir string, key StateKey) (*StateFile, error) {
	return openStateWithin(dir, key, stateWait)
}

func openStateWithin(dir string, key StateKey, wait time.Duration) (*StateFile, error) {
	sessions := filepath.Join(dir, "sessions")
	if err := os.MkdirAll(sessions, 0o700); err != nil {
		return nil, fmt.Errorf("opening the session's state: %w", err)
	}
	if key == (StateKey{}) {
		return nil, errors.New("opening the session's state: nobody it belongs to is known")
	}
	f := &StateFile{path: filepath.Join(sessions, key.name()+".json")}
	f.record.Principal = key.Principal
	if key.Host != (Host{}) {
		f.record.Host = &key.Host
		sweep(dir)
		if err := os.MkdirAll(filepath.Join(dir, "journals"), 0o700); err != nil {
			return nil, fmt.Errorf("opening the session's state: %w", err)
		}
		f.journal = &journal{path: journalPath(dir, key.Host), shared: map[string]bool{}}
	}
	var err error
	if f.lock, err = lockState(f.path, wait); err != nil {
		return nil, fmt.Errorf("opening the session's state: %w", err)
	}
	atomicfile.Sweep(f.path)
	if err := f.read(); err != nil {
		f.lock.Close()
		return nil, fmt.Errorf("opening the session's state: %w", err)
	}
	return f, nil
}

// lockState takes hold of the state at path, waiting for another that holds it.
func lockState(path string, wait time.Duration) (*os.File, error) {
	for end := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		lock, err := openLock(path)
		switch {
		case err == nil:
			return lock, nil
		case !errors.Is(err, errHeld):
			return nil, err
		case time.Now().After(end):
			return nil, ErrStateHeld
		}
	}
}

// openLock takes the lock of the state at path. The lock of a file that was removed meanwhile is nobody's, and counts as held.
func openLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(lock); err != nil {
		lock.Close()
		return nil, err
	}
	mine, err := lock.Stat()
	if err == nil {
		if there, e := os.Lstat(path + ".lock"); e != nil || !os.SameFile(mine, there) {
			err = errHeld
		}
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

func (f *StateFile) read() error {
	data, err := readBounded(f.path, maxStateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var r stateRecord
	if err := json.Unmarshal(data, &r); err != nil {
		f.state = gate.State{}.Observe(gate.Observation{Source: "a state that could not be read"})
		return os.Rename(f.path, f.path+".broken")
	}
	f.state, f.spent, f.kept = r.State, r.Budget, data
	return nil
}

// State is what the session may do, as it was kept; the zero values for a new session.
func (f *StateFile) State() (gate.State, gate.Budget) { return f.state, f.spent }

// Save keeps a state. It is durable when Save returns; on an error nothing was given up, and the caller must not let out
// what the state was taken for.
func (f *StateFile) Save(s gate.State, b gate.Budget) error {
	record := f.record
	record.State, record.Budget = s, b
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("keeping the session's state: %w", err)
	}
	if bytes.Equal(data, f.kept) {
		return nil
	}
	if f.journal != nil && s.Tainted() {
		sources := s.Reads()
		if len(sources) == 0 {
			sources = []string{"a source without a name"}
		}
		if err := f.journal.share(sources); err != nil {
			return fmt.Errorf("sharing what was read: %w", err)
		}
	}
	if err := atomicfile.Write(f.path, data, 0o600); err != nil {
		return fmt.Errorf("keeping the session's state: %w", err)
	}
	f.kept = data
	return nil
}

// Heard gives what came from outside the session since the last call: the user's words, from hearsay hook, and what the
// other gateways of the same agent have read. It is asked before each decision.
func (f *StateFile) Heard() ([]gate.Observation, error) {
	if f.journal == nil {
		return nil, nil
	}
	return f.journal.next()
}

// Close lets go of the state. The file stays for the next process.
func (f *StateFile) Close() error {
	if _, err := f.lock.Stat(); err == nil { // it is held still
		removeUnused(f.path)
	}
	return f.lock.Close()
}

// removeUnused removes the lock of a state that was never kept. The caller holds it.
func removeUnused(path string) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		os.Remove(path + ".lock")
	}
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s: larger than %d bytes", path, limit)
	}
	return data, err
}

// sweep removes the states and journals of processes that ended: they can never be asked for again.
func sweep(dir string) {
	for _, pattern := range []string{"sessions/*.json", "journals/*.jsonl"} {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range paths {
			if host, ok := recordedHost(path); ok && !host.Alive() {
				os.Remove(path)
				os.Remove(path + ".lock")
			}
		}
	}
	locks, _ := filepath.Glob(filepath.Join(dir, "sessions/*.json.lock"))
	for _, lock := range locks { // of gateways that were killed before they had read anything
		path := strings.TrimSuffix(lock, ".lock")
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if held, err := openLock(path); err == nil {
			removeUnused(path)
			held.Close()
		}
	}
}

// recordedHost finds the process a file belongs to: in a state's record, or in the name of a journal.
func recordedHost(path string) (Host, bool) {
	if strings.HasSuffix(path, ".jsonl") {
		return hostOfJournal(path)
	}
	data, err := readBounded(path, maxStateFile)
	var r struct{ Host *Host }
	if err != nil || json.Unmarshal(data, &r) != nil || r.Host == nil {
		return Host{}, false
	}
	return *r.Host, true
}
