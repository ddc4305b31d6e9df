package screen

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-4e9f7b04/hearsay/envelope"
)

// plain reports whether text is printable ASCII, tabs and line ends: nothing can be hidden in it.
func plain(text string) bool {
	// Long texts mostly are plain, so they are looked at eight bytes at a time: a byte of w is not plain if its high bit is set, if
	// taking a space from it borrows, or if it is DEL. A borrow can also come from the byte below, as from a line feed; those eight
	// are looked at one by one.
	const low, high = 0x0101010101010101, 0x8080808080808080
	for len(text) >= 8 {
		b := text[:8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		del := w ^ 0x7f*low
		if (w|(w-0x20*low)|((del-low)&^del))&high != 0 && !plainBytes(b) {
			return false
		}
		text = text[8:]
	}
	return plainBytes(text)
}

func plainBytes(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7F || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// The rules of hidden_text for what shows nothing. All of it is removed when a text is rewritten.
const (
	ruleEscape    = "terminal-escape"     // ESC or C1 and the sequence it begins
	ruleControl   = "control-character"   // other C0, C1 and DEL
	ruleReturn    = "carriage-return"     // alone: a terminal writes over the line. It becomes a line feed
	ruleTags      = "tag-characters"      // outside the three flags that have them
	ruleSelectors = "variation-selectors" // after what has no variations, or more than one
	ruleZeroWidth = "zero-width"          // where no script needs it
	ruleHyphen    = "soft-hyphen"         // where no word can be divided
	ruleBidi      = "bidi-control"        // without a letter that is written from right to left; an override always
	ruleFiller    = "blank-character"     // letters and patterns that are empty
	ruleCombining = "combining-flood"     // more marks on one letter than any language has
	ruleIllFormed = "ill-formed"          // not UTF-8: pieces that become a character when what is between them goes
)

// near is how far apart two places may be to be one finding, in bytes.
const near = 16

// maxMarks is how many combining marks one letter may have. Tibetan and Hebrew with accents come to six.
const maxMarks = 8

// A scanner goes through a text once and collects what shows nothing.
type scanner struct {
	text  string
	found []Finding
	open  map[string]int // rule → index of its last finding

	terminator int // where the next end of a terminal string is; before at if not known
	lineEnd    int // the line up to here was looked at
	rightLeft  bool

	decoded map[int]*strings.Builder // finding → what its characters spell
}

// invisible finds all that shows nothing in text, in order, with the edits that take it out. Ordinary text costs one look at each
// character.
func invisible(text string) []Finding {
	s := scanner{text: text, open: map[string]int{}, terminator: -1, lineEnd: -1, decoded: map[int]*strings.Builder{}}
	marks := 0
	for at := 0; at < len(text); {
		c := text[at]
		if c >= ' ' && c < 0x7F || c == '\n' || c == '\t' {
			at, marks = at+1, 0
			continue
		}
		if c >= 0xE4 && c <= 0xEE { // nearly all of CJK and Hangul
			_, size := utf8.DecodeRuneInString(text[at:])
			at, marks = at+size, 0
			continue
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case isControl(r):
			at += s.control(at, r, size)
			if r == '\r' { // the others leave no gap
				marks = 0
			}
			continue
		case r == utf8.RuneError && size == 1:
			s.add(ruleIllFormed, at, at+1, "\uFFFD")
			at, marks = at+1, 0
			continue
		case isMark(r):
			if marks++; marks > maxMarks {
				s.add(ruleCombining, at, at+size, "")
			}
			at += size
			continue
		}
		if rule := blank(r); rule != "" && !s.honest(at, r, size) {
			s.add(rule, at, at+size, "")
			s.spell(rule, r)
		} else if rule == "" {
			marks = 0
		}
		at += size
	}
	s.decode()
	slices.SortStableFunc(s.found, func(a, b Finding) int { return a.Start - b.Start })
	return s.found
}

// add records that text[start:end] is to be replaced, in the last finding of the rule if that is near.
func (s *scanner) add(rule string, start, end int, with string) {
	i, known := s.open[rule]
	if !known || start-s.found[i].End > near {
		i = len(s.found)
		s.open[rule] = i
		s.found = append(s.found, Finding{Rule: rule, Start: start, Action: "removed"})
	}
	f := &s.found[i]
	f.End = end
	f.Count++
	if n := len(f.edits); n > 0 && f.edits[n-1].end == start && with == "" && f.edits[n-1].with == "" {
		f.edits[n-1].end = end
		return
	}
	f.edits = append(f.edits, edit{start, end, with})
}

// spell adds what r says, in one of the known ways to write with characters that show nothing, to the last finding of its rule.
func (s *scanner) spell(rule string, r rune) {
	switch {
	case r >= 0xE0020 && r <= 0xE007E:
		r -= 0xE0000
	case r >= 0xE0100 && r <= 0xE01EF:
		r -= 0xE0100
	default:
		return
	}
	i := s.open[rule]
	if s.decoded[i] == nil {
		s.decoded[i] = &strings.Builder{}
	}
	s.decoded[i].WriteByte(byte(r))
}

// decode gives the findings what they spell.
func (s *scanner) decode() {
	for i, builder := range s.decoded {
		spelled := builder.String()
		if s.found[i].Rule == ruleSelectors && !printable(spelled) { // a selector is not ASCII as it is, but a byte from 16 on
			shifted := []byte(spelled)
			for j := range shifted {
				shifted[j] += 16
			}
			spelled = string(shifted)
		}
		if utf8.ValidString(spelled) {
			s.found[i].Hidden = envelope.NewUntrusted(spelled)
		}
	}
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// blank returns the rule for a character that shows nothing, or "".
func blank(r rune) string {
	switch {
	case r == 0xAD:
		return ruleHyphen
	case r < 0x34F:
		return ""
	case r >= 0xE0000 && r <= 0xE007F:
		return ruleTags
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF, r >= 0x180B && r <= 0x180D, r == 0x180F:
		return ruleSelectors
	case r >= 0xE0080 && r <= 0xE0FFF, r >= 0x1D173 && r <= 0x1D17A, r >= 0x1BCA0 && r <= 0x1BCA3, r >= 0xFFF0 && r <= 0xFFFB,
		r == 0x34F, r == 0x180E, r >= 0x200B && r <= 0x200D, r >= 0x2060 && r <= 0x2065, r >= 0x206A && r <= 0x206F, r == 0xFEFF:
		return ruleZeroWidth
	case r == 0x61C, r == 0x200E, r == 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return ruleBidi
	case r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x2800, r == 0x3164, r == 0xFFA0:
		return ruleFiller
	}
	return ""
}

// isMark reports whether r is one of the marks that combine with any letter.
func isMark(r rune) bool {
	return r >= 0x300 && r < 0x34F || r > 0x34F && r <= 0x36F || r >= 0x483 && r <= 0x489 || r >= 0x1AB0 && r <= 0x1AFF ||
		r >= 0x1DC0 && r <= 0x1DFF || r >= 0x20D0 && r <= 0x20FF || r >= 0xFE20 && r <= 0xFE2F
}

// honest reports whether a character that shows nothing stands where people and programs write it for what it is for.
func (s *scanner) honest(at int, r rune, size int) bool {
	before, _ := utf8.DecodeLastRuneInString(s.text[:at])
	after, _ := utf8.DecodeRuneInString(s.text[at+size:])
	switch {
	case r == 0xFEFF:
		return at == 0
	case r == 0xFE0E || r == 0xFE0F:
		return pictured(before) || before >= '0' && before <= '9' || before == '#' || before == '*'
	case r >= 0xFE00 && r <= 0xFE0D:
		return unicode.In(before, unicode.Han, unicode.Sm, unicode.Myanmar, unicode.Phags_Pa, unicode.Manichaean)
	case r >= 0xE0100 && r <= 0xE01EF:
		return unicode.Is(unicode.Han, before)
	case r >= 0x180B && r <= 0x180F:
		return unicode.Is(unicode.Mongolian, before) && blank(before) == ""
	case r == 0x200C:
		return unicode.In(before, joining...) && unicode.In(after, joining...)
	case r == 0x200D:
		return unicode.In(before, joining...) ||
			(pictured(before) || before == 0xFE0F || before >= 0x1F3FB && before <= 0x1F3FF || s.flagBefore(at)) && pictured(after)
	case r == 0x200B || r == 0x2060: // where words are not divided by spaces
		return unicode.In(before, unicode.Lo, unicode.Mn, unicode.Mc) && !isMark(before) && unicode.Is(unicode.Lo, after)
	case r == 0x34F:
		return isMark(after) || unicode.Is(unicode.Mn, after)
	case r == 0xAD:
		return divides(s.text[:at], true) && divides(s.text[at+size:], false)
	case r == 0x202D || r == 0x202E:
		return false
	case blank(r) == ruleBidi:
		return s.hasRightLeft(at)
	case r == 0x115F || r == 0x1160:
		return before >= 0x1100 && before <= 0x11FF && blank(before) == "" || after >= 0x1100 && after <= 0x11FF && blank(after) == ""
	case r == 0x2800:
		return before > 0x2800 && before <= 0x28FF || after > 0x2800 && after <= 0x28FF
	case blank(r) == ruleTags:
		return s.flagHolds(at)
	}
	return false
}

// joining are the scripts whose letters change their form, where ZWJ and ZWNJ choose between the forms.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mandaic, unicode.Nko, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
	unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer,
	unicode.Myanmar, unicode.Tibetan, unicode.Balinese, unicode.Javanese, unicode.Limbu, unicode.Brahmi, unicode.Grantha, unicode.Tirhuta,
}

// pictured reports whether r can be shown as an emoji, or be joined into one.
func pictured(r rune) bool {
	return r == 0xA9 || r == 0xAE || r >= 0x203C && r <= 0x3299 && !unicode.IsLetter(r) && !unicode.IsSpace(r) && blank(r) == "" || r >= 0x1F000 && r <= 0x1FAFF
}

// The flags that are written with tag characters are three. Any other run of them behind the black flag says something else.
var flags = []string{tagged("gbeng"), tagged("gbsct"), tagged("gbwls")}

// tagged is the region in tag characters, with the one that ends it.
func tagged(region string) string {
	return strings.Map(func(r rune) rune { return r + 0xE0000 }, region) + "\U000E007F"
}

const blackFlag = "\U0001F3F4"

// flagHolds reports whether the tag character at at belongs to one of the flags.
func (s *scanner) flagHolds(at int) bool {
	const size = 4 // bytes of a tag character
	for back := range 6 {
		start := at - back*size
		if start < len(blackFlag) || s.text[start-len(blackFlag):start] != blackFlag {
			continue
		}
		for _, flag := range flags {
			if strings.HasPrefix(s.text[start:], flag) {
				return true
			}
		}
	}
	return false
}

// flagBefore reports whether one of the flags ends at at.
func (s *scanner) flagBefore(at int) bool {
	const length = 6 * 4
	return at >= length && strings.HasPrefix(s.text[at-4:], "\U000E007F") && s.flagHolds(at-4)
}

// divides reports whether two letters at least stand on that side of a soft hyphen.
func divides(text string, before bool) bool {
	for range 2 {
		r, size := utf8.DecodeRuneInString(text)
		if before {
			r, size = utf8.DecodeLastRuneInString(text)
		}
		if !unicode.IsLetter(r) {
			return false
		}
		if before {
			text = text[:len(text)-size]
		} else {
			text = text[size:]
		}
	}
	return true
}

// hasRightLeft reports whether the line that holds at has a letter that is written from right to left.
func (s *scanner) hasRightLeft(at int) bool {
	if at < s.lineEnd {
		return s.rightLeft
	}
	begun := max(0, s.lineEnd)
	start := begun + strings.LastIndexAny(s.text[begun:at], "\r\n") + 1
	end := strings.IndexAny(s.text[at:], "\r\n")
	if s.lineEnd = at + end; end < 0 {
		s.lineEnd = len(s.text)
	}
	s.rightLeft = strings.ContainsFunc(s.text[start:s.lineEnd], func(r rune) bool {
		return r >= 0x590 && r <= 0x8FF && unicode.IsLetter(r) || r >= 0xFB1D && r <= 0xFDFF || r >= 0xFE70 && r <= 0xFEFC ||
			r >= 0x10800 && r <= 0x10FFF || r >= 0x1E800 && r <= 0x1EFFF
	})
	return s.rightLeft
}
