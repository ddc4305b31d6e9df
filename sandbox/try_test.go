//go:build linux

package sandbox

import (
	"context"
	"io"
	"os"
	"testing"
)

func TestMain(m *testing.M) { Main(); os.Exit(m.Run()) }

func TestTry(t *testing.T) {
	p, err := Start(context.Background(), Spec{Args: []string{"sh", "-c", os.Getenv("TRY")}, Network: Egress})
	if err != nil {
		t.Fatal(err)
	}
	p.Stdin.Close()
	go func() { b, _ := io.ReadAll(p.Stdout); os.Stdout.Write(b) }()
	go func() { b, _ := io.ReadAll(p.Stderr); os.Stdout.Write(b) }()
	if err := p.Go(); err != nil {
		t.Error(err)
	}
	t.Log(p.Wait())
	t.Log("\n" + p.Report().String())
}
