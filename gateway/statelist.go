package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/gate"
)

// KeptState is a session whose state lies on the disk.
type KeptState struct {
	Name      string // of the file, without its ending
	Host      Host   // zero for a session of a principal
	Principal string
	State     gate.State
	Budget    gate.Budget
}

// ListStates gives the sessions that are kept in dir, in order of their names. Files that are no states are left out.
func ListStates(dir string) ([]KeptState, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "sessions", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("listing the sessions: %w", err)
	}
	var out []KeptState
	for _, path := range paths {
		if k, err := readKept(path); err == nil {
			out = append(out, k)
		}
	}
	return out, nil
}

func readKept(path string) (KeptState, error) {
	data, err := readBounded(path, maxStateFile)
	if err != nil {
		return KeptState{}, err
	}
	var r stateRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return KeptState{}, err
	}
	k := KeptState{Name: strings.TrimSuffix(filepath.Base(path), ".json"), Principal: r.Principal, State: r.State, Budget: r.Budget}
	if r.Host != nil {
		k.Host = *r.Host
	}
	return k, nil
}

// ForgetState takes back what a session has read, and everything else it is known by: its next call starts anew. It is for the
// operator, who has looked at what is forgiven; record is told of it first and can stop it. A session that a gateway serves
// right now cannot be forgotten: the error is [ErrStateHeld].
func ForgetState(dir, name string, record func(KeptState) error) error {
	if name == "" || strings.ContainsAny(name, `/\.`) {
		return errors.New("forgetting a session: that is no session's name")
	}
	path := filepath.Join(dir, "sessions", name+".json")
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("forgetting a session: %w", err)
	}
	lock, err := lockState(path, 0)
	if err != nil {
		return fmt.Errorf("forgetting a session: %w", err)
	}
	defer lock.Close()
	kept, err := readKept(path)
	if err != nil {
		return fmt.Errorf("forgetting a session: %w", err)
	}
	if err := record(kept); err != nil {
		return fmt.Errorf("forgetting a session: it could not be recorded: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("forgetting a session: %w", err)
	}
	removeUnused(path)
	return nil
}
