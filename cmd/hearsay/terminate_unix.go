//go:build unix

package main

import (
	"syscall"

	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// terminate asks the command of a sandbox to end.
func terminate(p *sandbox.Process) { p.Signal(syscall.SIGTERM) }
