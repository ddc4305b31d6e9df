//go:build real && linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// BenchmarkStart starts `true` in four ways in turn, so that noise of the machine falls on all alike, and gives the median of each:
//
//	CGO_ENABLED=0 go test -tags real -run '^$' -bench Start -benchtime 40x ./sandbox
//
// bwrap has the same mounts and namespaces, and neither seccomp, Landlock nor a listener. The program that starts itself again here is
// the test; hearsay itself is larger, which "command" includes.
func BenchmarkStart(b *testing.B) {
	bwrap, err := exec.LookPath("bwrap")
	repotest.Need(b, "bwrap (Debian package bubblewrap)", err == nil)
	dir := folder(b, os.Geteuid())
	hearsay := filepath.Join(dir, "hearsay")
	build(b, "../cmd/hearsay", hearsay)
	args := []string{"--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/home/user", "--hostname", "sandbox"}
	v, err := newView(&Spec{})
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range v.entries {
		if e.Access == readOnly {
			args = append(args, "--ro-bind", e.Source, e.Target)
		}
	}
	for _, l := range v.links {
		args = append(args, "--symlink", l.To, l.Path)
	}
	args = append(args, "true")
	ways := []struct {
		name string
		run  func() error
	}{
		{"exec", func() error { return exec.Command("true").Run() }},
		{"bwrap", func() error { return exec.Command(bwrap, args...).Run() }},
		{"process", func() error {
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer null.Close()
			p, err := Start(context.Background(), Spec{Args: []string{"true"}, Network: Egress, Stdin: null, Stdout: null, Stderr: null})
			if err != nil {
				return err
			}
			defer p.closeWayOut()
			if err := p.Go(); err != nil {
				return err
			}
			_, err = p.Wait()
			return err
		}},
		{"command", func() error { return exec.Command(hearsay, "run", "--", "true").Run() }},
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, w := range ways {
			begin := time.Now()
			if err := w.run(); err != nil {
				b.Fatalf("%s: %v", w.name, err)
			}
			took[i] = append(took[i], time.Since(begin))
		}
	}
	b.ReportMetric(0, "ns/op") // the sum of all four says nothing
	for i, w := range ways {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds())/1000, w.name+"-ms")
	}
}
