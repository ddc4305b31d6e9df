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

// ruleTables are what the scan looks up, each by half a byte: the rules of pairs that a byte, or the one before it, may break.
//
//lint:ignore U1000 scan_amd64.s reads it
var ruleTables = func() (t [3][16]byte) {
	for rule, pair := range pairs {
		for half := range 16 {
			for i, set := range [...]uint16{pair.high, pair.low, pair.second} {
				if set>>half&1 != 0 {
					t[i][half] |= 1 << rule
				}
			}
		}
	}
	return t
}()

// pairs are the rules of UTF-8 on two bytes in a row, each by the sets of the upper and lower halves of the first byte and of
// the upper half of the second that it forbids together (Unicode 15.0, table 3-7). The way to look them up is that of Keiser and
// Lemire, "Validating UTF-8 in less than one instruction per byte" (arXiv:2010.03090).
var pairs = [8]struct{ high, low, second uint16 }{
	{0xF000, 0xFFFF, 0xF0FF}, // a first byte, and nothing that goes on
	{0x00FF, 0xFFFF, 0x0F00}, // ASCII that is gone on with
	{0x4000, 0x0001, 0x0300}, // E0 80..9F: overlong
	{0x8000, 0xFFF0, 0x0E00}, // F4..FF 90..BF: beyond U+10FFFF
	{0x4000, 0x2000, 0x0C00}, // ED A0..BF: a surrogate
	{0x1000, 0x0003, 0x0F00}, // C0 or C1: overlong
	{0x8000, 0xFFE1, 0x0100}, // F0 80..8F: overlong; F5..FF 80..8F: beyond U+10FFFF
	{0x0F00, 0xFFFF, 0x0F00}, // two that go on: right in the third and fourth place, wrong elsewhere
}
