//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeName is the zeroth argument with which the program, started inside a sandbox, makes the attempts of Examine.
const probeName = "hearsay-sandbox-probe"

// examineTime bounds an examination; it takes a fraction of a second.
const examineTime = time.Minute

// bait is what the probe must not reach.
type bait struct {
	Secret string // a file outside
	Port   int    // a listener on the host's loopback
	PID    int    // the launcher
	NoNet  bool   // no socket at all
}

// Examine starts a sandbox with the caller's own program in it and tries a dozen ways out, and what every program needs. It plants a
// file and opens a port for the time of it. A [LayerError] says that no sandbox could be made.
func Examine(ctx context.Context, weaker ...Weaker) (Checkup, error) {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	exe, err := os.Executable()
	if err != nil {
		return Checkup{}, err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return Checkup{}, err
	}
	dir, err := os.MkdirTemp("", "hearsay-doctor-")
	if err != nil {
		return Checkup{}, err
	}
	defer os.RemoveAll(dir)
	b := bait{Secret: filepath.Join(dir, "key"), PID: os.Getpid()}
	// Open to all, in a folder that is not: what keeps the probe from it must be the sandbox.
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(b.Secret, []byte("not for you\n"), 0o644)); err != nil {
		return Checkup{}, err
	}
	host, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return Checkup{}, err
	}
	defer host.Close()
	b.Port = host.Addr().(*net.TCPAddr).Port
	spec := Spec{as: probeName, Read: []string{exe}, Network: Egress, Weaker: weaker}
	if spec.weaker(FilesByLandlockNoNetwork) {
		spec.Network, b.NoNet = NoNetwork, true
	}
	arg, err := json.Marshal(b)
	if err != nil {
		return Checkup{}, err
	}
	spec.Args = []string{exe, string(arg)}
	p, err := Start(ctx, spec)
	if err != nil {
		return Checkup{}, err
	}
	defer p.closeWayOut()
	if p.Listener() != nil {
		go greet(p.Listener())
	}
	c := Checkup{Report: p.Report()}
	if err := p.Go(); err != nil {
		_, _ = p.Wait()
		return c, err
	}
	go io.Copy(io.Discard, p.Stderr)
	dec := json.NewDecoder(io.LimitReader(p.Stdout, 1<<20))
	for {
		var k Check
		if err := dec.Decode(&k); err != nil {
			break
		}
		c.Checks = append(c.Checks, k)
	}
	exit, err := p.Wait()
	if err == nil && exit.Status() != 0 {
		err = fmt.Errorf("sandbox: the probe ended with %v", exit)
	}
	return c, err
}

// greeting is what the way out says to the probe.
const greeting = "hearsay\n"

func greet(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, greeting)
		c.Close()
	}
}

// errOpen is the answer of an attempt that succeeded.
var errOpen = errors.New("it succeeded")

// runProbe makes the attempts and prints a Check for each.
func runProbe() {
	var b bait
	if len(os.Args) != 2 || json.Unmarshal([]byte(os.Args[1]), &b) != nil {
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	for _, a := range attempts(b) {
		if a.net && b.NoNet {
			continue
		}
		k := Check{Name: a.name, Must: "be refused"}
		err := a.try()
		switch {
		case a.works:
			k.Must, k.OK, k.Answer = "work", err == nil, "works"
			if err != nil {
				k.Answer = err.Error()
			}
		case err == nil:
			k.Answer = errOpen.Error()
		default:
			k.OK, k.Answer = true, err.Error()
		}
		if out.Encode(k) != nil {
			os.Exit(2)
		}
	}
}

type probe struct {
	name  string
	works bool
	try   func() error
	net   bool // works only where there is a network
}

// rawCall makes a system call and gives its error.
func rawCall(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// attempts are a dozen ways out, one of each kind, and what must work. The suite of the tests has all of them.
func attempts(b bait) []probe {
	dial := func(addr string) error {
		c, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		text, err := io.ReadAll(io.LimitReader(c, 64))
		if err == nil && string(text) != greeting {
			err = errors.New("another listener answered")
		}
		return err
	}
	var zero [256]byte
	mem := uintptr(unsafe.Pointer(&zero))
	return []probe{
		{name: "read a key file outside", works: false, try: func() error { _, err := os.ReadFile(b.Secret); return err }},
		{name: "look into init", works: false, try: func() error { _, err := os.ReadFile("/proc/1/environ"); return err }},
		{name: "connect to a port of the host", works: false, try: func() error {
			c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", b.Port), 5*time.Second)
			if err == nil {
				c.Close()
			}
			return err
		}},
		{name: "send a datagram to the world", works: false, try: func() error {
			c, err := net.Dial("udp", "192.0.2.1:9") // of the documentation's range
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := c.Write([]byte("x")); err != nil {
				return err
			}
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
			if _, err = c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				return nil // nothing said that it did not arrive
			}
			return err
		}},
		{name: "open a unix socket", works: false, try: func() error { return rawCall(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0) }},
		{name: "signal a process outside", works: false, try: func() error { return unix.Kill(b.PID, 0) }},
		{name: "trace init", works: false, try: func() error { return unix.PtraceAttach(1) }},
		{name: "make a user namespace", works: false, try: func() error { return rawCall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }},
		{name: "mount a file system", works: false, try: func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") }},
		{name: "write into the system", works: false, try: func() error { return os.WriteFile("/usr/bin/hearsay-was-here", nil, 0o644) }},
		{name: "make a set-user-id program", works: false, try: func() error {
			f, err := os.CreateTemp("", "")
			if err != nil {
				return nil // it must be possible to make the file
			}
			defer f.Close()
			return rawCall(unix.SYS_FCHMOD, f.Fd(), 0o4755)
		}},
		{name: "type into a terminal", works: false, try: func() error { return rawCall(unix.SYS_IOCTL, 0, unix.TIOCSTI, mem) }},
		{name: "set up io_uring", works: false, try: func() error { return rawCall(unix.SYS_IO_URING_SETUP, 1, mem) }},
		{name: "add a key to the keyring", works: false, try: func() error {
			_, err := unix.AddKey("user", "x", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}},

		{name: "run a program of the system", works: true, try: func() error {
			return exec.Command("/bin/sh", "-c", "exit 0").Run()
		}},
		{name: "write in the home and in /tmp", works: true, try: func() error {
			home, err := os.UserHomeDir()
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(filepath.Join(home, "x"), nil, 0o600), os.WriteFile(filepath.Join(os.TempDir(), "x"), nil, 0o600))
		}},
		{name: "talk over the own loopback", works: true, try: func() error {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			go greet(l)
			return dial(l.Addr().String())
		}, net: true},
		{name: "reach the proxy", works: true, try: func() error { return dial(fmt.Sprintf("127.0.0.1:%d", ProxyPort)) }, net: true},
	}
}
