package config

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/approve"
	"github.com/seed-4e9f7b04/hearsay/internal/atomicfile"
)

// Approvals says how questions reach a person.
type Approvals struct {
	// Listen is the loopback address of the approvals page beside a gateway on stdio; port 0 takes a free one. "" means 127.0.0.1:0.
	Listen string `yaml:"listen"`
	// Hosts are further values of the Host header the page answers to.
	Hosts []string `yaml:"hosts"`
	// TokenFile holds the page's token, mode 0600; it is made where it is absent. "" means a new token for each start.
	TokenFile string `yaml:"token_file"`
	// Timeout is how long a question waits, such as "5m"; after it the call is denied.
	Timeout string `yaml:"timeout"`
	// Elicit puts questions of low risk to clients that can show them.
	Elicit bool `yaml:"elicit"`
}

// Desk gives the options of the desk.
func (a *Approvals) Desk() (approve.Options, error) {
	if a == nil || a.Timeout == "" {
		return approve.Options{}, nil
	}
	timeout, err := time.ParseDuration(a.Timeout)
	if err != nil || timeout <= 0 {
		return approve.Options{}, fmt.Errorf("approvals.timeout: %q is not a duration such as 90s or 5m", a.Timeout)
	}
	return approve.Options{Timeout: timeout}, nil
}

// Page gives the options of the approvals page.
func (a *Approvals) Page() (approve.PageOptions, error) {
	if a == nil {
		return approve.PageOptions{Token: rand.Text()}, nil
	}
	opt := approve.PageOptions{Token: rand.Text(), Hosts: a.Hosts}
	if a.TokenFile == "" {
		return opt, nil
	}
	token, err := Token(a.TokenFile)
	if err != nil {
		return opt, fmt.Errorf("approvals.token_file: %w", err)
	}
	opt.Token = token
	return opt, nil
}

// Token reads a bearer token from a file that only its owner can read, and makes the file with a new token where it is absent.
func Token(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeToken(path)
	}
	if err != nil {
		return "", err
	}
	if atomicfile.Shared(info) {
		return "", fmt.Errorf("%s can be read by others (mode %v); chmod 600 it", path, info.Mode().Perm())
	}
	if info.Size() > 4096 {
		return "", fmt.Errorf("%s is %d bytes long: not a token", path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if len(token) < 16 {
		return "", fmt.Errorf("the token in %s is shorter than 16 characters; remove the file to have one made", path)
	}
	return token, nil
}

func makeToken(path string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	token := rand.Text()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(token + "\n")
	return token, errors.Join(err, f.Close())
}
