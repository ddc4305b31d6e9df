//go:build race

package replay

// race is true in builds with the race detector, in which counting all figures would take minutes: the counting has one
// path, which the other tests take.
const race = true
