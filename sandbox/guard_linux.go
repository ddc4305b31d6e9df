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

// hold is a name that is made for the run; see janitor.
type hold struct {
	Path string
	Dir  bool
	Text string
	// Lock counts the folder's lock among those of the run, -1 for none. Found says that another run made the hold.
	Lock  int
	Found bool `json:",omitempty"`
}

// lock takes a part in the folder's holds; see janitor.
func (v *view) lock(root string) error {
	f, err := lockFolder(root)
	v.locked = -1
	if f != nil {
		v.locked = len(v.locks)
		v.locks = append(v.locks, f)
	}
	return err
}

// guard protects what is below a writable folder.
func (v *view) guard(root string) error {
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return err
	}
	if err := v.lock(root); err != nil {
		return err
	}
	if err := v.repository(root, true); err != nil {
		return err
	}
	project, home := root == v.project, root == v.home || slices.Contains(v.homes, root)
	isRepository := false
	info, err := os.Lstat(filepath.Join(root, ".git"))
	switch {
	case errors.Is(err, fs.ErrNotExist) && project:
		// A repository that the sandbox makes here would run its hooks for whoever stands in the project.
		v.hold(root, guard{path: ".git", dir: true})
	case err == nil && project && isHold(info, true):
		v.hold(root, guard{path: ".git", dir: true})
	case err == nil && info.IsDir():
		isRepository = true
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		v.protect(root, guard{path: ".git"})
	}
	for _, g := range guardsOf(home) {
		inFolder := strings.Contains(g.path, "/") // of something that is there or not
		if strings.HasPrefix(g.path, ".git/") && !isRepository {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, g.path))
		switch {
		case err == nil && isHold(info, g.dir):
			v.hold(root, g)
		case err == nil:
			v.protect(root, g)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotDir):
			return fmt.Errorf("sandbox: protected path: %w", err)
		case g.hold && inFolder:
			if info, err := os.Lstat(filepath.Join(root, filepath.Dir(g.path))); err == nil && info.IsDir() {
				v.hold(root, g)
			}
		case g.hold && (project || home):
			v.hold(root, g)
		}
	}
	for _, path := range v.spec.Guard {
		if path = below(root, filepath.Clean(path)); path != "" && path != root {
			v.protectOrHold(root, path, false)
		}
	}
	return v.guardNamed(root)
}

// guardNamed protects what git's configuration names below root: hooks elsewhere, more configuration, commands.
func (v *view) guardNamed(root string) error {
	top, configs, err := repositoryOf(root, v.home)
	if err != nil {
		return fmt.Errorf("sandbox: linked work tree: %w", err)
	}
	named := readGitNamed(top, v.home, configs...)
	for _, path := range named.hooks {
		if path = below(root, path); path == root {
			v.notes = append(v.notes, fmt.Sprintf("git's core.hooksPath is %s itself: what is made in it may be a hook", root))
		} else if path != "" {
			v.protectOrHold(root, path, true)
		}
	}
	for _, path := range named.included {
		if path = below(root, path); path != "" && path != root {
			v.protectOrHold(root, path, false)
		}
	}
	for _, path := range named.commands { // words that name no file are no reason to make one
		if path = below(root, path); path == "" {
			continue
		}
		if info, err := os.Lstat(path); err == nil && !info.IsDir() {
			v.protect(root, guard{path: strings.TrimPrefix(path, root+"/")})
		}
	}
	return nil
}

// below gives a path its place below root, also where links lead there; "" when it has none.
func below(root, path string) string {
	if within(path, root) {
		return path
	}
	rest := ""
	for dir := path; dir != "/"; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			if real = filepath.Join(real, rest); within(real, root) {
				return real
			}
			return ""
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
	return ""
}

// protectOrHold protects a path below root. If it is absent, its first part that is absent is held: nothing can be made in that.
func (v *view) protectOrHold(root, path string, dir bool) {
	at := root
	for _, name := range strings.Split(strings.TrimPrefix(path, root+"/"), "/") {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if isDir := dir || at != path; errors.Is(err, fs.ErrNotExist) || err == nil && isHold(info, isDir) {
			if !slices.ContainsFunc(v.holds, func(h hold) bool { return h.Path == at }) {
				v.hold(root, guard{path: strings.TrimPrefix(at, root+"/"), dir: isDir})
			}
			return
		}
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			break
		}
	}
	v.protect(root, guard{path: strings.TrimPrefix(path, root+"/")})
}

// hold makes an absent name for the run, or takes part in another run's hold, and protects it like the others.
func (v *view) hold(root string, g guard) {
	path := filepath.Join(root, g.path)
	_, err := os.Lstat(path)
	v.holds = append(v.holds, hold{Path: path, Dir: g.dir, Text: g.text, Lock: v.locked, Found: err == nil})
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

// unpin takes out the pins in what is protected. Nothing can be renamed there, and a pin is a writable mount: on a protected folder
// that holds something hidden or protected by itself it would open the whole folder again.
func (v *view) unpin() {
	protects := func(pin entry) bool {
		return slices.ContainsFunc(v.entries, func(p entry) bool {
			return p.Access == protected && within(pin.Target, p.Target) && !slices.ContainsFunc(v.entries, func(w entry) bool {
				return w.Access == writable && w.Target != p.Target && within(w.Target, p.Target) && within(pin.Target, w.Target)
			})
		})
	}
	v.entries = slices.DeleteFunc(slices.Clone(v.entries), func(e entry) bool { return e.Access == pinned && protects(e) })
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
		switch info, err := os.Lstat(path); {
		case err == nil && isHold(info, false):
			v.hold(tree.gitDir, guard{path: name})
		case err == nil && info.Mode().IsRegular():
			v.put(entry{Target: path, Source: path, Access: protected, Listed: true})
		case errors.Is(err, fs.ErrNotExist):
			v.hold(tree.gitDir, guard{path: name})
		}
	}
	return nil
}

var errNotDir = syscall.ENOTDIR
