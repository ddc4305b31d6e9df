//go:build !amd64

package envelope

// Without vector instructions all goes the way of wellFormed and search.
var vectors = false

func scanString(_ string, from, _ int) int { return from }
func scanBytes(_ []byte, from, _ int) int  { return from }

func seekString(_ string, from, _ int, _ *classes) int { return from }
func seekBytes(_ []byte, from, _ int, _ *classes) int  { return from }
