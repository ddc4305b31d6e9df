//go:build real && linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLimits(t *testing.T) {
	script := `ulimit -n; ulimit -c; i=0; while [ $i -lt 60 ]; do sleep 1000 2>/dev/null & i=$((i+1)); done 2>/dev/null; echo unreachable`
	out, exit := output(t, Spec{Args: []string{"sh", "-c", script}, Limits: Limits{Processes: 40, Files: 64}})
	if out != "64\n0\n" || exit.Status() == 0 {
		t.Errorf("processes and files: %v, %s", exit, out)
	}
	script = `for d in /tmp $HOME /dev/shm; do dd if=/dev/zero of=$d/big bs=65536 count=64 2>/dev/null && echo "$d holds more"; rm -f $d/big; done; echo done`
	if out, _ := output(t, Spec{Args: []string{"sh", "-c", script}, Limits: Limits{Scratch: 1 << 20}}); out != "done\n" {
		t.Errorf("scratch: %s", out)
	}
}

// Programs find our certificates and the system's in one file.
func TestCertificates(t *testing.T) {
	const ours = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"
	system := 0
	for _, path := range systemBundles {
		if data, err := os.ReadFile(path); err == nil {
			system = strings.Count(string(data), "BEGIN CERTIFICATE")
			break
		}
	}
	out, _ := output(t, Spec{Args: []string{"sh", "-c", `for v in "$SSL_CERT_FILE" "$NODE_EXTRA_CA_CERTS" "$GIT_SSL_CAINFO" "$REQUESTS_CA_BUNDLE"; do grep -c 'BEGIN CERT' "$v"; grep -c '^ours$' "$v"; done; (echo x >"$SSL_CERT_FILE") 2>/dev/null && echo wrote; exit 0`}, CA: []byte(ours)})
	if want := strings.Repeat(fmt.Sprintf("%d\n1\n", system+1), 4); out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// Without Landlock by name: it runs, the report says what is off, and the mounts still hold.
func TestNoLandlockIsInTheReport(t *testing.T) {
	dir := folder(t, os.Geteuid())
	put(t, filepath.Join(dir, "secret"), "secret")
	spec := Spec{Args: []string{"sh", "-c", "cat " + dir + "/secret 2>/dev/null; (echo x >/usr/x) 2>/dev/null && echo wrote; exit 0"}, Weaker: []Weaker{NoLandlock}}
	p, err := Start(t.Context(), spec)
	must(t, err)
	r := p.Report()
	must(t, p.Kill())
	_, _ = p.Wait()
	if r.Full() || r.LandlockABI != 0 || !strings.Contains(r.String(), "landlock     off") || !strings.Contains(r.String(), "weaker mode  no-landlock") {
		t.Errorf("the report:\n%s", r)
	}
	if out, _ := output(t, spec); out != "" {
		t.Errorf("inside: %s", out)
	}
}

// What is kept is what is in the state folder, and nothing else.
func TestStateIsKept(t *testing.T) {
	state := filepath.Join(folder(t, os.Geteuid()), "new", "state")
	spec := Spec{Args: []string{"sh", "-c", `cat /state/x ~/x /tmp/x 2>/dev/null; for d in "$HEARSAY_STATE" ~ /tmp; do echo kept >$d/x; done; pwd`}, State: state}
	for i, want := range []string{"/state\n", "kept\n/state\n"} {
		if out, _ := output(t, spec); out != want {
			t.Errorf("run %d: %q, want %q", i+1, out, want)
		}
	}
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
}
