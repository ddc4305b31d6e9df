package sandbox

import (
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
)

//go:generate go run ../tools/seccompgen -o syscalls_gen.go

// Answers of a filter, as in linux/seccomp.h.
const (
	actKill  = 0x80000000
	actErrno = 0x00050000
	actAllow = 0x7fff0000
)

// Error numbers that are the same on amd64 and arm64. They are not taken from package syscall so that the filter is compiled
// and tested on any platform.
const (
	errPerm              = 1
	errNoSys             = 38
	errProtoNoSupport    = 93
	errAddrFamilyNoSupp  = 97
	maxFilterInstruction = 4096 // BPF_MAXINSNS
)

// Places in struct seccomp_data. Both architectures are little-endian: the low half of an argument comes first.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// arch is what a filter must know about an architecture.
type arch struct {
	name  string
	audit uint32 // AUDIT_ARCH_*: what the kernel reports for a call of this architecture
	x32   bool   // numbers above 1<<30 are calls of the x32 ABI under the same AUDIT_ARCH
}

var (
	amd64 = arch{"amd64", 0xc000003e, true}
	arm64 = arch{"arm64", 0xc00000b7, false}
)

const x32Bit = 1 << 30

// syscallNumber is a call and its number per architecture.
type syscallNumber struct {
	name         string
	amd64, arm64 int
}

func (s syscallNumber) on(a arch) (uint32, bool) {
	n := s.amd64
	if a.name == arm64.name {
		n = s.arm64
	}
	return uint32(n), n >= 0
}

// test holds when the low 32 bits of an argument, masked, are one of the values. All arguments that the rules look at are
// ints, unsigned ints or modes: the kernel reads 32 bits of them, so comparing 64 would let a set high bit pass for another value.
type test struct {
	arg    uint32
	mask   uint32
	values []uint32
	not    bool // holds when it is none of the values
}

// clause gives an answer when all its tests hold.
type clause struct {
	tests  []test
	answer uint32
}

// callRule is how one call is judged: the first clause that holds, else the answer.
type callRule struct {
	clauses []clause
	answer  uint32
}

// span is a run of call numbers that are judged alike.
type span struct {
	low  uint32
	rule callRule
}

// compile makes the filter of an architecture from rules by call number. A number that is not in rules gets refused, one above
// every number in rules gets unknown.
func compile(a arch, rules map[uint32]callRule, refused, unknown uint32) ([]bpf.Instruction, error) {
	spans := []span{{0, callRule{answer: refused}}}
	numbers := make([]uint32, 0, len(rules))
	for n := range rules {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	add := func(low uint32, r callRule) {
		last := &spans[len(spans)-1]
		switch {
		case last.low == low:
			last.rule = r
		case len(r.clauses) == 0 && len(last.rule.clauses) == 0 && r.answer == last.rule.answer:
		default:
			spans = append(spans, span{low, r})
		}
	}
	next := uint32(0)
	for _, n := range numbers {
		if n > next {
			add(next, callRule{answer: refused})
		}
		add(n, rules[n])
		next = n + 1
	}
	add(next, callRule{answer: unknown})

	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: a.audit, SkipTrue: 1},
		bpf.RetConstant{Val: actKill},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	if a.x32 {
		code = append(code,
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1},
			bpf.RetConstant{Val: actKill})
	}
	code = append(code, tree(spans)...)
	if len(code) > maxFilterInstruction {
		return nil, fmt.Errorf("the filter has %d instructions, the kernel takes %d", len(code), maxFilterInstruction)
	}
	return code, nil
}

// tree finds the span of the call number in A. Every path ends in a return.
func tree(spans []span) []bpf.Instruction {
	if len(spans) == 1 {
		return spans[0].rule.code()
	}
	mid := len(spans) / 2
	left, right := tree(spans[:mid]), tree(spans[mid:])
	head := []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: spans[mid].low, SkipTrue: uint8(len(left))}}
	if len(left) > 255 { // a conditional jump reaches 255 instructions
		head = []bpf.Instruction{
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: spans[mid].low, SkipTrue: 1},
			bpf.Jump{Skip: uint32(len(left))},
		}
	}
	return slices.Concat(head, left, right)
}

func (r callRule) code() []bpf.Instruction {
	var code []bpf.Instruction
	for _, c := range r.clauses {
		code = append(code, c.code()...)
	}
	return append(code, bpf.RetConstant{Val: r.answer})
}

// code falls through to what follows when a test does not hold.
func (c clause) code() []bpf.Instruction {
	code := []bpf.Instruction{bpf.RetConstant{Val: c.answer}}
	for _, t := range slices.Backward(c.tests) {
		code = slices.Concat(t.code(len(code)), code)
	}
	return code
}

// code skips rest instructions when the test does not hold.
func (t test) code(rest int) []bpf.Instruction {
	code := []bpf.Instruction{bpf.LoadAbsolute{Off: offArgs + 8*t.arg, Size: 4}}
	if t.mask != 0 {
		code = append(code, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: t.mask})
	}
	for i, v := range t.values {
		left := len(t.values) - i - 1
		j := bpf.JumpIf{Cond: bpf.JumpEqual, Val: v}
		if t.not {
			j.SkipTrue = uint8(left + rest)
		} else {
			j.SkipTrue = uint8(left)
			if left == 0 {
				j.SkipFalse = uint8(rest)
			}
		}
		code = append(code, j)
	}
	return code
}
