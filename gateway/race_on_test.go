//go:build race

package gateway

// underRace says that memory holds the race detector's own books too, several times what the program takes.
const underRace = true
