package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A server in its sandbox has no network to fetch itself with, as npx does at each start. hearsay pin fetches its package once,
// with the network and without running the package's install scripts; from then on it is started from there.

// npmPackage is what an npx command runs.
type npmPackage struct {
	spec string // with its version, as npm takes it
	args []string
}

// npxPackage reads an npx command; false for any other. Flags of npx but -y are for npx itself, and then it stays as it is.
func npxPackage(command []string) (npmPackage, bool) {
	if len(command) == 0 || strings.TrimSuffix(filepath.Base(command[0]), ".cmd") != "npx" {
		return npmPackage{}, false
	}
	for i, arg := range command[1:] {
		switch {
		case arg == "-y" || arg == "--yes":
		case strings.HasPrefix(arg, "-"):
			return npmPackage{}, false
		default:
			return npmPackage{spec: arg, args: command[i+2:]}, true
		}
	}
	return npmPackage{}, false
}

// name is the package's name without its version.
func (p npmPackage) name() string {
	if i := strings.LastIndexByte(p.spec, '@'); i > 0 {
		return p.spec[:i]
	}
	return p.spec
}

func (p npmPackage) dir(stateDir string) string {
	sum := sha256.Sum256([]byte(p.spec))
	return filepath.Join(stateDir, "packages", hex.EncodeToString(sum[:8]))
}

// installedPackage gives the command that starts a fetched package, and the folder it needs to read.
func installedPackage(stateDir string, p npmPackage) (command []string, dir string, err error) {
	dir = p.dir(stateDir)
	root := filepath.Join(dir, "node_modules", filepath.FromSlash(p.name()))
	data, err := os.ReadFile(filepath.Join(root, "package.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("its package %s is not here, and in its sandbox it has no network to fetch itself with: run hearsay pin -c with the same file once", p.spec)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading its package: %w", err)
	}
	var manifest struct {
		Bin json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return nil, "", fmt.Errorf("reading its package: %w", err)
	}
	script, err := binOf(manifest.Bin, p.name())
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(root, filepath.FromSlash(script))
	if rel, err := filepath.Rel(root, path); err != nil || !filepath.IsLocal(rel) {
		return nil, "", fmt.Errorf("its package %s starts something outside itself", p.spec)
	}
	return []string{"node", path}, dir, nil
}

// binOf finds the program of a package as npx does: the only one, or the one named like the package.
func binOf(raw json.RawMessage, name string) (string, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return one, nil
	}
	var several map[string]string
	if err := json.Unmarshal(raw, &several); err != nil {
		return "", fmt.Errorf("the package %s names no program", name)
	}
	if len(several) == 1 {
		for _, script := range several {
			return script, nil
		}
	}
	if script, ok := several[name[strings.LastIndexByte(name, '/')+1:]]; ok {
		return script, nil
	}
	return "", fmt.Errorf("the package %s has %d programs and none named like it; install it and give the command that you mean", name, len(several))
}

// fetchPackage installs a package into its folder, without running any script of it or of what it depends on. The folder is there
// once it is whole: one that was left half fetched would be started for ever after.
func fetchPackage(ctx context.Context, stateDir string, p npmPackage, log io.Writer) error {
	dir := p.dir(stateDir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("fetching %s: %w", p.spec, err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "fetching-*")
	if err != nil {
		return fmt.Errorf("fetching %s: %w", p.spec, err)
	}
	defer os.RemoveAll(fresh)
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", fresh, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--loglevel=error", "--", p.spec)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = time.Second // a process of npm's may hold the streams
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("fetching %s with npm: %w", p.spec, cmp.Or(ctx.Err(), err))
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("fetching %s: %w", p.spec, err)
	}
	if err := os.Rename(fresh, dir); err != nil {
		return fmt.Errorf("fetching %s: %w", p.spec, err)
	}
	return nil
}
