package envelope

import "golang.org/x/sys/cpu"

// vectors says that the processor has AVX2, which scan_amd64.s needs. Tests clear it to compare.
var vectors = cpu.X86.HasAVX2

//go:noescape
func scanString(s string, from, to int) int

//go:noescape
func scanBytes(s []byte, from, to int) int

//go:noescape
func seekString(s string, from, to int, t *classes) int

//go:noescape
func seekBytes(s []byte, from, to int, t *classes) int
