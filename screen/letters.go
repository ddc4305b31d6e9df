package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord bounds how far a word is followed from one of its letters, in bytes.
const maxWord = 128

const (
	// minDisguised is how many letters in another form make a text that is written so. Formulas have single ones.
	minDisguised = 8
	// Japanese text has names and abbreviations in full-width letters.
	minFullWidth = 12
)

// letters finds words of mixed alphabets, and text in letters that are others in disguise.
func letters(text string) (found []Finding) {
	start, end, count, wide := 0, 0, 0, 0
	flush := func() {
		if count >= minFullWidth || count-wide >= minDisguised {
			found = append(found, Finding{Rule: ruleDisguised, Start: start, End: end, Count: count})
		}
		count, wide = 0, 0
	}
	for at := 0; at < len(text); {
		if text[at] < utf8.RuneSelf {
			if isLetter(text[at]) || text[at] == '\n' { // ordinary letters end the run, spaces and signs do not
				flush()
			}
			at++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case r >= 0x250 && disguised(r):
			if count == 0 {
				start = at
			}
			count++
			if r >= 0xFF21 && r <= 0xFF5A {
				wide++
			}
			end = at + size
		case likeLatin(r):
			flush()
			from, to, ok := mixedWord(text, at)
			if ok {
				found = grow(found, ruleHomoglyph, from, to)
			}
			size = max(size, to-at)
		case unicode.IsLetter(r):
			flush()
		}
		at += size
	}
	flush()
	return found
}

// disguised reports whether r is a Latin letter in another form: full-width, mathematical, enclosed, raised, a small capital.
func disguised(r rune) bool {
	switch {
	case r < 0x1D00:
		return strings.ContainsRune("ɢɪɴʀʏʙʜʟʰʲʳʷʸˡˢˣ", r)
	case r >= 0xFF21 && r <= 0xFF3A, r >= 0xFF41 && r <= 0xFF5A,
		r >= 0x1D400 && r <= 0x1D6A3,
		r >= 0x249C && r <= 0x24E9, r >= 0x1F110 && r <= 0x1F189,
		r >= 0x1D00 && r <= 0x1D6A, r >= 0x1D9B && r <= 0x1DBF, r == 0x2071, r == 0x207F, r >= 0x2090 && r <= 0x209C, r == 0xA730, r == 0xA731:
		return true
	case r >= 0x2102 && r <= 0x2149:
		return unicode.IsLetter(r) && r != 0x2126 && r != 0x212A && r != 0x212B
	}
	return false
}

// likeLatin reports whether r, of another alphabet, is drawn like a Latin letter.
func likeLatin(r rune) bool {
	switch {
	case r >= 0x370 && r < 0x590:
		return strings.ContainsRune("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοϲϳ"+"асеорхуѕіјһԁԛԝѵӏьАВСЕНІЈКМОРЅТХУҮԚԜѴӀ"+"օոսհցոՏՍԼ", r)
	case r >= 0x13A0 && r <= 0x13F5:
		return true
	}
	return false
}

// mixedWord returns the word that the letter at at belongs to, if it is a word of Latin letters but for some that are only drawn so.
// A word that has letters of both alphabets and others too, such as a Latin abbreviation with a Russian ending, is none.
func mixedWord(text string, at int) (from, to int, ok bool) {
	from, to = at, at
	for from > 0 && at-from < maxWord {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if !unicode.IsLetter(r) {
			break
		}
		from -= size
	}
	for to < len(text) && to-at < maxWord {
		r, size := utf8.DecodeRuneInString(text[to:])
		if !unicode.IsLetter(r) {
			break
		}
		to += size
	}
	latin, capitals := 0, 0
	for i, r := range text[from:to] {
		switch {
		case r < utf8.RuneSelf:
			latin++
			if unicode.IsUpper(r) && i == capitals {
				capitals++
			}
		case !likeLatin(r):
			return from, to, false
		}
	}
	ending := capitals == latin && capitals > 1 && strings.ToLower(text[from+capitals:to]) == text[from+capitals:to]
	return from, to, !ending && latin > 0 && (latin > 1 || to-from > 3)
}
