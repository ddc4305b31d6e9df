package sandbox

import (
	"encoding/binary"
	"os/exec"
	"testing"

	"golang.org/x/net/bpf"
)

// machine runs the filter of an architecture without a kernel.
type machine struct {
	arch arch
	vm   *bpf.VM
}

func newMachine(t testing.TB, a arch, which sockets) machine {
	t.Helper()
	code, err := filter(a, which)
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(code)
	if err != nil {
		t.Fatal(err)
	}
	return machine{a, vm}
}

// call is struct seccomp_data. The VM reads words of a packet, which are big-endian; the words stand where the kernel has them.
func (m machine) call(t testing.TB, audit, nr uint32, args ...uint64) uint32 {
	t.Helper()
	var data [64]byte
	binary.BigEndian.PutUint32(data[offNumber:], nr)
	binary.BigEndian.PutUint32(data[offArch:], audit)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(a>>32))
	}
	answer, err := m.vm.Run(data[:])
	if err != nil {
		t.Fatal(err)
	}
	return uint32(answer)
}

// number finds a call that the allow list may lack.
func number(t testing.TB, a arch, name string) (uint32, bool) {
	t.Helper()
	for _, s := range listed {
		if s.name == name {
			return s.on(a)
		}
	}
	other := map[string][2]int{ // amd64, arm64
		"bpf": {321, 280}, "perf_event_open": {298, 241}, "userfaultfd": {323, 282}, "keyctl": {250, 219}, "add_key": {248, 217},
		"request_key": {249, 218}, "io_uring_setup": {425, 425}, "io_uring_enter": {426, 426}, "io_uring_register": {427, 427},
		"unshare": {272, 97}, "setns": {308, 268}, "mount": {165, 40}, "umount2": {166, 39}, "pivot_root": {155, 41}, "chroot": {161, 51},
		"move_mount": {429, 429}, "fsopen": {430, 430}, "open_tree": {428, 428}, "mount_setattr": {442, 442}, "kexec_load": {246, 104},
		"init_module": {175, 105}, "finit_module": {313, 273}, "open_by_handle_at": {304, 265}, "pidfd_getfd": {438, 438}, "kcmp": {312, 272},
		"process_madvise": {440, 440}, "syslog": {103, 116}, "acct": {163, 89}, "swapon": {167, 224}, "reboot": {169, 142},
		"quotactl": {179, 60}, "iopl": {172, -1}, "ioperm": {173, -1}, "vhangup": {153, 58}, "settimeofday": {170, 170}, "mbind": {237, 235},
		"lookup_dcookie": {212, 18}, "sethostname": {170, 161},
	}
	n, ok := other[name]
	if !ok {
		t.Fatalf("the test knows no number of %q", name)
	}
	if a.name == "arm64" {
		return uint32(n[1]), n[1] >= 0
	}
	return uint32(n[0]), n[0] >= 0
}

func TestFilterInTheVM(t *testing.T) {
	const (
		allow   = actAllow
		perm    = actErrno | errPerm
		nosys   = actErrno | errNoSys
		family  = actErrno | errAddrFamilyNoSupp
		proto   = actErrno | errProtoNoSupport
		cloexec = 0o2000000
		high    = 1 << 32 // a bit that the kernel does not read in an int
	)
	rows := []struct {
		why  string
		call string
		args []uint64
		want uint32
	}{
		{"ordinary calls pass", "read", nil, allow},
		{"ordinary calls pass", "mmap", nil, allow},
		{"ordinary calls pass", "openat", []uint64{0, 0, 0}, allow},
		{"a TCP socket", "socket", []uint64{afInet, sockStream | cloexec, 0}, allow},
		{"a UDP socket", "socket", []uint64{afInet6, sockDgram, protoUDP}, allow},
		{"no unix socket", "socket", []uint64{afUnix, sockStream, 0}, perm},
		{"no unix socket behind a high bit", "socket", []uint64{high | afUnix, sockStream, 0}, perm},
		{"no raw socket", "socket", []uint64{afInet, 3, 255}, perm},
		{"no ping socket", "socket", []uint64{afInet, sockDgram, 1}, perm},
		{"MPTCP falls back", "socket", []uint64{afInet, sockStream, 262}, proto},
		{"SCTP falls back", "socket", []uint64{afInet, sockStream, 132}, proto},
		{"interface lists", "socket", []uint64{afNetlink, 3, 0}, allow},
		{"no other netlink", "socket", []uint64{afNetlink, 3, 12}, family},
		{"no vsock", "socket", []uint64{40, sockStream, 0}, family},
		{"no kernel crypto", "socket", []uint64{38, sockSeqpkt, 0}, family},
		{"no packet socket", "socket", []uint64{17, 3, 0}, family},
		{"no xdp", "socket", []uint64{44, 3, 0}, family},
		{"a stream pair", "socketpair", []uint64{afUnix, sockStream | cloexec}, allow},
		{"a seqpacket pair", "socketpair", []uint64{afUnix, sockSeqpkt}, allow},
		{"no datagram pair", "socketpair", []uint64{afUnix, sockDgram}, perm},
		{"no datagram pair behind a high bit", "socketpair", []uint64{afUnix, high | sockDgram}, perm},
		{"a thread", "clone", []uint64{0x3d0f00}, allow},
		{"no user namespace", "clone", []uint64{0x10000000 | 17}, perm},
		{"no user namespace behind a high bit", "clone", []uint64{high | 0x10000000}, perm},
		{"no mount namespace", "clone", []uint64{0x20000}, perm},
		{"no cgroup namespace", "clone", []uint64{0x02000000}, perm},
		{"clone3 falls back", "clone3", nil, nosys},
		{"openat2 falls back", "openat2", nil, nosys},
		{"a mode", "chmod", []uint64{0, 0o755}, allow},
		{"sticky is no set-id bit", "chmod", []uint64{0, 0o1777}, allow},
		{"no set-user-id", "chmod", []uint64{0, 0o4755}, perm},
		{"no set-group-id", "fchmodat", []uint64{0, 0, 0o2755}, perm},
		{"no set-id by descriptor", "fchmod", []uint64{0, 0o4000}, perm},
		{"no set-id by fchmodat2", "fchmodat2", []uint64{0, 0, 0o4755}, perm},
		{"no set-id when created", "openat", []uint64{0, 0, 0o101, 0o4755}, perm},
		{"no set-id in a nameless file", "openat", []uint64{0, 0, 0o20200001, 0o4755}, perm},
		{"the mode of a plain open is not read", "openat", []uint64{0, 0, 0, 0o7777}, allow},
		{"no set-id by creat", "creat", []uint64{0, 0o4755}, perm},
		{"no set-id by mknod", "mknodat", []uint64{0, 0, 0o104755}, perm},
		{"own limits", "prlimit64", []uint64{0, 7}, allow},
		{"no limits of others", "prlimit64", []uint64{1, 7}, perm},
		{"no limits of others behind a high bit", "prlimit64", []uint64{high | 1, 7}, perm},
		{"signals", "kill", []uint64{17, 15}, allow},
		{"signals to the own group", "kill", []uint64{0, 15}, allow},
		{"no signal to init", "kill", []uint64{1, 9}, perm},
		{"window size", "ioctl", []uint64{0, 0x5413}, allow},
		{"no typing into a terminal", "ioctl", []uint64{0, tiocsti}, perm},
		{"no typing behind a high bit", "ioctl", []uint64{0, high | tiocsti}, perm},
		{"no pasting into the console", "ioctl", []uint64{0, tioclinux}, perm},
		{"no line discipline", "ioctl", []uint64{0, tiocsetd}, perm},
		{"the personality may be asked", "personality", []uint64{persQuery}, allow},
		{"no randomisation switch", "personality", []uint64{0x40000}, perm},
		{"no old code maps", "personality", []uint64{0x400000}, perm},
		{"no ptrace", "ptrace", nil, perm},
		{"no reading of memory", "process_vm_readv", nil, perm},
		{"no writing of memory", "process_vm_writev", nil, perm},
		{"no keys", "keyctl", nil, perm},
		{"no keys", "add_key", nil, perm},
		{"no keys", "request_key", nil, perm},
		{"no bpf", "bpf", nil, perm},
		{"no perf", "perf_event_open", nil, perm},
		{"no userfaultfd", "userfaultfd", nil, perm},
		{"no io_uring", "io_uring_setup", nil, perm},
		{"no io_uring", "io_uring_enter", nil, perm},
		{"no io_uring", "io_uring_register", nil, perm},
		{"no namespace", "unshare", []uint64{0x10000000}, perm},
		{"no namespace", "setns", nil, perm},
		{"no mount", "mount", nil, perm},
		{"no mount", "umount2", nil, perm},
		{"no mount", "move_mount", nil, perm},
		{"no mount", "fsopen", nil, perm},
		{"no mount", "open_tree", nil, perm},
		{"no mount", "mount_setattr", nil, perm},
		{"no root", "pivot_root", nil, perm},
		{"no root", "chroot", nil, perm},
		{"no module", "init_module", nil, perm},
		{"no module", "finit_module", nil, perm},
		{"no other kernel", "kexec_load", nil, perm},
		{"no handles", "open_by_handle_at", nil, perm},
		{"no descriptors of others", "pidfd_getfd", nil, perm},
		{"no comparing of kernel pointers", "kcmp", nil, perm},
		{"no kernel log", "syslog", nil, perm},
		{"no ports", "iopl", nil, perm},
		{"no ports", "ioperm", nil, perm},
	}
	for _, a := range []arch{amd64, arm64} {
		m := newMachine(t, a, internetSockets)
		for _, r := range rows {
			nr, ok := number(t, a, r.call)
			if !ok {
				continue // the architecture has no such call
			}
			if got := m.call(t, a.audit, nr, r.args...); got != r.want {
				t.Errorf("%s: %s: %s%#x answers %#x, want %#x", a.name, r.why, r.call, r.args, got, r.want)
			}
		}
		if got := m.call(t, a.audit, 5000); got != nosys {
			t.Errorf("%s: a call newer than the list answers %#x, want ENOSYS so that programs fall back", a.name, got)
		}
		for name, audit := range map[string]uint32{"i386": 0x40000003, "arm": 0x40000028, "amd64": amd64.audit, "arm64": arm64.audit, "none": 0} {
			if audit == a.audit {
				continue
			}
			for nr := range uint32(500) {
				if got := m.call(t, audit, nr); got != actKill {
					t.Fatalf("%s: call %d of architecture %s answers %#x, want kill", a.name, nr, name, got)
				}
			}
		}
		if a.x32 {
			for nr := range uint32(600) {
				if got := m.call(t, a.audit, x32Bit|nr); got != actKill {
					t.Fatalf("%s: x32 call %d answers %#x, want kill", a.name, nr, got)
				}
			}
		}
		closed := newMachine(t, a, noSockets)
		nr, _ := number(t, a, "socket")
		if got := closed.call(t, a.audit, nr, afInet, sockStream, 0); got != perm {
			t.Errorf("%s: without a network namespace a socket answers %#x, want EPERM", a.name, got)
		}
		local := newMachine(t, a, unixSockets)
		for _, r := range []struct {
			args []uint64
			want uint32
		}{
			{[]uint64{afUnix, sockStream | cloexec, 0}, allow}, {[]uint64{afUnix, sockSeqpkt, 0}, allow}, {[]uint64{afUnix, sockDgram, 0}, perm},
			{[]uint64{afUnix, high | sockDgram, 0}, perm}, {[]uint64{afInet, sockStream, 0}, allow}, {[]uint64{40, sockStream, 0}, family},
		} {
			if got := local.call(t, a.audit, nr, r.args...); got != r.want {
				t.Errorf("%s: with unix sockets, socket%#x answers %#x, want %#x", a.name, r.args, got, r.want)
			}
		}
	}
}

// Each call of the list answers as its own rule says, and each number between them is refused: the search tree finds every span.
func TestFilterMatchesItsRules(t *testing.T) {
	for _, a := range []arch{amd64, arm64} {
		rules, err := policy(a, internetSockets)
		if err != nil {
			t.Fatal(err)
		}
		highest := uint32(0)
		for n := range rules {
			highest = max(highest, n)
		}
		m := newMachine(t, a, internetSockets)
		for nr := range uint32(700) {
			want := uint32(actErrno | errPerm)
			if nr > highest {
				want = actErrno | errNoSys
			}
			if r, ok := rules[nr]; ok {
				want = judge(r, make([]uint64, 6))
			}
			if got := m.call(t, a.audit, nr, 0, 0, 0, 0, 0, 0); got != want {
				t.Errorf("%s: call %d answers %#x, want %#x", a.name, nr, got, want)
			}
		}
	}
}

// judge is the meaning of a rule, written a second time without jumps.
func judge(r callRule, args []uint64) uint32 {
	for _, c := range r.clauses {
		all := true
		for _, ts := range c.tests {
			v := uint32(args[ts.arg])
			if ts.mask != 0 {
				v &= ts.mask
			}
			in := false
			for _, w := range ts.values {
				in = in || v == w
			}
			all = all && in != ts.not
		}
		if all {
			return c.answer
		}
	}
	return r.answer
}

// The generated table is what the modules in go.mod say.
func TestSyscallTableIsCurrent(t *testing.T) {
	cmd := exec.Command("go", "run", "../tools/seccompgen", "-o", "/dev/stdout")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running the generator: %v", err)
	}
	if string(out) != string(readFile(t, "syscalls_gen.go")) {
		t.Error("syscalls_gen.go is not what tools/seccompgen writes; run go generate ./sandbox and look at the difference")
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(uint32(41), uint64(1), uint64(1), uint64(0), uint64(0))
	f.Add(uint32(56), uint64(1<<32|0x10000000), uint64(0), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, nr uint32, a0, a1, a2, a3 uint64) {
		for _, a := range []arch{amd64, arm64} {
			rules, err := policy(a, internetSockets)
			if err != nil {
				t.Fatal(err)
			}
			r, ok := rules[nr]
			if !ok {
				continue
			}
			args := []uint64{a0, a1, a2, a3, 0, 0}
			if got, want := newMachine(t, a, internetSockets).call(t, a.audit, nr, args...), judge(r, args); got != want {
				t.Errorf("%s: call %d%#x answers %#x, want %#x", a.name, nr, args, got, want)
			}
		}
	})
}
