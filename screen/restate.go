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
	texts := []string{fold(in.Text)}
	if body, ok := envelope.Body(in.Text); ok {
		texts = append(texts, fold(body))
	}
	for _, argument := range in.Request {
		folded := fold(argument)
		if utf8.RuneCountInString(folded) >= minRestated && slices.Contains(texts, folded) {
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

// fold makes every run of white space one space, and drops it at the ends.
func fold(s string) string { return strings.Join(strings.FieldsFunc(s, unicode.IsSpace), " ") }
