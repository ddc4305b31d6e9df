//go:build !race

package replay

const race = false
