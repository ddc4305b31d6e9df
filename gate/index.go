package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
)

// Bounds on what a session remembers. What does not fit is not remembered, so it grounds nothing.
const (
	maxEntries = 1 << 15 // values; a store of thousands of contacts and some pages of user's words fit
	maxSaid    = 1 << 14 // values the agent itself passed after taint; beyond it no later result grounds anything
	maxReads   = 256     // sources remembered by name
	maxWords   = 4096    // words of one trusted text
	maxRun     = 8       // words of the longest name read from running text in one piece
	maxScan    = 1 << 20 // bytes of one text searched for values
	maxNest    = 32      // depth of a structured value walked
)

// origin is a set of trusted texts that hold a value.
type origin uint8

const (
	fromFirst    origin = 1 << iota // a trusted result
	fromStore                       // the operator's store
	fromUser                        // the user's words, or what they name
	fromApproved                    // a person's approval
	fromSelf                        // the user's own address or account, as the store marks it
)

const ownWords = fromUser | fromApproved

// digest stands for a value: the state need not hold what the user said. 128 bits of SHA-256, so that no second value with
// the digest of a trusted one can be found.
type digest [16]byte

func digestOf(space, canon string) digest {
	var buf [128]byte // enough for almost every value, so that nothing is allocated
	b := append(append(append(buf[:0], space...), 0), canon...)
	sum := sha256.Sum256(b)
	return digest(sum[:len(digest{})])
}

// index maps values to who vouches for them. It is shared between states, so it is copied before it is changed.
type index map[digest]origin

// adder collects additions to an index that belongs to other states too.
type adder struct {
	old   index
	fresh index
}

func (a *adder) add(space, canon string, from origin) {
	if canon == "" {
		return
	}
	d := digestOf(space, canon)
	have, ok := a.fresh[d]
	if !ok {
		have, ok = a.old[d]
	}
	if have|from == have || !ok && len(a.old)+len(a.fresh) >= maxEntries {
		return
	}
	if a.fresh == nil {
		a.fresh = index{}
	}
	a.fresh[d] = have | from
}

// index is the sum of old and new; the old one stays as it was.
func (a *adder) index() index {
	if len(a.fresh) == 0 {
		return a.old
	}
	if len(a.old) == 0 {
		return a.fresh
	}
	sum := make(index, len(a.old)+len(a.fresh))
	maps.Copy(sum, a.old)
	maps.Copy(sum, a.fresh)
	return sum
}

// pack writes an index in a fixed order, so that equal states are equal bytes.
func (x index) pack() string {
	keys := slices.SortedFunc(maps.Keys(x), func(a, b digest) int { return bytes.Compare(a[:], b[:]) })
	out := make([]byte, 0, len(keys)*(len(digest{})+1))
	for _, k := range keys {
		out = append(append(out, k[:]...), byte(x[k]))
	}
	return base64.StdEncoding.EncodeToString(out)
}

func unpack(s string, limit int) (index, error) {
	const size = len(digest{}) + 1
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(data)%size != 0 {
		return nil, fmt.Errorf("the values of a session are damaged")
	}
	if len(data)/size > limit {
		return nil, fmt.Errorf("a session holds more than %d values", limit)
	}
	if len(data) == 0 {
		return nil, nil
	}
	x := make(index, len(data)/size)
	for ; len(data) > 0; data = data[size:] {
		x[digest(data[:size-1])] = origin(data[size-1])
	}
	return x, nil
}
