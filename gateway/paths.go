package gateway

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxPaths bounds the paths of one call that are looked up on the disk. One more, and none that is not looked up passes.
const maxPaths = 64

// lookFor is how long the requests behind a call wait for the disk to say what its paths name: one that needs longer is far away.
const lookFor = time.Second

// lookUp finds what the paths in the arguments of a call name. The disk may be another machine's, or a program's, and not answer: the
// client is heard meanwhile, and what it asks then goes ahead of this call.
func (s *session) lookUp(f *flight, args map[string]any) map[string]string {
	found := pathsIn(args)
	if len(found) == 0 {
		return found
	}
	f.away()
	slow := time.AfterFunc(s.g.lookFor, f.passTurn)
	defer slow.Stop()
	resolvePaths(found, s.g.follow)
	return found
}

// resolvePaths finds what the paths that are its keys name, symbolic links followed, as the kernel would: a step up behind a link
// leaves the folder the link leads to. A path that cannot be followed, or is one too many, is given as "", which no rule takes for a
// path inside anything. Between this look and the server's, a link can still change; the sandbox decides then.
func resolvePaths(found map[string]string, follow func(string) string) {
	looked := 0
	for p := range found {
		if looked < maxPaths {
			found[p] = follow(p)
		}
		looked++
	}
}

// pathsIn gives the absolute paths in arguments, as keys.
func pathsIn(args map[string]any) map[string]string {
	found := map[string]string{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, sub := range v {
				walk(sub)
			}
		case []any:
			for _, sub := range v {
				walk(sub)
			}
		case string:
			if strings.HasPrefix(v, "/") {
				found[v] = ""
			}
		}
	}
	walk(args)
	return found
}

// resolvePath follows the part of a path that exists and keeps the rest, which a call may be about to make.
func resolvePath(p string) string {
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			return filepath.Join(real, rest)
		}
		p = strings.TrimRight(p, "/")
		if _, lerr := os.Lstat(p); lerr == nil {
			return "" // a link to nothing: who writes there makes what it points to
		}
		at := strings.LastIndexByte(p, '/')
		last := p[at+1:]
		if !errors.Is(err, fs.ErrNotExist) || at < 0 || last == ".." {
			return ""
		}
		rest = filepath.Join(last, rest)
		if p = p[:at]; p == "" {
			p = "/"
		}
	}
}
