package envelope

import "unicode/utf8"

// classes are up to eight kinds of four bytes in a row, of which a vector scan finds the first. Of each of the four bytes the upper and
// the lower half are looked up; the kinds that all eight tables have in common are those it may be. So a kind is a product of
// sets of halves, and may hold more than what it was made of, never less.
type classes [8][16]byte

// Which of the four bytes: the first of its two tables. The place that is looked for is that of byteAt.
const (
	byteBefore = 2 * iota
	byteAt
	byteAfter
	byteThird
)

// add lets a kind have b as that byte.
func (t *classes) add(kind, which int, b byte) {
	t[which][b>>4] |= 1 << kind
	t[which+1][b&0xF] |= 1 << kind
}

// addAny lets a kind have any byte as these.
func (t *classes) addAny(kind int, which ...int) {
	for _, w := range which {
		for half := range 16 {
			t[w][half] |= 1 << kind
			t[w+1][half] |= 1 << kind
		}
	}
}

// hold reports whether b may be byteAt of one of the kinds.
func (t *classes) hold(b byte) bool { return t[byteAt][b>>4]&t[byteAt+1][b&0xF] != 0 }

// seekClass returns the first place in content[from:to] that may be of one of the kinds, or to. At both ends of content only the byte
// at the place is looked at. It may be called only with vectors.
func seekClass[S text](content S, from, to int, t *classes) int {
	if from == 0 && to > 0 {
		if t.hold(content[0]) {
			return 0
		}
		from = 1
	}
	if inner := min(to, len(content)-2); inner-from >= scanBlock {
		switch s := any(content).(type) {
		case string:
			from = seekString(s, from, inner, t)
		case []byte:
			from = seekBytes(s, from, inner, t)
		}
	}
	for from < to && !t.hold(content[from]) {
		from++
	}
	return from
}

// zAfterM are the marks that can follow an m; zAnywhere is for where a reference just before may be the m.
var zAfterM, zAnywhere = zClasses(false), zClasses(true)

func zClasses(anywhere bool) *classes {
	const (
		zAfterLetter = iota
		zAfterGap
		amp
		wide // and those after it: characters of more than one byte, by the first
	)
	t := new(classes)
	for _, b := range []byte("zZ") {
		t.add(zAfterLetter, byteAt, b)
		t.add(zAfterGap, byteAt, b)
	}
	for _, b := range []byte("mMnN") {
		t.add(zAfterLetter, byteBefore, b)
	}
	for b := range 0x100 {
		if b <= ' ' || b >= 0x7F {
			t.add(zAfterGap, byteBefore, byte(b))
		}
	}
	if anywhere {
		t.addAny(zAfterLetter, byteBefore)
	}
	t.addAny(zAfterLetter, byteAfter, byteThird)
	t.addAny(zAfterGap, byteAfter, byteThird)
	t.add(amp, byteAt, '&')
	t.addAny(amp, byteBefore, byteAfter, byteThird)
	for _, c := range confusables {
		if c.as&isZ == 0 {
			continue
		}
		s := string(c.r)
		kind := wide // which of these share a kind changes how much else it holds
		switch s[0] {
		case 0xE2:
			kind = wide + 1
		case 0xE1, 0xEA:
			kind = wide + 2
		case 0xEF:
			kind = wide + 3
		case 0xF0:
			kind = wide + 4
		}
		t.addAny(kind, byteBefore)
		t.add(kind, byteAt, s[0])
		t.add(kind, byteAfter, s[1])
		if len(s) > 2 {
			t.add(kind, byteThird, s[2])
		} else {
			t.addAny(kind, byteThird)
		}
	}
	return t
}

// scarceClasses find, for each letter of scarce, what it may be read in: the letter, a reference, a character of more than one byte.
var scarceClasses = func() (tables [len(scarce)]classes) {
	for i := range tables {
		const letter, amp, wide = 0, 1, 2
		t := &tables[i]
		t.add(letter, byteAt, scarce[i])
		if scarce[i] != '-' {
			t.add(letter, byteAt, scarce[i]&^0x20)
		}
		t.add(amp, byteAt, '&')
		for b := utf8.RuneSelf; b < 0x100; b++ {
			t.add(wide, byteAt, byte(b))
		}
		for _, kind := range []int{letter, amp, wide} {
			t.addAny(kind, byteBefore, byteAfter, byteThird)
		}
	}
	return tables
}()
