//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Rights by what they are for. MAKE_CHAR, MAKE_BLOCK and MAKE_SOCK are given nowhere.
const (
	mayRead  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	mayWrite = mayRead | ll.AccessFSWriteFile | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
		ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer | ll.AccessFSTruncate
	mayUseDevice = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev
	fileRights   = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev | ll.AccessFSResolveUnix
)

// landlockABI is the version the kernel has; 0 when it has none or it is switched off.
func landlockABI() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return abi
}

// rightsOf are all the file rights that an ABI knows; all of them are handled, so that what no rule gives is refused.
func rightsOf(abi int) uint64 {
	rights := uint64(ll.AccessFSRefer - 1) // ABI 1: everything before REFER
	if abi >= 2 {
		rights |= ll.AccessFSRefer
	}
	if abi >= 3 {
		rights |= ll.AccessFSTruncate
	}
	if abi >= 5 {
		rights |= ll.AccessFSIoctlDev
	}
	if abi >= 9 {
		rights |= ll.AccessFSResolveUnix
	}
	return rights
}

// domain is a Landlock rule set in the making.
type domain struct {
	fd      int
	handled uint64
}

// newDomain handles files, and with ABI 6 signals and abstract sockets across its border. Network is not handled: Landlock knows
// ports, not addresses, and the namespace knows better.
func newDomain(abi int) (domain, error) {
	attr := ll.RulesetAttr{HandledAccessFS: rightsOf(abi)}
	if abi >= 6 {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return domain{}, fmt.Errorf("making a rule set: %w", err)
	}
	return domain{fd, attr.HandledAccessFS}, nil
}

// allow gives rights beneath a path. A path that is not there gets none.
func (d domain) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	} else if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	if err := ll.LandlockAddPathBeneathRule(d.fd, &ll.PathBeneathAttr{AllowedAccess: rights & d.handled, ParentFd: fd}, 0); err != nil {
		return fmt.Errorf("adding %s: %w", path, err)
	}
	return nil
}

// enter restricts the calling thread and what it starts. Other threads of init stay outside: a domain for each of them would keep
// init from signalling what it started.
func (d domain) enter() error {
	defer unix.Close(d.fd)
	if err := ll.LandlockRestrictSelf(d.fd, 0); err != nil {
		return fmt.Errorf("entering the domain: %w", err)
	}
	return nil
}
