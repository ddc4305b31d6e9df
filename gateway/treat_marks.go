package gateway

import (
	"strings"
	"unicode"
)

// maxMarks is more combining marks than any language puts on one letter; a longer run spills over the lines around it.
const maxMarks = 8

func isMark(r rune) bool { return unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) }

// markFlood reports a letter under more marks than that.
func markFlood(s string) bool { return len(s) > maxMarks && thin(s) != s }

// thin takes away the marks beyond maxMarks of each run.
func thin(s string) string {
	run := 0
	return strings.Map(func(r rune) rune {
		if run++; !isMark(r) {
			run = 0
		}
		if run > maxMarks {
			return -1
		}
		return r
	}, s)
}
