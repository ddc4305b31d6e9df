//go:build linux && (amd64 || arm64)

package sandbox

import (
	"testing"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// The words and structures are those of go-landlock's layer, which is not linked into the program.
func TestLandlockWordsAgree(t *testing.T) {
	for name, pair := range map[string][2]uint64{
		"execute": {unix.LANDLOCK_ACCESS_FS_EXECUTE, ll.AccessFSExecute}, "write file": {unix.LANDLOCK_ACCESS_FS_WRITE_FILE, ll.AccessFSWriteFile},
		"read file": {unix.LANDLOCK_ACCESS_FS_READ_FILE, ll.AccessFSReadFile}, "read dir": {unix.LANDLOCK_ACCESS_FS_READ_DIR, ll.AccessFSReadDir},
		"refer": {unix.LANDLOCK_ACCESS_FS_REFER, ll.AccessFSRefer}, "truncate": {unix.LANDLOCK_ACCESS_FS_TRUNCATE, ll.AccessFSTruncate},
		"ioctl": {unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, ll.AccessFSIoctlDev}, "resolve unix": {unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX, ll.AccessFSResolveUnix},
		"abstract sockets": {unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, ll.ScopeAbstractUnixSocket}, "signals": {unix.LANDLOCK_SCOPE_SIGNAL, ll.ScopeSignal},
		"rule type":    {unix.LANDLOCK_RULE_PATH_BENEATH, ll.RuleTypePathBeneath},
		"ruleset size": {uint64(unsafe.Sizeof(unix.LandlockRulesetAttr{})), uint64(unsafe.Sizeof(ll.RulesetAttr{}))},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %#x here, %#x there", name, pair[0], pair[1])
		}
	}
	want, err := ll.LandlockGetABIVersion()
	if err != nil {
		want = 0
	}
	if got := landlockABI(); got != want {
		t.Errorf("ABI %d here, %d there", got, want)
	}
}

// What no ABI below knows is not asked of it, and each ABI handles all that it knows.
func TestLandlockRightsByABI(t *testing.T) {
	for abi, want := range map[int]uint64{1: 1<<13 - 1, 2: 1<<14 - 1, 3: 1<<15 - 1, 4: 1<<15 - 1, 5: 1<<16 - 1, 7: 1<<16 - 1, 9: 1<<17 - 1, 12: 1<<17 - 1} {
		if got := rightsOf(abi); got != want {
			t.Errorf("ABI %d handles %#x, want %#x", abi, got, want)
		}
	}
}
