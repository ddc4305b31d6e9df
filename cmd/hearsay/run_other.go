//go:build !unix

package main

import (
	"os"
	"syscall"

	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// There is no sandbox on this platform, so nothing is passed.
var passedSignals = []os.Signal{os.Interrupt}

const resizeSignal = syscall.Signal(0)

func (s *streams) resized(sig syscall.Signal, _ *sandbox.Process) bool { return sig == resizeSignal }
