package oauth

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A refresh token is spent only when there is room for the next one.
func TestAFullDiskCostsNoRefreshToken(t *testing.T) {
	if os.Getenv("HEARSAY_TEST_FULL") == "" { // the limit is the whole process's, and go test writes files too
		cmd := exec.Command(os.Args[0], "-test.run=^TestAFullDiskCostsNoRefreshToken$")
		cmd.Env = append(os.Environ(), "HEARSAY_TEST_FULL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	kept := r.kept()
	later(a, 2*time.Hour)

	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	full := was
	full.Cur = 100 // bytes: an empty file can be made, as on a full disk
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	_, err := r.call(r.transport(a))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err == nil || !strings.Contains(err.Error(), "keeping the tokens") || len(r.asked) != 1 || r.kept() != kept {
		t.Fatalf("%v, %d token requests", err, len(r.asked))
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "*.new-*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
	if status, err := r.call(r.transport(a)); status != 200 || err != nil {
		t.Errorf("when there is room again: %d, %v", status, err)
	}
}

func TestAPipeIsNoTokenFile(t *testing.T) {
	r := newRig(t)
	a := r.account()
	r.mustSignIn(a)
	paths, _ := filepath.Glob(filepath.Join(r.dir, "crm-*.json"))
	if err := os.Remove(paths[0]); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(paths[0], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.account().Status(); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}
