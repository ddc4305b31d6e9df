//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

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
