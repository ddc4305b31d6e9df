//go:build real && linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// someone is a user that exists nowhere: a fresh ordinary user.
const someone = 54321

// users are whom the suites run as: the user of the test, and a fresh ordinary one if the test may become it.
func users() []int {
	if os.Geteuid() == 0 {
		return []int{0, someone}
	}
	return []int{os.Geteuid()}
}

func called(uid int) string {
	if uid == 0 {
		return "root"
	}
	return fmt.Sprintf("ordinary user %d", uid)
}

// asUser makes a command run as a user. Its folder is / because the test's own may not be open to the user.
func asUser(cmd *exec.Cmd, uid int) *exec.Cmd {
	cmd.Dir = "/"
	if uid != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	return cmd
}

// driveTime is far above what any run takes; a run that hangs ends the test with its name.
const driveTime = 2 * time.Minute

// driver is a launcher of a sandbox as a user.
func driver(t testing.TB, uid int, o driveOrder) *exec.Cmd {
	t.Helper()
	order, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), driveTime)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = []string{driveEnv + "=" + string(order), "PATH=" + os.Getenv("PATH")}
	return asUser(cmd, uid)
}

// folder is a new folder that the user owns, open to all, removed at the end.
func folder(t testing.TB, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hearsay-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	own(t, uid, dir)
	return dir
}

func own(t testing.TB, uid int, root string) {
	t.Helper()
	if uid == os.Geteuid() {
		return
	}
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// build compiles a static program for the inside.
func build(t testing.TB, pkg, out string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, text)
	}
}

// hostListener listens on the host's loopback and fails the test when anything connects.
func hostListener(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// put writes a file and the folders to it.
func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
