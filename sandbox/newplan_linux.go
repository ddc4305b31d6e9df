//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// insidePlaces are those of a sandbox with a root of its own.
var insidePlaces = places{home: HomeDir, tmp: "/tmp", state: StateDir}

func newPlan(spec *Spec, v *view, at places) (*plan, error) {
	env, notes := environment(spec, at, os.Environ())
	v.notes = append(v.notes, notes...)
	p := &plan{
		Args: spec.Args, As: spec.as, Env: env, Dir: spec.Dir,
		UID: os.Geteuid(), GID: os.Getegid(),
		Entries: v.entries, Links: v.links, Files: systemText(spec),
		ScratchSize: orDefault(spec.Limits.Scratch, defaultScratch), Procs: orDefault(spec.Limits.Processes, defaultProcs),
		Network: spec.Network, Ports: spec.Ports, Terminal: spec.Terminal,
		NoLandlock: spec.weaker(NoLandlock), ABI: landlockABI(), Off: spec.off,
	}
	if p.NoLandlock {
		p.ABI = 0
	}
	if spec.weaker(UnixSocketsInView) {
		p.Sockets = unixSockets
	}
	if p.UID == 0 {
		p.UID, p.GID, p.Mounted = insideID, insideID, true
	}
	p.Files = append(p.Files,
		file{"/etc/passwd", fmt.Appendf(nil, "root:x:0:0:root:/root:/sbin/nologin\n%s:x:%d:%d::%s:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n", userName, p.UID, p.GID, HomeDir)},
		file{"/etc/group", fmt.Appendf(nil, "root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n", userName, p.GID)})
	var own syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own); err != nil {
		return nil, fmt.Errorf("sandbox: reading the limit of open files: %w", err)
	}
	p.OpenMax = min(orDefault(spec.Limits.Files, defaultFiles), own.Max)
	if p.Dir == "" {
		switch {
		case v.project != "":
			p.Dir = v.project
		case spec.State != "":
			p.Dir = at.state
		default:
			p.Dir = at.home
		}
	}
	var err error
	p.Namespaces, err = readNamespaces()
	return p, err
}

func orDefault(v, def uint64) uint64 {
	if v == 0 {
		return def
	}
	return v
}

// systemText are the files of /etc that the sandbox makes up.
func systemText(spec *Spec) []file {
	resolver := "# No resolver: this sandbox has no network.\n"
	if spec.Network == Egress {
		resolver = "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n"
	}
	files := []file{
		{"/etc/hosts", []byte("127.0.0.1 localhost sandbox\n::1 localhost\n")},
		{"/etc/hostname", []byte("sandbox\n")},
		{"/etc/resolv.conf", []byte(resolver)},
		{"/etc/nsswitch.conf", []byte("passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n")},
		{"/etc/host.conf", []byte("multi on\n")},
	}
	if len(spec.CA) > 0 {
		files = append(files, file{caBundle, bundle(spec.CA)})
	}
	return files
}

func (s *starter) identityNotes() []string {
	if s.plan.NoNamespaces {
		return nil
	}
	if s.plan.Mounted {
		return []string{fmt.Sprintf("the caller is root: inside it is user %d, on the host nobody (%d)", insideID, nobody)}
	}
	groups, err := os.Getgroups()
	if err != nil {
		return nil
	}
	if groups = slices.DeleteFunc(groups, func(g int) bool { return g == os.Getegid() }); len(groups) > 0 {
		return []string{fmt.Sprintf("the caller's other groups (%s) stay in force inside: only root can drop them", strings.Trim(fmt.Sprint(groups), "[]"))}
	}
	return nil
}
