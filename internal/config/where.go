package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/atomicfile"
)

// DefaultPath is the file that is read where none is named: hearsay/hearsay.yaml in the user's configuration folder. It is
// never in the working tree: what is checked out there must not set its own rules.
func DefaultPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("finding the configuration: %w; name a file with --config", err)
	}
	return filepath.Join(dir, "hearsay", "hearsay.yaml"), nil
}

// StatePath is where the folder of [StateDir] is or would be: $XDG_STATE_HOME/hearsay, or .local/state/hearsay at home.
func StatePath() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding a folder for the state: %w; set XDG_STATE_HOME", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "hearsay"), nil
}

// StateDir is the folder of what outlives a process: sessions, the user's words, the named task, tokens. It is made with mode
// 0700. A sandbox sees it only inside a folder that the operator lists, and then neither sees the tokens in it nor changes it.
func StateDir() (string, error) {
	dir, err := StatePath()
	if err != nil {
		return "", err
	}
	if err := atomicfile.Folder(dir); err != nil {
		return "", fmt.Errorf("the folder for the state: %w", err)
	}
	return dir, nil
}

// TaskFile is the name, in the folder of the state, of the list that hearsay task keeps: a tool on each line.
const TaskFile = "task"

// NamedTask gives the tools that hearsay task named; none where nothing was.
func NamedTask(stateDir string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(stateDir, TaskFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the task: %w", err)
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' }), nil
}
