package envelope

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// MaxLookalike bounds a look-alike in bytes, from its first letter to its last. It is what a stream has to hold back at most.
const MaxLookalike = 4 << 10

// letters is a set of the token's letters.
type letters uint16

const (
	isN letters = 1 << iota
	isA
	isM
	isZ
	isU
	isDash
	isT
	isR
	isS
	isE
	isD
)

// skeleton is the token, letter by letter.
var skeleton = [len(Token)]letters{isN, isA, isM, isZ, isU, isDash, isU, isN, isT, isR, isU, isS, isT, isE, isD}

const (
	zAt        = 3
	dashAt     = 5
	softHyphen = 0xAD
)

// A unit is what a reader takes as one character: a character, or an HTML reference to one.
type unit struct {
	r    rune // utf8.RuneError where there is none
	size int  // bytes
	// open: the unit is at the end of the content, and could become another if more came
	open bool
}

// readAs returns which letters of the token r is read as.
func readAs(r rune) letters {
	if r < utf8.RuneSelf {
		return asciiLetters[r]
	}
	i, ok := slices.BinarySearchFunc(confusables[:], r, func(c confusable, r rune) int { return cmp.Compare(c.r, r) })
	if !ok {
		return 0
	}
	return confusables[i].as
}

var asciiLetters = func() (table [utf8.RuneSelf]letters) {
	for i, c := range Token {
		table[c] |= skeleton[i]
		if unicode.IsLower(c) {
			table[unicode.ToUpper(c)] |= skeleton[i]
		}
	}
	return table
}()

// readAsTwo returns the two letters that r is read as, if it is one of those that hold two of the token's in a row.
func readAsTwo(r rune) (first, second letters) {
	switch r {
	case 'ﬅ', 'ﬆ':
		return isS, isT
	case '㎁':
		return isN, isA
	}
	return 0, 0
}

// isGap reports whether r shows nothing or only space: a reader sees past it.
func isGap(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7F
	}
	return unicode.Is(unicode.White_Space, r) || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r) ||
		r == 0x2800 // the empty Braille pattern
}

// matchAt reports whether a look-alike of the token starts at from, and where it stops. Where content is not whole yet, open
// says that it ended before that was decided.
func matchAt[S text](content S, from int, whole bool) (stop int, ok, open bool) {
	return matchFrom(content, from, 0, whole)
}

// matchFrom is matchAt for what a look-alike has from the i-th letter on.
func matchFrom[S text](content S, from, i int, whole bool) (stop int, ok, open bool) {
	at, softened := from, false
	for i < len(Token) && at < len(content) && (content[at] == Token[i] || content[at]|0x20 == Token[i] && i != dashAt) {
		i, at = i+1, at+1
	}
	for i < len(skeleton) {
		if at-from > MaxLookalike {
			return 0, false, false
		}
		u := unitAt(content, at, skeleton[i])
		as := readAs(u.r)
		first, second := readAsTwo(u.r)
		switch {
		case u.open && !whole:
			return 0, false, true
		case as&skeleton[i] != 0:
			i++
		case first&skeleton[i] != 0 && second&skeleton[i+1] != 0: // of the pairs, none ends with the token's last letter
			i += 2
		case at == from: // a gap is the beginning of nothing, and a run of them would be gone through from each again
			return 0, false, false
		case isGap(u.r):
			softened = softened || i == dashAt && u.r == softHyphen
		case softened && i == dashAt && as&skeleton[i+1] != 0: // a soft hyphen was the only hyphen there was
			i += 2
		case as&isR != 0 && skeleton[i] == isM: // rn is read as m
			second := unitAt(content, at+u.size, isN)
			if second.open && !whole {
				return 0, false, true
			}
			if readAs(second.r)&isN == 0 {
				return 0, false, false
			}
			u.size += second.size
			i++
		default:
			return 0, false, false
		}
		at += u.size
	}
	return at, at-from <= MaxLookalike, false
}

// startBefore returns the first place from least on where the look-alike may start that has its z at z, or -1. Without references
// there is no & to look back for.
func startBefore[S text](content S, z, least int, references bool) int {
	start := -1
	for i := zAt - 1; ; {
		u := unitBefore(content, z, skeleton[i]|isN, references)
		if u.size == 0 {
			return start
		}
		z -= u.size
		as := readAs(u.r)
		_, second := readAsTwo(u.r)
		switch {
		case as&skeleton[i] != 0:
			i--
		case second&skeleton[i] != 0: // n and a in one
			i -= 2
		case isGap(u.r):
			// A reference that shows nothing may end in the n that the token starts with: &ApplyFunctionamzu-untrusted. Where there is
			// no n before it, that one is meant.
			if last := z + u.size - 1; i == 0 && content[last]|0x20 == 'n' && last >= least {
				start = last
			}
		case as&isN != 0 && skeleton[i] == isM:
			u = unitBefore(content, z, isR, references)
			if readAs(u.r)&isR == 0 {
				return start
			}
			z -= u.size
			i--
		default:
			return start
		}
		switch {
		case z < least:
			return start
		case i < 0:
			return z
		}
	}
}

// unitAt reads the unit at i. Where a reference without a semicolon can be read in more than one way, it is read as one that
// is in want, if there is one.
func unitAt[S text](content S, i int, want letters) unit {
	rest := content[i:]
	switch {
	case len(rest) == 0:
		return unit{utf8.RuneError, 1, true}
	case rest[0] == '&':
		u := referenceAt(rest, want)
		if u.size == 0 {
			u.r, u.size = '&', 1
		}
		return u
	case rest[0] < utf8.RuneSelf:
		return unit{rune(rest[0]), 1, false}
	}
	r, size := decode(rest)
	return unit{r, size, size == len(rest) && unfinished(rest) == size}
}

// unitBefore reads the unit that ends at i: a reference if there is one that is in want or shows nothing, or a character.
func unitBefore[S text](content S, i int, want letters, references bool) unit {
	for back := 1; references && back <= min(maxReference, i); back++ {
		c := content[i-back]
		if c == '&' {
			if u := referenceAt(content[i-back:i], want); u.size == back && (readAs(u.r)&want != 0 || isGap(u.r)) {
				return u
			}
			break
		}
		if !letter(c) && (c < '0' || c > '9') && c != '#' && (c != ';' || back > 1) {
			break
		}
	}
	if i == 0 {
		return unit{r: utf8.RuneError}
	}
	if content[i-1] < utf8.RuneSelf {
		return unit{r: rune(content[i-1]), size: 1}
	}
	var four [utf8.UTFMax]byte
	n := copy(four[:], content[max(0, i-utf8.UTFMax):i])
	r, size := utf8.DecodeLastRune(four[:n])
	return unit{r: r, size: size}
}

// maxReference bounds an HTML reference in bytes. The longest name that matters has 21 letters; leading zeros are for nothing.
const maxReference = 32

// referenceAt reads the HTML reference at the start of s, with or without its semicolon; its size is 0 where there is none.
func referenceAt[S text](s S, want letters) unit {
	end := 1
	if end < len(s) && s[end] == '#' {
		end++
		base := rune(10)
		if end < len(s) && s[end]|0x20 == 'x' {
			base = 16
			end++
		}
		return numberAt(s, end, base, want)
	}
	for end < len(s) && end < maxReference && (letter(s[end]) || s[end] >= '0' && s[end] <= '9') {
		end++
	}
	open := end == len(s) && end < maxReference
	for stop := end; stop > 1; stop-- { // without its semicolon a name may run into the next word
		i, ok := slices.BinarySearchFunc(references[:], s[1:stop], func(ref reference, name S) int { return compareName(ref.name, name) })
		if !ok {
			continue
		}
		if stop == end && end < len(s) && s[end] == ';' {
			stop++
		}
		return unit{references[i].r, stop, open}
	}
	return unit{utf8.RuneError, 0, open}
}

func compareName[S text](a string, b S) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// numberAt reads the digits of a numeric reference, which start at from in s.
func numberAt[S text](s S, from int, base rune, want letters) unit {
	var r rune
	found := unit{}
	end := from
	for ; end < len(s) && end < maxReference; end++ {
		digit := rune(s[end]) - '0'
		if digit < 0 || digit > 9 {
			digit = rune(s[end]|0x20) - 'a' + 10
			if digit < 10 || digit >= base {
				break
			}
		}
		if r = min(r*base+digit, unicode.MaxRune+1); readAs(latin(r))&want != 0 {
			found = unit{latin(r), end + 1, false}
		}
	}
	switch open := end == len(s) && end < maxReference; {
	case open && end == from:
		return unit{utf8.RuneError, 0, true}
	case end == from || r > unicode.MaxRune:
		found.open = open
	case end < len(s) && s[end] == ';':
		return unit{latin(r), end + 1, false}
	case readAs(latin(r))&want != 0 || found.size == 0:
		return unit{latin(r), end, open}
	}
	return found // &#x6eamz: the digits ran into the next letter
}

// latin gives the character that HTML reads a number as: the C1 controls are windows-1252 there, of which the dashes matter.
func latin(r rune) rune {
	switch r {
	case 0x96:
		return 0x2013
	case 0x97:
		return 0x2014
	}
	return r
}
