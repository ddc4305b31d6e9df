// Command escape runs inside a sandbox and tries to get out. It prints one JSON object for each attempt; it judges nothing but
// whether the answer is one of those that the attempt names. Its only argument is a JSON object that says where the baits are.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// baits are things outside that the sandbox must not reach.
type baits struct {
	Secret    string // readable file outside
	Marker    string // what is in it, and in the launcher's environment
	Home      string // the launcher's home
	HostPID   int    // a process of the same user outside
	HostPort  int    // a TCP listener on the host's loopback
	HostAddr  string // an address of the host, "" when it has none
	Abstract  string // an abstract socket of the host
	Read      string // listed folder, read-only, with a file "file"
	Project   string // listed folder, writable, a repository
	HiddenDir string // hidden folder inside Project
	HiddenRef string // a link to a hidden folder
	NearOnly  bool   // without a network namespace: try nothing beyond the host itself
	Mode      string // what a child of this program does instead of the suite
}

var bait baits

// attempt is one try. It returns nil when it succeeded, which is an escape.
type attempt struct {
	kind, name string
	want       []error // the answers that say it was held
	try        func() error
}

type result struct {
	Kind, Name, Answer string
	Held               bool
}

var attempts []attempt

func add(kind, name string, want []error, try func() error) {
	attempts = append(attempts, attempt{kind, name, want, try})
}

func errs(e ...error) []error { return e }

// errNothing is the answer of an attempt that looks at something and finds nothing.
var errNothing = errors.New("nothing there")

func main() {
	if err := json.Unmarshal([]byte(os.Args[1]), &bait); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if bait.Mode != "" {
		child()
		return
	}
	files()
	identity()
	sockets()
	processes()
	namespaces()
	kernel()
	foreign()
	out := json.NewEncoder(os.Stdout)
	for _, a := range attempts {
		err := a.try()
		r := result{Kind: a.kind, Name: a.name, Answer: "SUCCEEDED"}
		if err != nil {
			r.Answer = err.Error()
			r.Held = slices.ContainsFunc(a.want, func(w error) bool { return errors.Is(err, w) })
		}
		if err := out.Encode(r); err != nil {
			os.Exit(2)
		}
	}
}

// call makes a system call and gives its error.
func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	return nil
}

// unless makes the answer of a look: nil, an escape, when what it saw is bad.
func unless(bad bool, what string) error {
	if bad {
		return nil
	}
	return fmt.Errorf("%w: %s", errNothing, what)
}

// inChild runs this program again to do something that may kill it, and gives how it ended: nil when it lived, its exit code as
// an error number otherwise.
func inChild(mode string) error {
	b := bait
	b.Mode = mode
	arg, _ := json.Marshal(b)
	cmd := exec.Command("/proc/self/exe", string(arg))
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
			return killed(ws.Signal())
		}
		return unix.Errno(exit.ExitCode())
	}
	return err
}

// killed is the signal that ended a child.
type killed syscall.Signal

func (k killed) Error() string { return "killed: " + syscall.Signal(k).String() }

func child() {
	switch bait.Mode {
	case "int80":
		int80()
	case "x32":
		x32()
	case "traceme":
		if err := call(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0); err != nil {
			os.Exit(int(err.(unix.Errno)))
		}
	}
}

func contains(path, text string) bool {
	data, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(data), text)
}
