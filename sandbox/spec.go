package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of a Spec: far above real use, far below what would exhaust the kernel's tables.
const (
	MaxPaths = 128       // listed paths of one kind
	MaxEnv   = 1024      // environment entries
	MaxBytes = 1 << 20   // bytes of arguments and environment together; the kernel's own limit is about 2 MiB
	MaxPorts = 32        // transparent ports
	MaxCA    = 256 << 10 // bytes of additional certificates
)

// Preset is a file view to start from.
type Preset uint8

const (
	// Server sees the system read-only, its own state folder, and no project. It is the zero value.
	Server Preset = iota
	// ProjectRO also sees the project, read-only.
	ProjectRO
	// ProjectRW may also change the project, except for the paths that [Protected] names.
	ProjectRW
)

var presetNames = []string{"server", "project-ro", "project-rw"}

// ParsePreset reads the spelling that the configuration and the command line use.
func ParsePreset(name string) (Preset, error) {
	i := slices.Index(presetNames, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown preset %q; it is one of %s", name, strings.Join(presetNames, ", "))
	}
	return Preset(i), nil
}

func (p Preset) String() string {
	if int(p) < len(presetNames) {
		return presetNames[p]
	}
	return "unknown"
}

// Network is the way out.
type Network uint8

const (
	// NoNetwork leaves a loopback of its own and nothing else. It is the zero value.
	NoNetwork Network = iota
	// Egress adds one listener on the sandbox's loopback, told to programs by proxy variables, and listeners that programs
	// without regard for these variables reach: the caller serves them all, from outside.
	Egress
)

// Weaker names a layer that the operator gives up. The names are long because they are read in logs.
type Weaker string

const (
	// NoLandlock starts where the kernel has no Landlock: the mounts alone hold the file view.
	NoLandlock Weaker = "no-landlock"
	// UnixSocketsInView lets stream sockets of the unix family be made, as browsers and some languages' process pools need them.
	// They reach what listens inside, and what listens in a listed folder outside: list none with a socket in it.
	UnixSocketsInView Weaker = "unix-sockets-in-view"
	// FilesByLandlockNoNetwork starts where namespaces are refused (containers, hardened hosts): Landlock alone holds the
	// file view, and the seccomp filter refuses every socket. Processes of the same user are visible in /proc, and a
	// process that left its session is found by a search at the end, not by the kernel.
	FilesByLandlockNoNetwork Weaker = "landlock-files-no-net"
)

// WeakerModes lists every Weaker.
var WeakerModes = []Weaker{NoLandlock, UnixSocketsInView, FilesByLandlockNoNetwork}

// ParseWeaker reads a name of a weaker mode.
func ParseWeaker(name string) (Weaker, error) {
	if !slices.Contains(WeakerModes, Weaker(name)) {
		return "", fmt.Errorf("unknown weaker mode %q; it is one of %q", name, WeakerModes)
	}
	return Weaker(name), nil
}

// Limits bound what the processes inside may use. Zero is the default of each.
type Limits struct {
	Memory    uint64 // bytes, by cgroup; needs a delegated cgroup v2; default: no limit
	Processes uint64 // processes and threads; default 4096
	Files     uint64 // open files of one process; default 65536 or the caller's own limit if that is lower
	Scratch   uint64 // bytes in each of /tmp, HOME and /dev/shm, which are memory; default 2 GiB
}

// Spec is what a sandbox holds. The zero value of every field is the strictest.
type Spec struct {
	// Args is the command. A name without a slash is looked up in the PATH inside.
	Args []string

	// Dir is the working folder inside; by default the project, else the state folder, else HOME.
	Dir string

	// Env holds KEY=value entries of the operator's. They come after the allow-listed base and win over it. Entries that
	// make loaders and interpreters run code are kept and stand in the report.
	Env []string

	Preset  Preset
	Project string // absolute path on the host, the same inside; needs a project preset

	// State is a folder of the host that is kept between runs, mounted for writing at [StateDir]. It is created with mode
	// 0700 when absent. "" means that nothing is kept.
	State string

	Read  []string // absolute paths of the host, visible read-only at the same place
	Write []string // absolute paths of the host, writable at the same place
	Hide  []string // absolute paths that stay invisible inside anything listed above; see also [Hidden]

	// Guard holds absolute paths of the host that stay as they are inside anything writable, as those of [Protected] do: what the
	// caller itself obeys. An absent one is held.
	Guard []string

	Network Network
	// Ports are the TCP ports besides 80 and 443 on which connections of programs that know no proxy are taken.
	Ports []uint16

	// CA holds PEM certificates that programs inside trust besides the system's.
	CA []byte

	// Terminal gives the command a terminal of its own; [Process.Terminal] is the side to relay.
	Terminal bool
	// Stdin, Stdout and Stderr are given to the command as they are, which is safe for pipes and /dev/null only: through
	// an open file a process may reopen it. nil makes a pipe whose other end is in [Process]. Unused with Terminal.
	Stdin, Stdout, Stderr *os.File

	Limits Limits
	Weaker []Weaker

	as  string // the zeroth argument, when it is not the command
	off layers // for the tests alone: the escape suite must fail when a layer is switched off
}

// layers switched off by a test.
type layers struct {
	Files, Landlock, Seccomp, Caps, Network, PID bool `json:",omitempty"`
}

// StateDir is where the state folder is inside.
const StateDir = "/state"

// HomeDir is the home inside: empty at each start, in memory.
const HomeDir = "/home/user"

func (s *Spec) weaker(w Weaker) bool { return slices.Contains(s.Weaker, w) }

// validate checks the form of the Spec. What the paths are is looked at by the start.
func (s *Spec) validate() error {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return errors.New("sandbox: no command")
	}
	if len(s.Env) > MaxEnv {
		return fmt.Errorf("sandbox: more than %d environment entries", MaxEnv)
	}
	size := 0
	for _, a := range s.Args {
		if strings.IndexByte(a, 0) >= 0 {
			return errors.New("sandbox: an argument contains a zero byte")
		}
		size += len(a) + 1
	}
	for _, e := range s.Env {
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == "" || strings.IndexByte(e, 0) >= 0 {
			return fmt.Errorf("sandbox: environment entry %q is not NAME=value", name) // the value may be a secret
		}
		size += len(e) + 1
	}
	if size > MaxBytes {
		return fmt.Errorf("sandbox: arguments and environment are larger than %d bytes", MaxBytes)
	}
	if s.Preset > ProjectRW {
		return errors.New("sandbox: unknown preset")
	}
	if (s.Project != "") != (s.Preset != Server) {
		return fmt.Errorf("sandbox: preset %s and project %q do not go together: a project preset needs a project, the server preset has none", s.Preset, s.Project)
	}
	if s.Network > Egress {
		return errors.New("sandbox: unknown network")
	}
	if len(s.Ports) > MaxPorts {
		return fmt.Errorf("sandbox: more than %d ports", MaxPorts)
	}
	if slices.Contains(s.Ports, 0) {
		return errors.New("sandbox: port 0")
	}
	if len(s.CA) > MaxCA {
		return fmt.Errorf("sandbox: more than %d bytes of certificates", MaxCA)
	}
	for _, w := range s.Weaker {
		if _, err := ParseWeaker(string(w)); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	for kind, paths := range map[string][]string{"read": s.Read, "write": s.Write, "hide": s.Hide, "guard": s.Guard} {
		if len(paths) > MaxPaths {
			return fmt.Errorf("sandbox: more than %d paths to %s", MaxPaths, kind)
		}
		for _, p := range paths {
			if err := checkPath(p); err != nil {
				return fmt.Errorf("sandbox: path to %s: %w", kind, err)
			}
		}
	}
	for kind, p := range map[string]string{"project": s.Project, "state folder": s.State, "working folder": s.Dir} {
		if p == "" {
			continue
		}
		if err := checkPath(p); err != nil {
			return fmt.Errorf("sandbox: %s: %w", kind, err)
		}
	}
	return nil
}

func checkPath(p string) error {
	if !filepath.IsAbs(p) || strings.IndexByte(p, 0) >= 0 {
		return fmt.Errorf("%q is not an absolute path", p)
	}
	return nil
}
