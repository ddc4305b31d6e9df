package sandbox

import (
	"context"
	"fmt"
	"runtime"
)

// Main must be called first in main.
func Main() {}

// Start makes a sandbox.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	return nil, &LayerError{Layer: "platform", Err: fmt.Errorf("there is no sandbox for %s/%s yet", runtime.GOOS, runtime.GOARCH)}
}
