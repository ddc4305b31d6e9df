package sandbox

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// What the sandbox takes away from the container world's allow list, each with its reason. A container is administered from
// inside; a command in a sandbox is not.
var refusedCalls = map[string]string{
	"ptrace":            "reads and steers other processes",
	"process_vm_readv":  "reads the memory of other processes",
	"process_vm_writev": "writes the memory of other processes",
	"modify_ldt":        "segment tables: old code in the kernel that programs of today do not need",
	"name_to_handle_at": "the half of the handle calls that walks out of a mount when the other half is allowed",
	"fanotify_mark":     "no use without fanotify_init, which needs a capability",
	"adjtimex":          "the host's clock",
	"clock_adjtime":     "the host's clock",
	"setgroups":         "the groups of a sandbox are what its start left",
	"epoll_ctl_old":     "never implemented",
	"epoll_wait_old":    "never implemented",
	"remap_file_pages":  "replaced by mmap; a past source of holes",
	"uretprobe":         "only the kernel's own trampoline may call it",
	"listmount":         "shows the mounts of the host's paths",
	"statmount":         "shows the mounts of the host's paths",
}

// Words of the calls' arguments, the same on amd64 and arm64.
const (
	afUnix, afInet, afInet6, afNetlink = 1, 2, 10, 16
	sockStream, sockDgram, sockSeqpkt  = 1, 2, 5
	sockTypeMask                       = 0xf // the rest are SOCK_CLOEXEC and SOCK_NONBLOCK
	protoTCP, protoUDP, netlinkRoute   = 6, 17, 0

	cloneNewAny = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 // NEWNS, CGROUP, UTS, IPC, USER, PID, NET

	setIDBits      = 0o6000
	openCreates    = 0o100 | 0o20000000 // O_CREAT, __O_TMPFILE: only then does open read its mode
	tiocsti        = 0x5412             // pushes a byte into the input of a terminal
	tioclinux      = 0x541c             // the console's paste buffer does the same
	tiocsetd       = 0x5423             // loads line disciplines
	tioccons       = 0x541d             // takes the console's output
	persLinux      = 0x0
	persLinux32    = 0x8
	persUname26    = 0x20000
	persUname26and = 0x20008
	persQuery      = 0xffffffff
)

// noSetID refuses a mode (argument n) with a set-user-id or set-group-id bit: a file made by a sandbox must not give its rights to
// whoever runs it outside.
func noSetID(n uint32) callRule {
	return callRule{[]clause{{[]test{{arg: n, mask: setIDBits, values: []uint32{0}}}, actAllow}}, actErrno | errPerm}
}

// noSetIDWhenCreating is noSetID for calls whose mode counts only with certain flags.
func noSetIDWhenCreating(flags, mode uint32) callRule {
	return callRule{[]clause{
		{[]test{{arg: flags, mask: openCreates, values: []uint32{0}}}, actAllow},
		{[]test{{arg: mode, mask: setIDBits, values: []uint32{0}}}, actAllow},
	}, actErrno | errPerm}
}

// notInit refuses a signal to process 1, the init of the sandbox.
var notInit = callRule{[]clause{{[]test{{arg: 0, values: []uint32{1}, not: true}}, actAllow}}, actErrno | errPerm}

// judgedCalls are the calls that are judged by their arguments.
var judgedCalls = map[string]callRule{
	"socket": {[]clause{
		{[]test{
			{arg: 0, values: []uint32{afInet, afInet6}},
			{arg: 1, mask: sockTypeMask, values: []uint32{sockStream, sockDgram}},
			{arg: 2, values: []uint32{0, protoTCP, protoUDP}},
		}, actAllow},
		// Interface lists of libc, Node and browsers; the network namespace is the sandbox's own and no capability is left.
		{[]test{{arg: 0, values: []uint32{afNetlink}}, {arg: 2, values: []uint32{netlinkRoute}}}, actAllow},
		{[]test{
			{arg: 0, values: []uint32{afInet, afInet6}},
			{arg: 1, mask: sockTypeMask, values: []uint32{sockStream}},
		}, actErrno | errProtoNoSupport}, // MPTCP, SCTP: programs fall back to TCP
		{[]test{{arg: 0, values: []uint32{afUnix, afInet, afInet6}}}, actErrno | errPerm},
	}, actErrno | errAddrFamilyNoSupp},
	// A datagram pair can be pointed at any socket of the host afterwards; these two cannot.
	"socketpair": {[]clause{{[]test{
		{arg: 0, values: []uint32{afUnix}},
		{arg: 1, mask: sockTypeMask, values: []uint32{sockStream, sockSeqpkt}},
	}, actAllow}}, actErrno | errPerm},

	"clone":   {[]clause{{[]test{{arg: 0, mask: cloneNewAny, values: []uint32{0}}}, actAllow}}, actErrno | errPerm},
	"clone3":  {nil, actErrno | errNoSys}, // flags behind a pointer; libraries fall back to clone
	"openat2": {nil, actErrno | errNoSys}, // mode behind a pointer; libraries fall back to openat

	"open":      noSetIDWhenCreating(1, 2),
	"openat":    noSetIDWhenCreating(2, 3),
	"creat":     noSetID(1),
	"chmod":     noSetID(1),
	"fchmod":    noSetID(1),
	"fchmodat":  noSetID(2),
	"fchmodat2": noSetID(2),
	"mkdir":     noSetID(1),
	"mkdirat":   noSetID(2),
	"mknod":     noSetID(1),
	"mknodat":   noSetID(2),

	"prlimit64": {[]clause{{[]test{{arg: 0, values: []uint32{0}}}, actAllow}}, actErrno | errPerm},
	"kill":      notInit, "rt_sigqueueinfo": notInit,

	"ioctl": {[]clause{{[]test{{arg: 1, values: []uint32{tiocsti, tioclinux, tiocsetd, tioccons}, not: true}}, actAllow}}, actErrno | errPerm},
	"personality": {[]clause{{[]test{{arg: 0, values: []uint32{persLinux, persLinux32, persUname26, persUname26and, persQuery}}}, actAllow}},
		actErrno | errPerm},
}

// sockets says which sockets a filter lets be made.
type sockets uint8

const (
	internetSockets sockets = iota // TCP and UDP in the own network namespace
	unixSockets                    // these, and unix streams, for [UnixSocketsInView]
	noSockets                      // none: there is no network namespace
)

// policy gives the rules of an architecture by call number.
func policy(a arch, which sockets) (map[uint32]callRule, error) {
	rules := map[uint32]callRule{}
	seen := map[string]bool{}
	for _, s := range listed {
		seen[s.name] = true
		n, ok := s.on(a)
		if !ok {
			continue
		}
		if _, refused := refusedCalls[s.name]; refused {
			continue
		}
		r, judged := judgedCalls[s.name]
		if !judged {
			r = callRule{answer: actAllow}
		}
		if s.name == "socket" {
			switch which {
			case internetSockets:
			case unixSockets:
				// Not datagrams: one may be pointed at any socket after it was made.
				r.clauses = append([]clause{{[]test{
					{arg: 0, values: []uint32{afUnix}},
					{arg: 1, mask: sockTypeMask, values: []uint32{sockStream, sockSeqpkt}},
				}, actAllow}}, r.clauses...)
			default:
				r = callRule{nil, actErrno | errPerm}
			}
		}
		rules[n] = r
	}
	for name := range judgedCalls {
		if !seen[name] {
			return nil, fmt.Errorf("the allow list has no call %q any more", name)
		}
	}
	return rules, nil
}

// filter is the filter of an architecture. Calls that nobody listed are refused; those newer than the list say that they do not
// exist, so that libraries fall back.
func filter(a arch, which sockets) ([]bpf.Instruction, error) {
	rules, err := policy(a, which)
	if err != nil {
		return nil, err
	}
	return compile(a, rules, actErrno|errPerm, actErrno|errNoSys)
}
