package approve

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Segment is a stretch of text as a person should see it. Mark says what is odd about it, "" nothing.
type Segment struct {
	Text string
	Mark string // escape, spaces, scripts
	Note string // for a person: what it is
}

// longRun is the number of spaces in a row from which they are counted rather than shown: padding moves the rest out of sight.
const longRun = 4

// Segments splits s into what can be shown as it is and what must be made visible: control, format and other characters
// without a shape of their own, spaces that are not U+0020, long runs of spaces, and words that mix scripts.
func Segments(s string) []Segment {
	var segs []Segment
	plain := func(text string) {
		if text == "" {
			return
		}
		if n := len(segs); n > 0 && segs[n-1].Mark == "" {
			segs[n-1].Text += text
			return
		}
		segs = append(segs, Segment{Text: text})
	}
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			segs = append(segs, Segment{fmt.Sprintf(`\x%02x`, s[0]), "escape", "a byte that is not UTF-8"})
		case r == ' ':
			for size < len(s) && s[size] == ' ' {
				size++
			}
			if size < longRun {
				plain(s[:size])
			} else {
				segs = append(segs, Segment{fmt.Sprintf("[%d spaces]", size), "spaces", "a run of spaces"})
			}
		case r == '\n':
			segs = append(segs, Segment{`\n`, "escape", "a line break"})
		case hidden(r):
			segs = append(segs, Segment{escapeRune(r), "escape", "a character that does not show"})
		case unicode.IsLetter(r):
			size = wordLen(s)
			if scripts := scriptsOf(s[:size]); len(scripts) > 1 {
				segs = append(segs, Segment{s[:size], "scripts", "mixes " + strings.Join(scripts, " and ")})
			} else {
				plain(s[:size])
			}
		default:
			plain(s[:size])
		}
		s = s[size:]
	}
	return segs
}

// Visible is s on one line with everything of [Segments] written out, for a terminal or a log.
func Visible(s string) string {
	var b strings.Builder
	for _, seg := range Segments(s) {
		if seg.Mark == "" {
			b.WriteString(strings.ReplaceAll(seg.Text, `\`, `\\`)) // so that a written-out escape cannot be forged
			continue
		}
		b.WriteString(seg.Text)
		if seg.Mark == "scripts" {
			fmt.Fprintf(&b, "[%s]", seg.Note)
		}
	}
	return b.String()
}

func escapeRune(r rune) string {
	switch r {
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	}
	return fmt.Sprintf(`\u{%04X}`, r)
}

// hidden reports whether r has no ink of its own, or changes how other characters show.
func hidden(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Zs, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == '\u2800'
}

func wordLen(s string) int {
	n := 0
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) || hidden(r) {
			break
		}
		n += size
	}
	return n
}

// lookAlike are the scripts whose letters pass for one another.
var lookAlike = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian},
	{"Cherokee", unicode.Cherokee}, {"Georgian", unicode.Georgian}, {"Coptic", unicode.Coptic}, {"Lisu", unicode.Lisu},
}

func scriptsOf(word string) []string {
	var found []string
	for _, script := range lookAlike {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(script.table, r) }) {
			found = append(found, script.name)
		}
	}
	return found
}
