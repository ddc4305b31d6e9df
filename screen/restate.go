package screen

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-4e9f7b04/hearsay/envelope"
)

// minRestated is the length, in characters, from which a result that equals an argument says that nothing was done: shorter
// ones are equal by chance ("true", a name, a path).
const minRestated = 16

// restates finds a result that is one of the call's own arguments and nothing else: the words of whoever called, handed back as if
// somebody else had said them.
func (s *Set) restates(_ context.Context, in *subject) ([]Finding, error) {
	if in.Failed || len(in.Request) == 0 || s.passes(in.Tool) {
		return nil, nil
	}
	texts := []string{in.Text}
	if body, ok := envelope.Body(in.Text); ok {
		texts = append(texts, body)
	}
	for _, argument := range in.Request {
		if slices.ContainsFunc(texts, func(text string) bool { return sameWords(text, argument) >= minRestated }) {
			return []Finding{{Rule: "equals-argument", Start: 0, End: len(in.Text)}}, nil
		}
	}
	return nil, nil
}

func (s *Set) passes(tool string) bool {
	return slices.ContainsFunc(s.passthrough, func(name string) bool {
		if begin, ok := strings.CutSuffix(name, "*"); ok {
			return strings.HasPrefix(tool, begin)
		}
		return name == tool
	})
}

// sameWords returns how many characters a and b have, with one space for each run of white space between words, if they are the
// same then; otherwise 0.
func sameWords(a, b string) int {
	n := 0
	for {
		wordA, restA := cutWord(a)
		wordB, restB := cutWord(b)
		switch {
		case wordA != wordB:
			return 0
		case wordA == "":
			return max(0, n-1) // there is no space behind the last word
		}
		n += utf8.RuneCountInString(wordA) + 1
		a, b = restA, restB
	}
}

// cutWord returns the first word of s and what follows it.
func cutWord(s string) (word, rest string) {
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	if end := strings.IndexFunc(s, unicode.IsSpace); end >= 0 {
		return s[:end], s[end:]
	}
	return s, ""
}
