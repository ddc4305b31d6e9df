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
	"syscall"
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
	home    string // of the caller
	entries []entry
	links   []link
	holds   []hold
	notes   []string
}

// hold is a name that is made for the run; see janitor.
type hold struct {
	Path string
	Dir  bool
	Text string
}

func newView(s *Spec) (*view, error) {
	home, _ := os.UserHomeDir() // without a home there is none to hide
	if home != "" {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			home = real
		}
	}
	v := &view{spec: s, home: home}
	if err := v.system(); err != nil {
		return nil, err
	}
	if err := v.listed(); err != nil {
		return nil, err
	}
	if err := v.hide(); err != nil {
		return nil, err
	}
	// Deeper mounts come later; of two at one place the pin comes first, the cover last.
	slices.SortStableFunc(v.entries, func(a, b entry) int { return depth(a.Target) - depth(b.Target) })
	return v, nil
}

func depth(p string) int {
	if p == "/" {
		return 0
	}
	return strings.Count(p, "/")
}

func (v *view) system() error {
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
		real, err := filepath.EvalSymlinks(path) // a parent may be a link
		if err != nil {
			return err
		}
		v.entries = append(v.entries, entry{Target: path, Source: real, Access: readOnly, Dir: info.IsDir()})
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
		real, err := v.add(s.Project, readOnly)
		if err != nil {
			return err
		}
		if err := v.repository(real, false); err != nil {
			return err
		}
	case ProjectRW:
		write = append([]string{s.Project}, write...)
	}
	var roots []string
	for _, path := range write {
		real, err := v.add(path, writable)
		if err != nil {
			return err
		}
		roots = append(roots, real)
	}
	for _, root := range roots { // after all are known: a guarded link may lead into another
		if err := v.guard(root); err != nil {
			return err
		}
	}
	return nil
}

// reserved are the sandbox's own places, which nothing of the host may replace.
var reserved = []string{"/proc", "/sys", "/dev", HomeDir, StateDir}

// add puts a listed path into the view and returns it without symbolic links.
func (v *view) add(path string, a access) (string, error) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("sandbox: listed path: %w", err)
	}
	if real == "/" {
		return "", fmt.Errorf("sandbox: listed path %q is the whole file system: list what is needed", path)
	}
	for _, r := range reserved {
		if within(real, r) {
			return "", fmt.Errorf("sandbox: listed path %q: %s is the sandbox's own", path, r)
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

// guard protects what is below a writable folder.
func (v *view) guard(root string) error {
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return err
	}
	if err := v.repository(root, true); err != nil {
		return err
	}
	project, home := root == v.spec.Project, root == v.home
	isRepository := false
	info, err := os.Lstat(filepath.Join(root, ".git"))
	switch {
	case errors.Is(err, fs.ErrNotExist) && project:
		// A repository that the sandbox makes here would run its hooks for whoever stands in the project.
		v.hold(root, guard{path: ".git", dir: true})
	case err == nil && info.IsDir():
		isRepository = true
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		v.protect(root, guard{path: ".git"})
	}
	for _, g := range guardsOf(home) {
		inGit := strings.HasPrefix(g.path, ".git/")
		if inGit && !isRepository {
			continue
		}
		_, err := os.Lstat(filepath.Join(root, g.path))
		switch {
		case err == nil:
			v.protect(root, g)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotDir):
			return fmt.Errorf("sandbox: protected path: %w", err)
		case g.hold && (project || home || inGit):
			v.hold(root, g)
		}
	}
	return nil
}

// hold makes an absent name for the run, and protects it like the others.
func (v *view) hold(root string, g guard) {
	path := filepath.Join(root, g.path)
	v.holds = append(v.holds, hold{Path: path, Dir: g.dir, Text: g.text})
	v.pin(root, path)
	v.put(entry{Target: path, Source: path, Access: protected, Dir: g.dir, Listed: true})
}

// protect makes a path below root read-only and pins the folders between, which could otherwise be renamed away with it. Where a link
// is on the way, the link is covered, and with it the way.
func (v *view) protect(root string, g guard) {
	at := root
	for _, name := range strings.Split(g.path, "/") {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if err != nil {
			return // gone since; the mount would fail on it
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			v.pin(root, at)
			v.protectLink(entry{Target: at, Access: protected, Listed: true})
			return
		}
		if at == filepath.Join(root, g.path) {
			v.pin(root, at)
			v.put(entry{Target: at, Source: at, Access: protected, Dir: info.IsDir(), Listed: true})
		}
	}
}

// protectLink covers a link with the file it leads to, so that neither can be changed. A folder cannot be mounted on a link:
// there the link is covered by an empty file, and where it leads is made read-only if the sandbox could write it.
func (v *view) protectLink(e entry) {
	e.Link = true
	real, err := filepath.EvalSymlinks(e.Target)
	info, statErr := os.Stat(e.Target)
	switch {
	case err != nil || statErr != nil:
		e.Access, e.Source, e.Dir = hidden, "", false // it leads nowhere
	case info.IsDir():
		v.notes = append(v.notes, fmt.Sprintf("%s is a link to a folder and cannot be followed inside", e.Target))
		e.Access, e.Source, e.Dir = hidden, "", false
	default:
		e.Source, e.Dir = real, false
	}
	v.put(e)
	if err == nil && statErr == nil && v.visible(real) {
		v.pinBelowWritable(real)
		v.put(entry{Target: real, Source: real, Access: protected, Dir: info.IsDir(), Listed: true})
	}
}

// pin makes every folder between root and path a mount point.
func (v *view) pin(root, path string) {
	for dir := filepath.Dir(path); dir != root && within(dir, root); dir = filepath.Dir(dir) {
		v.put(entry{Target: dir, Source: dir, Access: pinned, Dir: true, Listed: true})
	}
}

// pinBelowWritable pins the folders between a path and each writable one that it lies in.
func (v *view) pinBelowWritable(path string) {
	for _, e := range slices.Clone(v.entries) {
		if e.Listed && e.Access == writable && e.Target == e.Source && within(path, e.Target) {
			v.pin(e.Target, path)
		}
	}
}

// put adds an entry once.
func (v *view) put(e entry) {
	if !slices.Contains(v.entries, e) {
		v.entries = append(v.entries, e)
	}
}

// hide covers what must stay invisible inside listed folders.
func (v *view) hide() error {
	for i, path := range slices.Concat(v.spec.Hide, Hidden(v.home)) {
		asked := i < len(v.spec.Hide)
		path = filepath.Clean(path)
		// The folder's links are resolved, its own last part is not: a link is covered itself, and so is where it leads.
		parent, err := filepath.EvalSymlinks(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
			if asked && v.visible(path) {
				v.notes = append(v.notes, fmt.Sprintf("%s does not exist; it would be visible if somebody made it during the run", path))
			}
			continue
		} else if err != nil {
			if v.visible(path) {
				return fmt.Errorf("sandbox: hidden path: %w", err)
			}
			continue
		}
		at := filepath.Join(parent, filepath.Base(path))
		if own, err := v.listedAt(at, asked); err != nil {
			return err
		} else if own {
			v.notes = append(v.notes, fmt.Sprintf("%s is listed; it would be hidden otherwise", at))
			continue
		}
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if v.visible(at) && (asked || v.writableHere(at)) {
				v.notes = append(v.notes, fmt.Sprintf("%s does not exist; it would be visible if somebody made it during the run", path))
			}
			continue
		case err != nil && v.visible(at):
			return fmt.Errorf("sandbox: hidden path: %w", err)
		case err != nil:
			continue
		}
		isLink := info.Mode()&fs.ModeSymlink != 0
		if v.visible(at) {
			v.cover(at, info.IsDir(), isLink)
		}
		if isLink {
			real, err := filepath.EvalSymlinks(at)
			if err != nil {
				continue // it leads nowhere
			}
			if to, err := os.Stat(real); err == nil && v.visible(real) {
				v.cover(real, to.IsDir(), false)
			}
		}
	}
	return nil
}

// listedAt says whether the operator listed a path that would be hidden by default, or something in it. To hide and to list the same
// is a contradiction, and so is listing something in a hidden folder that is visible through another.
func (v *view) listedAt(at string, asked bool) (bool, error) {
	exact, inside, around := false, "", false
	for _, e := range v.entries {
		if !e.Listed || e.Target != e.Source || e.Access != readOnly && e.Access != writable {
			continue
		}
		switch {
		case e.Target == at:
			exact = true
		case within(e.Target, at):
			inside = e.Target
		case within(at, e.Target):
			around = true
		}
	}
	if asked && exact {
		inside = at
	}
	if inside != "" && (asked || around && !exact) {
		return false, fmt.Errorf("sandbox: %s is hidden, and %s is listed: remove one of the two, or list the other alone", at, inside)
	}
	return exact || inside != "", nil
}

func (v *view) writableHere(path string) bool {
	return slices.ContainsFunc(v.entries, func(e entry) bool { return e.Access == writable && within(path, e.Target) })
}

func (v *view) cover(path string, dir, isLink bool) {
	v.pinBelowWritable(path)
	// What is covered needs no other mount at or below.
	v.entries = slices.DeleteFunc(v.entries, func(e entry) bool {
		return e.Listed && e.Target == e.Source && (e.Access == pinned || e.Access == protected) && within(e.Target, path)
	})
	v.put(entry{Target: path, Access: hidden, Dir: dir, Link: isLink, Listed: true})
}

// repository adds what git needs of a linked work tree: its objects, references and own folder, never the hooks and the
// configuration, which are the main work tree's.
func (v *view) repository(project string, write bool) error {
	tree, err := readWorkTree(project)
	if errors.Is(err, errNotWorkTree) {
		return nil
	} else if err != nil {
		return fmt.Errorf("sandbox: linked work tree: %w", err)
	}
	v.put(entry{Target: tree.common, Source: tree.common, Access: readOnly, Dir: true, Listed: true})
	if !write {
		return nil
	}
	dotGit := filepath.Join(project, ".git")
	v.put(entry{Target: dotGit, Source: dotGit, Access: protected, Listed: true})
	for _, path := range []string{filepath.Join(tree.common, "objects"), filepath.Join(tree.common, "refs"), filepath.Join(tree.common, "logs"), tree.gitDir} {
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			v.put(entry{Target: path, Source: path, Access: writable, Dir: true, Listed: true})
		}
	}
	for _, name := range []string{"commondir", "gitdir", "config.worktree"} {
		path := filepath.Join(tree.gitDir, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			v.put(entry{Target: path, Source: path, Access: protected, Listed: true})
		}
	}
	return nil
}

var errNotDir = syscall.ENOTDIR
