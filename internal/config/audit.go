package config

import "github.com/seed-4e9f7b04/hearsay/audit"

// Audit says where decisions are recorded. Without a file nothing is recorded, and nothing waits for a record.
type Audit struct {
	// File is where the record is. Its folder is not made.
	File string `yaml:"file"`
	// MaxBytes is the size at which the file is rotated; 0 means audit's own default.
	MaxBytes int64 `yaml:"max_bytes"`
}

// Open opens the log the section names; nil where it names none.
func (a *Audit) Open() (*audit.Log, error) {
	if a == nil || a.File == "" {
		return nil, nil
	}
	return audit.Open(a.File, audit.Options{MaxBytes: a.MaxBytes})
}
