package envelope

import (
	"errors"
	"strconv"
	"strings"
)

// What can be wrong with a text that is read as a frame. Errors of [Parse] wrap one of these.
var (
	ErrNoOpening   = errors.New("it does not start with a whole opening tag")
	ErrNoClosing   = errors.New("it does not end with the closing tag")
	ErrNonce       = errors.New("the nonces of the opening and the closing tag differ")
	ErrNoHeader    = errors.New("no empty line ends the header")
	ErrTokenInside = errors.New("the body holds the token: two frames end to end, or one made by hand")
	ErrLabel       = errors.New("the opening tag or the header is not what a frame's writer writes")
)

// Body returns the content of text, which must be exactly one frame, trimmed of ECMAScript's white space; otherwise false. It never guesses.
//
// A frame says nothing about who made it: whoever can write text can write a frame.
func Body(text string) (string, bool) {
	parts, err := split(text)
	if err != nil {
		return "", false
	}
	return trim(parts.body), true
}

// Exact is Body without the trimming: the content byte for byte as [Envelope.Wrap] wrote it. It is false also where a frame's
// writer would not have ended the content with the line feed before the closing tag.
func Exact(text string) (string, bool) {
	parts, err := split(text)
	if err != nil {
		return "", false
	}
	return strings.CutSuffix(parts.body, "\n")
}

// Parse returns the label and the body of text, which must be exactly one frame as [Envelope.Wrap] writes it. It is stricter than [Body]: the tag
// must hold a kind and well-formed attributes, and the header a provenance and the instruction line. The error says which rule broke.
func Parse(text string) (Envelope, string, error) {
	parts, err := split(text)
	if err != nil {
		return Envelope{}, "", &ParseError{err, ""}
	}
	e := Envelope{Nonce: parts.nonce}
	if e.Kind, e.Attributes, err = parseAttributes(parts.attributes); err != nil {
		return Envelope{}, "", err
	}
	lines := strings.Split(parts.header, "\n")
	line := instruction
	if e.Nonce != "" {
		line += sealed
	}
	if len(lines) != 3 || lines[0] != "" || lines[1] == "" || lines[2] != line {
		return Envelope{}, "", &ParseError{ErrLabel, "the header is not a provenance line and the instruction line"}
	}
	e.Provenance = lines[1]
	return e, trim(parts.body), nil
}

// ParseError says which rule a text breaks that was read as a frame. It never quotes the text.
type ParseError struct {
	// Rule is one of the Err values of this package.
	Rule error
	// Detail says more where there is more to say.
	Detail string
}

func (e *ParseError) Error() string {
	if e.Detail == "" {
		return "not a frame: " + e.Rule.Error()
	}
	return "not a frame: " + e.Rule.Error() + " (" + e.Detail + ")"
}

func (e *ParseError) Unwrap() error { return e.Rule }

// parts are the pieces of a frame, as they stand in it.
type parts struct {
	nonce      string
	attributes string // between the tag's name and its `>`
	header     string // from the line feed after the opening tag to before the empty line
	body       string // not trimmed
}

// split takes the frame apart by the rules of [Body].
func split(text string) (parts, error) {
	var p parts
	rest, ok := strings.CutPrefix(trim(text), "<"+Token)
	if !ok {
		return p, ErrNoOpening
	}
	if sealedRest, ok := strings.CutPrefix(rest, "-"); ok {
		n := strings.IndexAny(sealedRest, " >")
		if n < 0 || !isNonce(sealedRest[:n]) {
			return p, ErrNoOpening
		}
		p.nonce, rest = sealedRest[:n], sealedRest[n:]
	}
	end := strings.IndexByte(rest, '>')
	if end < 0 || end > 0 && rest[0] != ' ' {
		return p, ErrNoOpening
	}
	p.attributes, rest = rest[:end], rest[end+1:]
	inner, ok := cutClosing(rest, p.nonce)
	if !ok {
		if hasClosing(rest) {
			return p, ErrNonce
		}
		return p, ErrNoClosing
	}
	p.header, p.body, ok = strings.Cut(inner, "\n\n")
	if !ok {
		return p, ErrNoHeader
	}
	if holdsToken(p.body) {
		return p, ErrTokenInside
	}
	return p, nil
}

func cutClosing(s, nonce string) (string, bool) {
	s, ok := strings.CutSuffix(s, ">")
	if ok && nonce != "" {
		if s, ok = strings.CutSuffix(s, nonce); ok {
			s, ok = strings.CutSuffix(s, "-")
		}
	}
	if !ok {
		return s, false
	}
	return strings.CutSuffix(s, "</"+Token)
}

// hasClosing reports whether s ends with a closing tag, whatever its nonce, to name the error.
func hasClosing(s string) bool {
	i := strings.LastIndex(s, "</"+Token)
	if i < 0 || !strings.HasSuffix(s, ">") {
		return false
	}
	nonce := s[i+len("</"+Token) : len(s)-1]
	return nonce == "" || nonce[0] == '-' && isNonce(nonce[1:])
}

func holdsToken(s string) bool {
	c := cursor{valid: len(s)}
	_, _, ok := search(s, &c)
	return ok
}

// parseAttributes reads what stands in an opening tag after its name: the kind, then the attributes in order.
func parseAttributes(s string) (kind string, attributes []Attribute, err error) {
	if !strings.HasPrefix(s, ` kind="`) {
		return "", nil, &ParseError{ErrLabel, "kind does not stand first"}
	}
	for first := true; s != ""; first = false {
		name, rest, ok := strings.Cut(s, `="`)
		name, space := strings.CutPrefix(name, " ")
		value, rest, closed := strings.Cut(rest, `"`)
		if !ok || !space || !closed {
			return "", nil, &ParseError{ErrLabel, `an attribute is not of the form name="value"`}
		}
		if value, ok = unescape(value); !ok {
			return "", nil, &ParseError{ErrLabel, "an attribute's value is not escaped as it must be"}
		}
		if first {
			kind = value
		} else {
			attributes = append(attributes, Attribute{name, value})
		}
		s = rest
	}
	for i, a := range repairNames(attributes) {
		if a.Name != attributes[i].Name {
			return "", nil, &ParseError{ErrLabel, "an attribute has a name that cannot stand there, or that stood before"}
		}
	}
	return kind, attributes, nil
}

// unescape reverses appendValue, and is false for what appendValue does not write.
func unescape(s string) (string, bool) {
	if strings.ContainsAny(s, `<>"`) || strings.IndexFunc(s, isControl) >= 0 {
		return "", false
	}
	var b strings.Builder
	for s != "" {
		plain, rest, found := strings.Cut(s, "&")
		b.WriteString(plain)
		if !found {
			break
		}
		name, rest, ok := strings.Cut(rest, ";")
		if !ok {
			return "", false
		}
		switch name {
		case "amp":
			b.WriteByte('&')
		case "quot":
			b.WriteByte('"')
		case "lt":
			b.WriteByte('<')
		case "gt":
			b.WriteByte('>')
		default:
			digits, ok := strings.CutPrefix(name, "#")
			n, err := strconv.ParseUint(digits, 10, 16)
			if !ok || err != nil || !isControl(rune(n)) || strconv.FormatUint(n, 10) != digits {
				return "", false
			}
			b.WriteRune(rune(n))
		}
		s = rest
	}
	return b.String(), true
}

// trim cuts ECMAScript's white space from both ends, as the frame's first reader did: U+FEFF and all of Zs are white space, U+0085 is not.
func trim(s string) string { return strings.TrimFunc(s, isSpace) }

func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
		return true
	}
	return r >= 0x2000 && r <= 0x200A
}
