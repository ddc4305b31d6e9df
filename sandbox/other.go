//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"runtime"
)

// Start refuses: there is no sandbox for this platform.
func Start(_ context.Context, spec Spec) (*Process, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	return nil, &LayerError{
		Layer:  "platform",
		Err:    fmt.Errorf("there is no sandbox for %s on %s", runtime.GOOS, runtime.GOARCH),
		Remedy: "Run it on Linux (amd64, arm64), in a virtual machine if need be",
	}
}

// Examine refuses as Start does.
func Examine(ctx context.Context, _ ...Weaker) (Checkup, error) {
	_, err := Start(ctx, Spec{Args: []string{"true"}})
	return Checkup{}, err
}
