//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemFolders are read-only in every sandbox. Where the host has a link, the sandbox has the same.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/nix/store", "/gnu/store"}

// systemFiles of /etc are what programs need to load libraries, show time and text and check certificates. The rest of /etc
// stays outside: it holds passwords, keys and the names of the users.
var systemFiles = []string{
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf", "/etc/pki/ca-trust/extracted",
	"/etc/crypto-policies", "/etc/protocols", "/etc/services", "/etc/mime.types", "/etc/magic", "/etc/fonts", "/etc/terminfo", "/etc/inputrc",
	"/etc/os-release", "/etc/debian_version", "/etc/python3", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13", "/etc/java", "/etc/xdg",
}

// devices of the sandbox's own /dev.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// view makes the file view of a Spec. All paths of the host are resolved here, once; the mounts open them again without
// following any symbolic link, so that what changed in between fails.
type view struct {
	spec    *Spec
	home    string   // of the caller
	homes   []string // of others, below or around what is listed; see findHomes
	project string   // without symbolic links
	entries []entry
	written map[string][]string // listed entries as the operator wrote them, by where they are
	links   []link
	holds   []hold
	locks   []*os.File
	locked  int // of the folder being guarded, -1 for none
	notes   []string
}

func newView(s *Spec) (*view, error) {
	home, _ := os.UserHomeDir() // without a home there is none to hide
	if home != "" {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			home = real
		}
	}
	v := &view{spec: s, home: home, written: map[string][]string{}}
	if err := v.fill(); err != nil {
		closeAll(v.locks)
		return nil, err
	}
	v.unpin()
	// Deeper mounts come later; of two at one place the cover comes last.
	slices.SortStableFunc(v.entries, func(a, b entry) int { return depth(a.Target) - depth(b.Target) })
	return v, nil
}

func (v *view) fill() error {
	if err := v.system(); err != nil {
		return err
	}
	if err := v.listed(); err != nil {
		return err
	}
	return v.hide()
}

func depth(p string) int {
	if p == "/" {
		return 0
	}
	return strings.Count(p, "/")
}

func (v *view) system() error {
	folders := map[string]string{} // without links; a few hold all the files
	for _, path := range slices.Concat(systemFolders, systemFiles) {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		} else if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			v.links = append(v.links, link{path, to})
			continue
		}
		dir := filepath.Dir(path)
		if folders[dir] == "" {
			if folders[dir], err = filepath.EvalSymlinks(dir); err != nil {
				return err
			}
		}
		v.entries = append(v.entries, entry{Target: path, Source: filepath.Join(folders[dir], filepath.Base(path)), Access: readOnly, Dir: info.IsDir()})
	}
	for _, path := range devices {
		if _, err := os.Lstat(path); err != nil {
			return &LayerError{Layer: "files", Err: err, Remedy: "The sandbox needs the host's " + path}
		}
		v.entries = append(v.entries, entry{Target: path, Source: path, Access: device})
	}
	return nil
}

// listed adds what the operator named.
func (v *view) listed() error {
	s := v.spec
	if s.State != "" {
		if err := os.MkdirAll(s.State, 0o700); err != nil {
			return fmt.Errorf("sandbox: state folder: %w", err)
		}
		real, err := filepath.EvalSymlinks(s.State)
		if err != nil {
			return fmt.Errorf("sandbox: state folder: %w", err)
		}
		v.entries = append(v.entries, entry{Target: StateDir, Source: real, Access: writable, Dir: true, Listed: true})
	}
	for _, path := range s.Read {
		if _, err := v.add(path, readOnly); err != nil {
			return err
		}
	}
	write := s.Write
	switch s.Preset {
	case ProjectRO:
		var err error
		if v.project, err = v.add(s.Project, readOnly); err != nil {
			return err
		}
		if err := v.repository(v.project, false); err != nil {
			return err
		}
	case ProjectRW:
		write = append([]string{s.Project}, write...)
	}
	var roots []string
	for i, path := range write {
		real, err := v.add(path, writable)
		if err != nil {
			return err
		}
		if i == 0 && s.Preset == ProjectRW {
			v.project = real
		}
		if !slices.Contains(roots, real) {
			roots = append(roots, real)
		}
	}
	for _, e := range slices.Clone(v.entries) { // read-only inside writable
		if e.Listed && e.Access == readOnly {
			v.pinBelowWritable(e.Target)
		}
	}
	v.homes = findHomes(v)
	for _, root := range roots { // after all are known: a guarded link may lead into another
		if err := v.guard(root); err != nil {
			return err
		}
	}
	return nil
}

// reserved are the sandbox's own places, which nothing of the host may replace.
var reserved = []string{"/proc", "/sys", "/dev", HomeDir, StateDir, ownDir}

// checkReserved refuses a path, without links, that would replace a place of the sandbox's own. Below the home inside there is room:
// the caller's may have the same name.
func checkReserved(real string) error {
	for _, r := range reserved {
		switch {
		case real == "/":
			return errors.New("it is the whole file system: list what is needed")
		case within(r, real) && r != real:
			return fmt.Errorf("the sandbox's own %s lies in it: list what is needed of it", r)
		case within(real, r) && (r != HomeDir || real == HomeDir):
			return fmt.Errorf("%s is the sandbox's own", r)
		}
	}
	return nil
}

// checkWritable refuses a path, without links, that would open the system for writing: what is read-only in every sandbox, or a
// folder that holds some of it. To a root caller's sandbox its files would be its own.
func checkWritable(real string) error {
	for _, system := range slices.Concat(systemFolders, systemFiles) {
		if target, err := filepath.EvalSymlinks(system); err == nil {
			system = target
		}
		if within(system, real) {
			return fmt.Errorf("%s of the system is read-only in every sandbox: list a folder below it, or another", system)
		}
	}
	return nil
}

// add puts a listed path into the view and returns it without symbolic links.
func (v *view) add(path string, a access) (string, error) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("sandbox: listed path: %w", err)
	}
	if err := checkReserved(real); err != nil {
		return "", fmt.Errorf("sandbox: listed path %q: %w", path, err)
	}
	if a == writable {
		if err := checkWritable(real); err != nil {
			return "", fmt.Errorf("sandbox: listed path %q: %w", path, err)
		}
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("sandbox: listed path: %w", err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return "", fmt.Errorf("sandbox: listed path %q is neither a folder nor a file", path)
	}
	if real != path {
		v.links = append(v.links, link{path, real})
	}
	v.written[real] = append(v.written[real], path)
	v.entries = append(v.entries, entry{Target: real, Source: real, Access: a, Dir: info.IsDir(), Listed: true})
	return real, nil
}

// within says that path is root or below it. Both are clean.
func within(path, root string) bool {
	return path == root || root == "/" || strings.HasPrefix(path, root+"/")
}

// visible says whether path is inside a listed entry.
func (v *view) visible(path string) bool {
	return slices.ContainsFunc(v.entries, func(e entry) bool {
		return e.Listed && (e.Access == readOnly || e.Access == writable) && e.Target == e.Source && within(path, e.Target)
	})
}

// put adds an entry once.
func (v *view) put(e entry) {
	if !slices.Contains(v.entries, e) {
		v.entries = append(v.entries, e)
	}
}
