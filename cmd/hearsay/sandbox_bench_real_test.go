//go:build real && linux && (amd64 || arm64)

package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// BenchmarkSandbox starts `true` from a process with all of hearsay's packages, whose initialisation each start pays for: what a server of
// the gateway costs. The benchmark of package sandbox has the figures beside it, exec and bwrap.
func BenchmarkSandbox(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		p, err := sandbox.Start(b.Context(), sandbox.Spec{Args: []string{"true"}, Stdin: null, Stdout: null, Stderr: null})
		if err == nil {
			err = p.Go()
		}
		if err == nil {
			_, err = p.Wait()
		}
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
}
