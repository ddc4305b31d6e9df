package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/internal/oauth"
	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// guardOwn keeps what hearsay itself obeys from a sandbox that it lies open to: the file in force, its pins and the folder of the
// state cannot be changed, whatever their names, and the files that secrets are read from, or kept in, cannot be seen. A record
// that could be changed from inside is an error: it grows and is rotated, so it cannot be held as it is.
func guardOwn(spec *sandbox.Spec, file *config.File) error {
	if file.Audit != nil {
		if err := recordApart(spec, file.Audit.File); err != nil {
			return err
		}
	}
	secrets := file.SecretFiles()
	obeyed := []string{file.Path, file.LockPath()}
	if state, err := config.StatePath(); err == nil { // without a home there is none
		secrets = append(secrets, oauth.DefaultDir(state), filepath.Join(state, serveToken))
		if _, err := os.Lstat(state); err == nil {
			obeyed = append(obeyed, state)
		}
	}
	for _, l := range []struct {
		from []string
		to   *[]string
	}{{obeyed, &spec.Guard}, {secrets, &spec.Hide}} {
		for _, path := range l.from {
			if path == "" {
				continue
			}
			abs, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			*l.to = append(*l.to, abs)
		}
	}
	return nil
}

// recordApart refuses an audit file in a folder that the sandbox may write to.
func recordApart(spec *sandbox.Spec, file string) error {
	writable := append([]string{spec.State}, spec.Write...)
	if spec.Preset == sandbox.ProjectRW {
		writable = append(writable, spec.Project)
	}
	at := followed(filepath.Dir(file))
	for _, folder := range writable {
		if folder == "" {
			continue
		}
		if rel, err := filepath.Rel(followed(folder), at); err == nil && filepath.IsLocal(rel) {
			return fmt.Errorf("audit.file: %s lies in %s, which the sandbox may write to: what runs inside could change the record; keep it elsewhere", file, folder)
		}
	}
	return nil
}

// followed gives a path with its links followed; what cannot be followed stays.
func followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
