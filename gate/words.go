package gate

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// words splits a text into its words, lower case, without punctuation. A word keeps inner apostrophes, dots and hyphens out:
// "Follow-up" is two words in every text alike.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		if r < utf8.RuneSelf { // most of what is read
			return !('a' <= r && r <= 'z' || '0' <= r && r <= '9')
		}
		return !(unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
	})
}

// foldWords is a text reduced to its words, for comparisons that should rather find too much.
func foldWords(s string) string { return strings.Join(words(s), " ") }

// foldName is the canonical form of a name: its tokens in lower case, one space between them. What stands inside a token
// stays: "bob.smith", "bob_smith" and "Bob Smith" are three people.
func foldName(s string) string { return strings.Join(tokens(s), " ") }

// tokens splits a text where a name can begin or end: at spaces, commas, brackets and quotation marks, without the punctuation
// of the sentence. A genitive is cut: "Alice's" is Alice.
func tokens(s string) []string {
	out := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(",;()[]{}<>\"“”„«»|", r)
	})
	kept := out[:0]
	for _, t := range out {
		t = strings.Trim(t, "'`‘’*!?.:…")
		t = strings.TrimSuffix(strings.TrimSuffix(t, "'s"), "’s")
		if t != "" {
			kept = append(kept, t)
		}
	}
	return kept
}

// clauses cuts a text where one statement ends, so that no name is read across the border.
func clauses(s string) []string {
	var out []string
	start := 0
	for i, r := range s {
		if r == '\n' || r == '!' || r == '?' || r == ';' {
			out = append(out, s[start:i])
			start = i + 1
		}
		if r == '.' && (i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\n') {
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

// camel splits an identifier into its words: "eventId", "event_id" and "event-id" are event, id. Plurals are cut.
func camel(s string) []string {
	var b strings.Builder
	prev := rune(0)
	for _, r := range s {
		if unicode.IsUpper(r) && (unicode.IsLower(prev) || unicode.IsDigit(prev)) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		prev = r
	}
	out := words(b.String())
	for i, w := range out {
		out[i] = singular(w)
	}
	return out
}

// singular cuts the English plural, roughly: both sides of every comparison go through it.
func singular(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		return w[:len(w)-1]
	}
	return w
}

func set(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// stopWords name nobody and nothing when they stand alone.
var stopWords = set(`a about after all also an and any are as at be been before but by can could did do does for from
	get give had has have he her here him his how i if in into is it its just like make may me more most my need new no not now of off on
	one only or other our out over please put see send she should so some than that the their them then there these they this those
	to today tomorrow too two up us use very was we were what when where which who will with would yes you your
	first last next each every same both make sure them it's`)

// idWords say that a number is an identifier, not of what.
var idWords = set(`id ids identifier number no nr num key uid uuid ref code`)

// namingFields hold what people call a record.
var namingFields = set(`name title subject label filename username login nickname nick slug summary displayname`)

var months = map[string]int{
	"january": 1, "jan": 1, "february": 2, "feb": 2, "march": 3, "mar": 3, "april": 4, "apr": 4, "may": 5, "june": 6, "jun": 6,
	"july": 7, "jul": 7, "august": 8, "aug": 8, "september": 9, "sep": 9, "sept": 9, "october": 10, "oct": 10,
	"november": 11, "nov": 11, "december": 12, "dec": 12,
}

// topLevel holds common generic top-level domains and the reserved ones; two-letter endings count by their length.
var topLevel = set(`com org net info biz name pro edu gov mil int arpa example test invalid localhost local internal onion lan home corp
	app dev page web site online store shop xyz top club live life world today tech cloud digital email network media news blog press
	agency company solutions services support systems software center team group global international business finance financial
	bank money cash credit loan loans insurance capital fund exchange trade trading market markets marketing consulting studio
	design art photo photos pictures video games game fun icu vip win bid men work works jobs academy education school college
	university health care clinic hospital dental doctor legal law attorney tax accountant travel hotel hotels tours flights
	restaurant cafe bar pizza kitchen recipes fashion shoes jewelry gift gifts flowers toys pet dog family love date dating
	social chat wiki link click download stream zip mov foundation charity church community city town house homes land estate
	properties rent rentals auto cars car bike taxi energy green eco solar space zone area place directory guide review reviews
	report expert guru ninja rocks cool best one mobi tel asia africa london paris berlin tokyo nyc eus lat wtf lol sucks
	monster quest cyou buzz rest sbs cfd bond beauty hair skin makeup mom autos boats yachts motorcycles ltd llc inc gmbh sarl
	google amazon apple microsoft cam host hosting domains website server codes tools run security protection vpn download fit`)

// fileEnding holds two-letter file endings that are no country's domain; longer endings are hosts only where topLevel says so.
var fileEnding = set(`js ts go db gz xz cs rb hs kt vb js 7z bz`)
