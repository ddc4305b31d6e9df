package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// resolve makes each path of the file absolute: those that begin with ~/ lie below the home. Relative ones are refused, since a
// client starts the gateway in any folder, and they would mean another place with every start; pins.lock alone may be relative, to
// the file that names it.
func (f *File) resolve() error {
	var failed error
	f.paths(func(key string, at *string) {
		if *at == "" || key == "pins: lock" && !strings.HasPrefix(*at, "~") {
			return
		}
		path, err := absolute(*at)
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", key, err)
		}
		*at = path
	})
	return failed
}

// paths calls visit with each path of the file, and each secret that is read from a file (file:PATH).
func (f *File) paths(visit func(key string, at *string)) {
	f.secrets(func(key string, at *string) {
		if path, ok := strings.CutPrefix(*at, "file:"); ok {
			visit(key, &path)
			*at = "file:" + path
		}
	})
	f.secretPaths(visit)
	box := func(key string, s *Sandbox) {
		if s == nil {
			return
		}
		visit(key+"sandbox: project", &s.Project)
		visit(key+"sandbox: state", &s.State)
		for _, list := range []struct {
			key   string
			paths []string
		}{{"read", s.Read}, {"write", s.Write}, {"hide", s.Hide}} {
			for i := range list.paths {
				visit(key+"sandbox: "+list.key, &list.paths[i])
			}
		}
	}
	visit("user_key_file", &f.UserKeyFile)
	box("", f.Sandbox)
	for _, name := range f.ServerNames() {
		s, key := f.Servers[name], "servers: "+name+": "
		visit(key+"dir", &s.Dir)
		box(key, s.Sandbox)
	}
	if f.Audit != nil {
		visit("audit: file", &f.Audit.File)
	}
	if f.Pins != nil {
		visit("pins: lock", &f.Pins.Lock)
	}
	if f.Serve != nil && f.Serve.TLS != nil {
		visit("serve: tls: cert", &f.Serve.TLS.Cert)
	}
	if f.Proxy != nil && f.Proxy.TLS != nil {
		visit("proxy: tls: cert", &f.Proxy.TLS.Cert)
		visit("proxy: tls: client_ca", &f.Proxy.TLS.ClientCA)
	}
}

// secretPaths calls visit with each path of the file at which a secret lies that hearsay alone reads. The user's key is none: the agent's
// host signs with it, and may run in a sandbox.
func (f *File) secretPaths(visit func(key string, at *string)) {
	if f.Approvals != nil {
		visit("approvals: token_file", &f.Approvals.TokenFile)
	}
	if s := f.Serve; s != nil {
		visit("serve: token_file", &s.TokenFile)
		for i := range s.Clients {
			visit("serve: clients: token_file", &s.Clients[i].TokenFile)
		}
		if s.TLS != nil {
			visit("serve: tls: key", &s.TLS.Key)
		}
	}
	if f.Proxy != nil && f.Proxy.TLS != nil {
		visit("proxy: tls: key", &f.Proxy.TLS.Key)
	}
}

// secrets calls visit with each secret of the file that is written as file:PATH or env:NAME.
func (f *File) secrets(visit func(key string, at *string)) {
	for i := range f.Credentials {
		visit("credentials: secret", &f.Credentials[i].Secret)
	}
	for _, name := range f.ServerNames() {
		s, key := f.Servers[name], "servers: "+name+": "
		for _, header := range slices.Sorted(maps.Keys(s.Headers)) {
			value := s.Headers[header]
			if visit(key+"headers: "+header, &value); value != s.Headers[header] {
				s.Headers[header] = value
			}
		}
		if s.OAuth != nil {
			visit(key+"oauth: client_secret", &s.OAuth.ClientSecret)
		}
	}
	if p := f.Proxy; p != nil {
		for i := range p.Clients {
			visit("proxy: clients: password", &p.Clients[i].Password)
		}
		if p.Chain != nil {
			visit("proxy: chain: password", &p.Chain.Password)
		}
	}
}

// SecretFiles are the files that secrets of the file are read from: no sandbox shows them.
func (f *File) SecretFiles() []string {
	var files []string
	f.secretPaths(func(_ string, at *string) {
		if *at != "" {
			files = append(files, *at)
		}
	})
	f.secrets(func(_ string, at *string) {
		if path, ok := strings.CutPrefix(*at, "file:"); ok {
			files = append(files, path)
		}
	})
	return files
}

// SecretEnv names the environment variables that hold secrets, so that no child inherits them.
func (f *File) SecretEnv() []string {
	var names []string
	f.secrets(func(_ string, at *string) {
		if name, ok := strings.CutPrefix(*at, "env:"); ok {
			names = append(names, name)
		}
	})
	return names
}

// absolute reads a path: absolute, or below the home.
func absolute(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		return filepath.Join(home, rest), nil
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is relative: write an absolute path, or one that begins with ~/", path)
	}
	return path, nil
}
