//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hide covers what must stay invisible inside listed folders.
func (v *view) hide() error {
	paths := slices.Concat(v.spec.Hide, Hidden(v.home))
	for _, home := range slices.Concat(v.homes, v.shown(besideHome(v.home))) {
		paths = append(paths, hiddenInHome(home)...)
	}
	for i, path := range paths {
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

// findHomes lists the homes of other users as far as something listed shows them. HOME alone tells little: under sudo it is root's,
// and root sees everybody's.
func findHomes(v *view) []string {
	var all []string
	users, _ := readAll("/etc/passwd", maxPasswd) // not there, or not readable: then the folders below are all that is known
	for line := range strings.Lines(string(users)) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); len(fields) == 7 && filepath.IsAbs(fields[5]) {
			all = append(all, fields[5])
		}
	}
	return v.shown(append(all, folders("/home")...))
}

// besideHome lists the folders beside HOME. Most are other homes, but they need not be.
func besideHome(home string) []string {
	if parent := filepath.Dir(home); filepath.IsAbs(home) && parent != "/" {
		return folders(parent)
	}
	return nil
}

func folders(parent string) (all []string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries[:min(len(entries), maxHomes)] {
		if !e.Type().IsRegular() {
			all = append(all, filepath.Join(parent, e.Name()))
		}
	}
	return all
}

// shown lists what of some homes of others is below or around something listed, without links.
func (v *view) shown(homes []string) (shown []string) {
	for _, home := range homes {
		real, err := filepath.EvalSymlinks(home)
		if err != nil || real == "/" || real == v.home || slices.Contains(shown, real) {
			continue
		}
		if slices.ContainsFunc(v.entries, func(e entry) bool {
			return e.Listed && e.Target == e.Source && (within(real, e.Target) || within(e.Target, real))
		}) {
			shown = append(shown, real)
		}
	}
	return shown
}

// Bounds of what is looked at to find homes.
const (
	maxPasswd = 1 << 20
	maxHomes  = 1024
)

func readAll(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// listedAt says whether the operator listed a path that would be hidden by default, or something in it, by its own name: a link that
// leads there may be somebody else's. To hide and to list the same is a contradiction, and so is listing something in a hidden folder
// that is visible through another.
func (v *view) listedAt(at string, asked bool) (bool, error) {
	exact, inside, around := false, "", false
	for _, e := range v.entries {
		if !e.Listed || e.Target != e.Source || e.Access != readOnly && e.Access != writable {
			continue
		}
		written := v.written[e.Target]
		switch {
		case within(e.Target, at) && !asked && len(written) > 0 && !slices.ContainsFunc(written, func(path string) bool { return names(path, at) }):
			return false, fmt.Errorf("sandbox: %q leads into %s, which is hidden: list that by its own name", written[0], at)
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

// names says whether a path goes through one without links by that one's own name, not by a link to it.
func names(path, at string) bool {
	for ; path != "/"; path = filepath.Dir(path) {
		if filepath.Base(path) != filepath.Base(at) {
			continue
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && filepath.Join(dir, filepath.Base(path)) == at {
			return true
		}
	}
	return false
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
