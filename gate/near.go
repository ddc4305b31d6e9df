package gate

import (
	"fmt"
	"slices"
	"strings"
)

// didYouMean is "; did you mean x?" for the name nearest to s, or "" where none is near.
func didYouMean(s string, names []string) string {
	best, bestDist := "", 1+max(1, len(s)/3)
	for _, n := range names {
		if d := distance(strings.ToLower(s), strings.ToLower(n), bestDist); d < bestDist {
			best, bestDist = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance counts the insertions, deletions, replacements and swaps of neighbours between a and b; limit where it is at
// least that.
func distance(a, b string, limit int) int {
	if diff := len(a) - len(b); diff >= limit || -diff >= limit {
		return limit
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		if slices.Min(cur) >= limit {
			return limit
		}
		before, prev, cur = prev, cur, before
	}
	return min(prev[len(b)], limit)
}
