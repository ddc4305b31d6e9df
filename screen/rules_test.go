package screen

import (
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

func never() bool { return false }

// findSlowly is the plain reading of the rule set: every rule whose keyword the text holds is run over all of it.
func findSlowly(set *ruleset, text string) []match {
	var found []match
	for _, r := range set.rules {
		r.once.Do(r.compile)
		if r.full == nil || !r.hasNeeds(text) || !slices.ContainsFunc(r.Keywords, func(word string) bool { return containsFold(text, word) }) {
			continue
		}
		found, _ = set.confirm(found, r, text, window{0, len(text)})
	}
	return found
}

// sample draws a text that re matches, mostly.
func sample(rng *rand.Rand, re *syntax.Regexp, b *strings.Builder) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			b.WriteRune(r)
		}
	case syntax.OpCharClass:
		// ASCII where the class has it
		var choices []rune
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1] && r < 0x7F; r++ {
				choices = append(choices, r)
			}
		}
		if len(choices) > 0 {
			b.WriteRune(choices[rng.IntN(len(choices))])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte("ab.......... 012"[rng.IntN(16)])
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			sample(rng, sub, b)
		}
	case syntax.OpAlternate:
		sample(rng, re.Sub[rng.IntN(len(re.Sub))], b)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		low, high := 0, 3
		switch re.Op {
		case syntax.OpPlus:
			low = 1
		case syntax.OpQuest:
			high = 1
		case syntax.OpRepeat:
			if low, high = re.Min, re.Max; high < 0 {
				high = low + 20
			}
		}
		for range low + rng.IntN(high-low+1) {
			sample(rng, re.Sub[0], b)
		}
	}
}

func names(found []match) string {
	var b strings.Builder
	for _, m := range found {
		fmt.Fprintf(&b, "%s %d-%d; ", m.rule.ID, m.secretStart, m.secretEnd)
	}
	return b.String()
}

// Every rule must be found among honest words by the quick search as by the slow one, and by at least one sample at all.
func TestEveryRuleIsFound(t *testing.T) {
	set := credentials()
	rng := rand.New(rand.NewPCG(1, 2))
	around := []string{"", " ", "\n", "the key of they and sk. ", "=", "\"", "x", "api: ", "漢", strings.Repeat("they asked us. ", 40)}
	for _, r := range set.rules {
		r.once.Do(r.compile)
		if r.full == nil {
			continue
		}
		tree, err := syntax.Parse(r.Regex, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		hit := 0
		for try := 0; try < 8 || hit == 0 && try < 60; try++ { // some patterns have few samples that their allow lists leave
			var b strings.Builder
			b.WriteString(around[rng.IntN(len(around))])
			b.WriteString(strings.Join(r.needs, "\n") + " ")
			if r.apart {
				b.WriteString(r.Keywords[0] + strings.Repeat(" far away", rng.IntN(200)) + "\n")
			}
			sample(rng, tree, &b)
			b.WriteString(around[rng.IntN(len(around))])
			text := b.String()
			want, got := findSlowly(set, text), set.find(text, never)
			if names(got) != names(want) {
				t.Fatalf("%s: in …%q\nquick: %s\nslow:  %s", r.ID, text[max(0, len(text)-300):], names(got), names(want))
			}
			if slices.ContainsFunc(got, func(m match) bool { return m.rule == r }) {
				hit++
			}
		}
		if hit == 0 {
			t.Errorf("%s: no sample was found", r.ID)
		}
	}
}

func TestLongSecretsAreFoundWhole(t *testing.T) {
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA3x9Kf0r2vTqUuJb7sLw4yZcVnPdQmHgEoXaSjRlWtBiCkYzM\n", 600) + "-----END RSA PRIVATE KEY-----"
	jwt := "eyJhbGciOiJIUzI1NiJ9abc.eyJzdWIiOiIxMjM0NTY3ODkwIn0" + strings.Repeat("aB3dE5fG7h", 900) + ".s5Z0q8Yx3nP1wR6tU9vB2cD4"
	token := "api_key = \"" + strings.Repeat("q9W8e7R6t5Y4u3I2o1P0+/", 500) + "\""
	for name, secret := range map[string]string{"private-key": key, "jwt": jwt, genericRule: token} {
		text := "words before\n" + secret + "\nwords after"
		want, got := findSlowly(credentials(), text), credentials().find(text, never)
		if len(got) == 0 || names(got) != names(want) {
			t.Errorf("%s: quick %s, slow %s", name, names(got), names(want))
		}
	}
}

func TestMatcherFindsWhatContainsFinds(t *testing.T) {
	words := []string{"he", "she", "his", "hers", "aa", "aaa", "sk", "key-", "s.", "ssk"}
	m := newMatcher(words)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var b strings.Builder
		for range rng.IntN(30) {
			b.WriteByte("hersiHERSaAsSkK-y.é"[rng.IntN(19)])
		}
		text := b.String()
		got := map[string]int{}
		m.each(text, func(word, start int) bool {
			if !strings.EqualFold(text[start:start+len(words[word])], words[word]) {
				t.Fatalf("%q does not start at %d in %q", words[word], start, text)
			}
			got[words[word]]++
			return true
		})
		for _, word := range words {
			n := 0
			for i := range len(text) - len(word) + 1 {
				if strings.EqualFold(text[i:i+len(word)], word) {
					n++
				}
			}
			if got[word] != n {
				t.Fatalf("%q stands %d times in %q, and was found %d times", word, n, text, got[word])
			}
		}
	}
}
