//go:build !unix

package main

import "github.com/seed-4e9f7b04/hearsay/sandbox"

// terminate ends a sandbox, which this system has none of.
func terminate(p *sandbox.Process) { p.Kill() }
