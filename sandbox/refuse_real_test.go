//go:build real && linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// refused runs a driver that must not start its command, and gives what it said.
func refused(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 125 || strings.Contains(string(out), "RAN") {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// Each namespace's limit at zero is found and named. The limits are set in a user namespace of the test's own.
func TestNamespaceLimits(t *testing.T) {
	for _, kind := range namespaceLimits {
		t.Run(kind, func(t *testing.T) {
			order, err := json.Marshal(driveOrder{Spec: Spec{Args: []string{"echo", "RAN"}}})
			must(t, err)
			cmd := exec.Command("/bin/sh", "-c", "echo 0 >/proc/sys/user/max_"+kind+"_namespaces && exec "+self(t))
			cmd.Env = []string{driveEnv + "=" + string(order), "PATH=/usr/bin:/bin"}
			cmd.Dir = "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  unix.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: someone, HostID: os.Geteuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: someone, HostID: os.Getegid(), Size: 1}},
				AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
			}
			text := refused(t, cmd)
			if !strings.Contains(text, "user.max_"+kind+"_namespaces is 0") || !strings.Contains(text, "landlock-files-no-net") {
				t.Errorf("it said %s", text)
			}
		})
	}
}

// self is this test's binary where any user can run it.
func self(t *testing.T) string {
	t.Helper()
	path := filepath.Join(folder(t, os.Geteuid()), "driver")
	data, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(path, data, 0o755))
	return path
}

// A container that hides parts of /proc does not let a new one be mounted.
func TestMaskedProc(t *testing.T) {
	repotest.Need(t, "root, to mask /proc in a mount namespace of the test", os.Geteuid() == 0)
	order, err := json.Marshal(driveOrder{Spec: Spec{Args: []string{"echo", "RAN"}}})
	must(t, err)
	cmd := exec.Command("/bin/sh", "-c", "mount --make-rprivate / && mount -t tmpfs none /proc/irq && exec setpriv --reuid "+fmt.Sprint(someone)+" --clear-groups "+self(t))
	cmd.Env = []string{driveEnv + "=" + string(order), "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if text := refused(t, cmd); !strings.Contains(text, "sandbox: proc:") || !strings.Contains(text, "systempaths=unconfined") {
		t.Errorf("it said %s", text)
	}
}

// In a sandbox no sandbox can be made, except the one without namespaces that was asked for by name.
func TestNested(t *testing.T) {
	exe := self(t)
	inner := func(s Spec) string {
		order, err := json.Marshal(driveOrder{Spec: s})
		must(t, err)
		return driveEnv + "=" + string(order)
	}
	out, exit := output(t, Spec{Args: []string{exe}, Read: []string{exe}, Env: []string{inner(Spec{Args: []string{"echo", "RAN"}})}})
	if exit.Status() != 125 || !strings.Contains(out, "sandbox: namespaces:") || !strings.Contains(out, "landlock-files-no-net") || strings.Contains(out, "RAN\n") {
		t.Errorf("%v: %s", exit, out)
	}
	repotest.Need(t, fmt.Sprintf("Landlock ABI %d", minABI), landlockABI() >= minABI)
	out, exit = output(t, Spec{Args: []string{exe}, Read: []string{exe}, Env: []string{inner(Spec{Args: []string{"echo", "RAN"}, Weaker: []Weaker{FilesByLandlockNoNetwork}})}})
	if exit.Status() != 0 || out != "RAN\n" {
		t.Errorf("without namespaces: %v: %s", exit, out)
	}
}

// A memory limit that nothing would enforce is refused.
func TestMemoryLimitNeedsACgroup(t *testing.T) {
	p, err := Start(t.Context(), Spec{Args: []string{"true"}, Limits: Limits{Memory: 64 << 20}})
	if err != nil {
		if !strings.Contains(err.Error(), "cgroup") || !strings.Contains(err.Error(), "Delegate=yes") {
			t.Errorf("%v", err)
		}
		return
	}
	defer p.Wait()
	must(t, p.Kill())
	for _, l := range p.Report().Layers {
		if l.Name == "cgroup" && strings.Contains(l.Detail, "64 MiB") {
			return
		}
	}
	t.Errorf("neither refused nor reported: %s", p.Report())
}
