package strictjson

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits bounds what [Parse] accepts. A zero field means the default.
type Limits struct {
	MaxBytes  int // length of the text; default [DefaultMaxBytes]
	MaxDepth  int // nested arrays and objects; default [DefaultMaxDepth]
	MaxValues int // values and names in all; default [DefaultMaxValues]

	// KeepCaseTwins keeps names of one object that differ only in case. For a caller that reads by exact name and sends on
	// only names it knows, or data that no program decodes into fields.
	KeepCaseTwins bool
	// RepairSurrogates reads the escape of a lone surrogate in a string as U+FFFD, and writes it so, where otherwise the
	// text is refused. In a name it is refused always.
	RepairSurrogates bool
}

// The defaults of [Limits].
const (
	DefaultMaxBytes  = 64 << 20 // the largest message the gateway passes
	DefaultMaxDepth  = 128      // honest messages stay below 30
	DefaultMaxValues = 1 << 20  // at 20 bytes each, far less memory than the largest text
)

// maxNumber bounds the length of a number: four times what arbitrary-precision programs write, and still cheap to convert.
const maxNumber = 4096

// maxText is what node offsets can hold.
const maxText = 1<<32 - 1

// Why a text was refused. The errors of [Parse] wrap one of these.
var (
	ErrSyntax    = errors.New("not valid JSON")
	ErrTrailing  = errors.New("text after the end of the value")
	ErrBOM       = errors.New("byte order mark")
	ErrNumber    = errors.New("number that is not JSON (NaN, Infinity) or too long")
	ErrDuplicate = errors.New("name occurs twice in an object")
	ErrCaseTwin  = errors.New("names of an object differ only in case")
	ErrName      = errors.New("control character or lone surrogate in a name")
	ErrSurrogate = errors.New("lone surrogate in a string")
	ErrTooLarge  = errors.New("text too large")
	ErrTooDeep   = errors.New("nested too deeply")
	ErrTooMany   = errors.New("too many values")
)

// Error says where a text was refused. It quotes nothing of the text.
type Error struct {
	Err    error // one of the Err variables
	Offset int   // in bytes, after the repair of invalid UTF-8
}

func (e *Error) Error() string { return fmt.Sprintf("reading JSON: %v at byte %d", e.Err, e.Offset) }
func (e *Error) Unwrap() error { return e.Err }

// Parse reads one JSON value. It keeps nothing of data.
func Parse(data []byte, lim Limits) (Value, error) {
	if over(len(data), lim) { // before the copy
		return Value{}, &Error{ErrTooLarge, 0}
	}
	return ParseString(string(data), lim)
}

// ParseString is [Parse] for a text that is already a string; the value keeps the string alive instead of a copy.
func ParseString(text string, lim Limits) (Value, error) {
	if over(len(text), lim) {
		return Value{}, &Error{ErrTooLarge, 0}
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		if len(text) > maxText {
			return Value{}, &Error{ErrTooLarge, 0}
		}
	}
	var room [16]string // for the names of most messages
	p := parser{src: text, lim: lim, names: room[:0]}
	if p.lim.MaxDepth == 0 {
		p.lim.MaxDepth = DefaultMaxDepth
	}
	if p.lim.MaxValues == 0 {
		p.lim.MaxValues = DefaultMaxValues
	}
	// Enough nodes for any text whose strings hold no commas and colons; a few more than needed for others.
	guess := 4 + strings.Count(text, ",") + strings.Count(text, ":")
	p.nodes = make([]node, 0, min(guess, len(text)/2+1, p.lim.MaxValues))
	if strings.HasPrefix(text, "\uFEFF") {
		return Value{}, &Error{ErrBOM, 0}
	}
	p.space()
	if err := p.value(0); err != nil {
		return Value{}, &Error{err, p.at}
	}
	p.space()
	if p.at != len(text) {
		return Value{}, &Error{ErrTrailing, p.at}
	}
	return Value{doc: &document{src: text, nodes: p.nodes}}, nil
}

func over(n int, lim Limits) bool {
	limit := lim.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	return n > limit || n > maxText
}

// document is one text that was read: its nodes lie in the order of the text, an object as name, value, name, value.
type document struct {
	src   string
	nodes []node
}

type node struct {
	start, end uint32 // its text in src; of a string what is between the quotes
	next       uint32 // the node after it and all it holds
	count      uint32 // members or elements
	kind       Kind
	escaped    bool // a string with escapes
	rewrite    bool // its text must not be written as it is: it holds a line break between tokens, or something repaired
}

type parser struct {
	src     string
	at      int
	lim     Limits
	nodes   []node
	rewrite int      // how many reasons to rewrite were met so far
	names   []string // of the objects that are open, outermost first
}

func (p *parser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t':
		case '\n', '\r':
			p.rewrite++
		default:
			return
		}
		p.at++
	}
}

// open appends a node that starts here and returns its index.
func (p *parser) open(kind Kind) (int, error) {
	if len(p.nodes) >= p.lim.MaxValues {
		return 0, ErrTooMany
	}
	p.nodes = append(p.nodes, node{kind: kind, start: uint32(p.at)})
	return len(p.nodes) - 1, nil
}

func (p *parser) close(i int) {
	n := &p.nodes[i]
	n.end = uint32(p.at)
	n.next = uint32(len(p.nodes))
}

func (p *parser) value(depth int) error {
	if p.at >= len(p.src) {
		return ErrSyntax
	}
	switch c := p.src[p.at]; c {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		_, err := p.string(false)
		return err
	case 't':
		return p.literal("true", KindBool)
	case 'f':
		return p.literal("false", KindBool)
	case 'n':
		return p.literal("null", KindNull)
	default:
		return p.number()
	}
}

func (p *parser) literal(word string, kind Kind) error {
	if !strings.HasPrefix(p.src[p.at:], word) {
		return ErrSyntax
	}
	i, err := p.open(kind)
	if err != nil {
		return err
	}
	p.at += len(word)
	p.close(i)
	return nil
}

func (p *parser) number() error {
	n := numberLen(p.src[p.at:])
	if n == 0 {
		if c := p.src[p.at]; c == 'N' || c == 'I' || c == '-' || c == '+' || c >= '0' && c <= '9' {
			return ErrNumber
		}
		return ErrSyntax
	}
	if n > maxNumber {
		return ErrNumber
	}
	i, err := p.open(KindNumber)
	if err != nil {
		return err
	}
	p.at += n
	p.close(i)
	return nil
}

// numberLen returns the length of the number that s starts with (RFC 8259, section 6), 0 for none.
func numberLen(s string) int {
	i := 0
	digits := func() bool {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else if !digits() {
		return 0
	}
	if i < len(s) && s[i] == '.' {
		i++
		if !digits() {
			return 0
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return 0
		}
	}
	return i
}

func (p *parser) array(depth int) error {
	if depth >= p.lim.MaxDepth {
		return ErrTooDeep
	}
	self, err := p.open(KindArray)
	if err != nil {
		return err
	}
	before, count := p.rewrite, 0
	p.at++
	p.space()
	if p.at < len(p.src) && p.src[p.at] == ']' {
		p.at++
	} else {
		for more := true; more; count++ {
			p.space()
			if err := p.value(depth + 1); err != nil {
				return err
			}
			if more, err = p.more(']'); err != nil {
				return err
			}
		}
	}
	p.close(self)
	p.nodes[self].count = uint32(count)
	p.nodes[self].rewrite = p.rewrite != before
	return nil
}

// more reads a comma (true) or the end of an array or object (false).
func (p *parser) more(end byte) (bool, error) {
	p.space()
	if p.at >= len(p.src) {
		return false, ErrSyntax
	}
	switch p.src[p.at] {
	case ',':
		p.at++
		return true, nil
	case end:
		p.at++
		return false, nil
	}
	return false, ErrSyntax
}

func (p *parser) object(depth int) error {
	if depth >= p.lim.MaxDepth {
		return ErrTooDeep
	}
	self, err := p.open(KindObject)
	if err != nil {
		return err
	}
	before, count, outer := p.rewrite, 0, len(p.names)
	var seen map[string]struct{}
	p.at++
	p.space()
	if p.at < len(p.src) && p.src[p.at] == '}' {
		p.at++
	} else {
		for more := true; more; count++ {
			p.space()
			if p.at >= len(p.src) || p.src[p.at] != '"' {
				return ErrSyntax
			}
			name, err := p.string(true)
			if err != nil {
				return err
			}
			if seen, err = p.unique(name, outer, seen); err != nil {
				return err
			}
			p.space()
			if p.at >= len(p.src) || p.src[p.at] != ':' {
				return ErrSyntax
			}
			p.at++
			p.space()
			if err := p.value(depth + 1); err != nil {
				return err
			}
			if more, err = p.more('}'); err != nil {
				return err
			}
		}
	}
	p.names = p.names[:outer]
	p.close(self)
	p.nodes[self].count = uint32(count)
	p.nodes[self].rewrite = p.rewrite != before
	return nil
}

// manyNames is where a set is faster than comparing each name with each.
const manyNames = 24

// unique refuses a name that the open object (its names start at outer) has already. The set is made when names get many.
func (p *parser) unique(name string, outer int, seen map[string]struct{}) (map[string]struct{}, error) {
	own := p.names[outer:]
	p.names = append(p.names, name)
	if len(own) < manyNames {
		for _, other := range own {
			if other == name {
				return nil, ErrDuplicate
			}
			if !p.lim.KeepCaseTwins && mayFold(other, name) && strings.EqualFold(other, name) {
				return nil, ErrCaseTwin
			}
		}
		return nil, nil
	}
	key := func(s string) string {
		if p.lim.KeepCaseTwins {
			return s
		}
		return fold(s)
	}
	if seen == nil {
		seen = make(map[string]struct{}, 4*manyNames)
		for _, other := range own {
			seen[key(other)] = struct{}{}
		}
	}
	k := key(name)
	if _, twice := seen[k]; twice {
		for _, other := range own {
			if other == name {
				return seen, ErrDuplicate
			}
		}
		return seen, ErrCaseTwin
	}
	seen[k] = struct{}{}
	return seen, nil
}

// mayFold says quickly that most pairs of names differ: by an ASCII first letter.
func mayFold(a, b string) bool {
	return a == "" || b == "" || a[0] >= 0x80 || b[0] >= 0x80 || a[0]|0x20 == b[0]|0x20
}

// fold maps strings that strings.EqualFold finds equal to one string.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
			least = min(least, o)
		}
		if 'A' <= least && least <= 'Z' {
			least += 'a' - 'A' // so that a lower-case name is its own key, without a copy
		}
		return least
	}, s)
}

// string reads a string or, with name, a name, and returns a name decoded.
func (p *parser) string(name bool) (string, error) {
	p.at++ // the quote
	i, err := p.open(KindString)
	if err != nil {
		return "", err
	}
	from, escaped, repaired := p.at, false, false
scan:
	for {
		p.at = plain(p.src, p.at)
		if p.at >= len(p.src) {
			return "", ErrSyntax
		}
		switch p.src[p.at] {
		case '"':
			break scan
		case '\\':
			escaped = true
			n, lone := escapeLen(p.src[p.at:])
			if n == 0 {
				return "", ErrSyntax
			}
			if lone {
				if name {
					return "", ErrName
				}
				if !p.lim.RepairSurrogates {
					return "", ErrSurrogate
				}
				repaired = true
			}
			p.at += n
		default: // a control character
			return "", ErrSyntax
		}
	}
	p.close(i)
	p.nodes[i].escaped = escaped
	if repaired {
		p.nodes[i].rewrite = true
		p.rewrite++
	}
	text := p.src[from:p.at]
	p.at++
	if !name {
		return "", nil
	}
	if escaped {
		text = unescape(text)
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return "", ErrName
		}
	}
	return text, nil
}
