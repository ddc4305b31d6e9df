package main

import (
	"path/filepath"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// guardOwn keeps what hearsay itself obeys from a sandbox that it lies open to: the file in force and its pins cannot be changed,
// whatever their names, and the files that secrets are read from cannot be seen.
func guardOwn(spec *sandbox.Spec, file *config.File) error {
	var secrets []string
	for _, c := range file.Credentials {
		if path, ok := strings.CutPrefix(c.Secret, "file:"); ok {
			secrets = append(secrets, path)
		}
	}
	for _, s := range file.Servers {
		for _, from := range s.Headers {
			if path, ok := strings.CutPrefix(from, "file:"); ok {
				secrets = append(secrets, path)
			}
		}
		if s.OAuth != nil {
			if path, ok := strings.CutPrefix(s.OAuth.ClientSecret, "file:"); ok {
				secrets = append(secrets, path)
			}
		}
	}
	for _, l := range []struct {
		from []string
		to   *[]string
	}{{[]string{file.Path, file.LockPath()}, &spec.Guard}, {secrets, &spec.Hide}} {
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
