//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// measure asks the kernel, from the confined thread, what holds. The report is what was found, not what was ordered; where the
// two differ, the start fails.
func (in *initer) measure(instructions int) (Report, error) {
	p := &in.plan
	r := Report{LandlockABI: p.ABI, Kernel: kernelRelease(), Notes: in.notes}
	add := func(name string, ok, off bool, detail string) error {
		switch {
		case ok:
			r.Layers = append(r.Layers, Layer{name, Enforced, detail})
		case off:
			r.Layers = append(r.Layers, Layer{name, Off, detail})
		default:
			return &LayerError{Layer: name, Err: fmt.Errorf("set, and not in force: %s", detail)}
		}
		return nil
	}
	st, err := threadStatus()
	if err != nil {
		return Report{}, layerError("start", err)
	}
	if err := add("namespaces", !p.NoNamespaces && (unix.Getpid() == 1 || p.Off.PID), p.NoNamespaces, strings.Join(namespaceKinds, ", ")); err != nil {
		return Report{}, err
	}
	detail := "own loopback, nothing else"
	switch {
	case p.NoNamespaces:
		detail = "none: no socket can be made"
	case p.Network == Egress:
		detail = "own loopback, connections are taken by the caller's proxy"
	}
	if err := add("network", !p.Off.Network, p.Off.Network, detail); err != nil {
		return Report{}, err
	}
	detail = fmt.Sprintf("%d mounts listed, root read-only", len(p.Entries))
	if p.NoNamespaces {
		detail = fmt.Sprintf("%d places listed, by Landlock alone", len(p.Entries))
	}
	if err := add("files", rootClosed() || p.NoNamespaces, p.Off.Files, detail); err != nil {
		return Report{}, err
	}
	zero := true
	sets := []string{"CapInh", "CapPrm", "CapEff", "CapAmb"}
	if !p.NoNamespaces || os.Geteuid() == 0 { // an ordinary user cannot change its bounding set; no_new_privs keeps it without effect
		sets = append(sets, "CapBnd")
	}
	for _, set := range sets {
		v, err := strconv.ParseUint(st[set], 16, 64)
		zero = zero && err == nil && v == 0
	}
	if err := add("capabilities", zero && st["NoNewPrivs"] == "1", p.Off.Caps, "none in any set, none to be gained"); err != nil {
		return Report{}, err
	}
	if err := add("landlock", landlocked(p.witness()) || p.Off.Files, p.NoLandlock || p.Off.Landlock, landlockDetail(p.ABI)); err != nil {
		return Report{}, err
	}
	allowed := map[sockets]string{internetSockets: "TCP and UDP sockets", unixSockets: "TCP, UDP and unix stream sockets", noSockets: "no sockets"}[p.Sockets]
	if err := add("seccomp", filtered(st), p.Off.Seccomp, fmt.Sprintf("allow list, %s, %d instructions, %s", allowed, instructions, native().name)); err != nil {
		return Report{}, err
	}
	r.Layers = append(r.Layers, Layer{"limits", Enforced, fmt.Sprintf("%d processes, %d open files, %s, no core files", p.Procs, p.OpenMax, p.scratchLimit())})
	return r, nil
}

func landlockDetail(abi int) string {
	d := fmt.Sprintf("ABI %d, files", abi)
	if abi >= 6 {
		d += ", signals, abstract sockets"
	}
	return d
}

// threadStatus reads the calling thread's status.
func threadStatus() (map[string]string, error) {
	data, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return nil, fmt.Errorf("reading the thread's status: %w", err)
	}
	st := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			st[k] = strings.TrimSpace(v)
		}
	}
	return st, nil
}

// rootClosed says that nothing can be made in the root, and that the read-only mount is the reason.
func rootClosed() bool {
	var st unix.Statfs_t
	return unix.Statfs("/", &st) == nil && st.Flags&unix.ST_RDONLY != 0 && st.Type == unix.TMPFS_MAGIC
}

// landlocked tries to make a file where the mounts let it and no rule does.
func landlocked(witness string) bool {
	fd, err := unix.Open(witness+"/file", unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
		return false
	}
	return errors.Is(err, unix.EACCES)
}

// filtered tries two calls that only the filter refuses with this answer.
func filtered(st map[string]string) bool {
	if st["Seccomp"] != strconv.Itoa(unix.SECCOMP_MODE_FILTER) {
		return false
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
		return false
	}
	_, _, errno := unix.Syscall(unix.SYS_OPENAT2, 0, 0, 0)
	return errors.Is(err, unix.EPERM) && errno == unix.ENOSYS
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// witness is the place of [landlocked].
func (p *plan) witness() string {
	if p.NoNamespaces {
		return p.Scratch.Witness
	}
	return witness
}

func (p *plan) scratchLimit() string {
	if p.NoNamespaces {
		return "scratch folders on disk"
	}
	return fmt.Sprintf("%d MiB in each scratch folder", p.ScratchSize>>20)
}
