package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

const (
	maxShapeDepth   = 6  // deeper values are named by their kind alone
	maxShapeMembers = 40 // of one object or array; the rest is counted
)

// Shape describes a decoded JSON value without any of its contents but member names: "string(12)", "number", objects and
// arrays of such, cut in depth and width. Member names come from the caller of a tool, so they are cut like any string.
func Shape(v any) any { return shape(v, maxShapeDepth) }

func shape(v any, depth int) any {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case string:
		return fmt.Sprintf("string(%d)", len(v))
	case json.Number, float64, int, int64, uint64:
		return "number"
	case []any:
		if depth == 0 {
			return fmt.Sprintf("array(%d)", len(v))
		}
		out := make([]any, 0, min(len(v), maxShapeMembers)+1)
		for i, e := range v {
			if i == maxShapeMembers {
				return append(out, fmt.Sprintf("and %d more", len(v)-i))
			}
			out = append(out, shape(e, depth-1))
		}
		return out
	case map[string]any:
		if depth == 0 || len(v) > maxShapeMembers {
			return fmt.Sprintf("object(%d)", len(v))
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[cutString(k)] = shape(e, depth-1)
		}
		return out
	}
	return fmt.Sprintf("%T", v)
}

// Digest is "sha256:" and the hex SHA-256 of data: which call it was, for someone who has the call.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
