//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// namespaceLimits are the sysctls that can forbid a kind of namespace.
var namespaceLimits = []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}

// preflight finds what the machine lacks before anything is started, by name. What it cannot see shows as an error of the start.
func preflight(spec *Spec) error {
	for _, kind := range namespaceLimits {
		name := "user.max_" + kind + "_namespaces"
		if sysctl(name) == "0" {
			return &LayerError{Layer: "namespaces", Err: fmt.Errorf("%s is 0: this machine allows no %s namespaces", name, kind),
				Remedy: "Set it to 64 or more, or " + withoutNamespaces}
		}
	}
	if os.Geteuid() != 0 && sysctl("kernel.unprivileged_userns_clone") == "0" {
		return &LayerError{Layer: "namespaces", Err: errors.New("kernel.unprivileged_userns_clone is 0: ordinary users may not make user namespaces"),
			Remedy: "Set it to 1, or " + withoutNamespaces}
	}
	if !spec.weaker(NoLandlock) && landlockABI() == 0 {
		return &LayerError{Layer: "landlock", Err: errors.New("the kernel has no Landlock, or it is not among the active security modules"),
			Remedy: "Use a kernel from 5.13 on and add landlock to lsm= on its command line, or run with --weaker=" + string(NoLandlock)}
	}
	if _, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}); errors.Is(err, unix.ENOSYS) {
		if st, serr := threadStatus(); serr == nil && st["Seccomp"] == "2" {
			return &LayerError{Layer: "namespaces", Err: errors.New("this process runs under a filter that refuses what a sandbox is made of: it is in a sandbox or a container already"),
				Remedy: "Start it outside, or " + withoutNamespaces}
		}
		return &LayerError{Layer: "files", Err: fmt.Errorf("this kernel (%s) has no openat2", kernelRelease()), Remedy: "Use a kernel from 5.13 on"}
	}
	return nil
}

const withoutNamespaces = "run with --weaker=" + string(FilesByLandlockNoNetwork) + ", which holds files by Landlock alone and allows no network"

func sysctl(name string) string {
	data, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// explainClone names the reason why init could not be started.
func explainClone(err error) error {
	le := &LayerError{Layer: "namespaces", Err: err}
	switch {
	case errors.Is(err, unix.EPERM) && appArmorRestricts():
		le.Err = fmt.Errorf("kernel.apparmor_restrict_unprivileged_userns is 1, and no AppArmor profile allows this program user namespaces: %w", err)
		le.Remedy = appArmorRemedy()
	case errors.Is(err, unix.EPERM):
		le.Remedy = "A container's default profile forbids new namespaces: start it with --security-opt seccomp=unconfined, or " + withoutNamespaces
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		le.Remedy = "A limit of namespaces is reached: raise user.max_*_namespaces"
	case errors.Is(err, unix.EACCES) && os.Geteuid() == 0:
		le.Remedy = "A root caller's sandbox runs as nobody, who must be able to execute this program: chmod a+rx it"
	case errors.Is(err, unix.EINVAL):
		le.Remedy = "The kernel was built without a kind of namespace that is needed (user, mount, pid, net, ipc, uts, cgroup)"
	}
	return le
}

func appArmorRestricts() bool {
	return os.Geteuid() != 0 && sysctl("kernel.apparmor_restrict_unprivileged_userns") == "1"
}

// appArmorRemedy is a profile for this one program; switching the restriction off would do it for every program of the machine.
func appArmorRemedy() string {
	exe, err := os.Executable()
	if err != nil {
		exe = "/usr/local/bin/hearsay"
	}
	return fmt.Sprintf(`Write these lines to /etc/apparmor.d/hearsay, and load them with apparmor_parser -r /etc/apparmor.d/hearsay:
    abi <abi/4.0>,
    include <tunables/global>
    profile hearsay %s flags=(unconfined) { userns, }
Leave the switch itself on: it guards every other program`, exe)
}

// withRemedy adds what to do to errors that init could only name.
func withRemedy(err error) error {
	var le *LayerError
	if !errors.As(err, &le) || le.Remedy != "" {
		return err
	}
	switch {
	case errors.Is(le.Err, unix.EPERM) && appArmorRestricts():
		// Ubuntu lets the namespace be made and takes every capability in it away.
		le.Layer = "namespaces"
		le.Err = fmt.Errorf("kernel.apparmor_restrict_unprivileged_userns is 1, and no AppArmor profile allows this program user namespaces: %w", le.Err)
		le.Remedy = appArmorRemedy()
	case errors.Is(le.Err, unix.ENOSYS):
		le.Remedy = fmt.Sprintf("This kernel (%s) is too old: use one from 5.13 on", kernelRelease())
	}
	return err
}
