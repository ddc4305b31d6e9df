package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-4e9f7b04/hearsay/gateway"
)

// Pins says where the approved definitions are kept and what becomes of others.
type Pins struct {
	// Lock is the file that hearsay pin writes, relative to the configuration file; "" = nothing was approved, and what a server
	// says first in a session is what counts in it.
	Lock string `yaml:"lock"`
	// New is what becomes of a definition that was not there when its server was approved: withhold (default) or show.
	New string `yaml:"new"`
	// Drift is what becomes of one that changes within a session, of a server nothing of which was approved: withhold (default)
	// or show.
	Drift string `yaml:"drift"`
}

// MaxLock bounds a lock file: the definitions of hundreds of servers.
const MaxLock = 64 << 20

// ReadLock reads a lock file. The error of one that is missing is [fs.ErrNotExist].
func ReadLock(path string) (*gateway.Lock, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the lock file, which hearsay pin writes: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the lock file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxLock+1))
	if err != nil {
		return nil, fmt.Errorf("reading the lock file: %w", err)
	}
	if len(data) > MaxLock {
		return nil, fmt.Errorf("reading the lock file: %s is larger than %d bytes", path, MaxLock)
	}
	lock, err := gateway.ReadLock(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return lock, nil
}

// LockPath is where the section says that the lock file is; "" for nowhere.
func (f *File) LockPath() string {
	if f.Pins == nil || f.Pins.Lock == "" || filepath.IsAbs(f.Pins.Lock) {
		if f.Pins == nil {
			return ""
		}
		return f.Pins.Lock
	}
	return filepath.Join(filepath.Dir(f.Path), f.Pins.Lock)
}

// GatewayPins reads the lock file that the section names. One that is missing is an error: nothing would be withheld.
func (f *File) GatewayPins() (gateway.Pins, error) {
	var p gateway.Pins
	if f.Pins == nil {
		return p, nil
	}
	for _, choice := range []struct {
		key, value string
		to         *bool
	}{{"new", f.Pins.New, &p.AllowNew}, {"drift", f.Pins.Drift, &p.AllowDrift}} {
		switch choice.value {
		case "", "withhold":
		case "show":
			*choice.to = true
		default:
			return p, fmt.Errorf("pins: %s: %q: it is withhold or show", choice.key, choice.value)
		}
	}
	path := f.LockPath()
	if path == "" {
		return p, nil
	}
	var err error
	p.Lock, err = ReadLock(path)
	return p, err
}
