package envelope

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// appendHead appends all that stands before the content: the opening tag, the provenance, the instruction and the empty line.
func (e Envelope) appendHead(dst []byte) []byte {
	dst = append(dst, "<"+Token...)
	if e.Nonce != "" {
		dst = append(dst, '-')
		dst = append(dst, e.Nonce...)
	}
	dst = append(dst, ` kind="`...)
	dst = appendValue(dst, e.Kind)
	dst = append(dst, '"')
	for i, a := range repairNames(e.Attributes) {
		dst = append(dst, ' ')
		dst = append(dst, a.Name...)
		dst = append(dst, `="`...)
		dst = appendValue(dst, e.Attributes[i].Value)
		dst = append(dst, '"')
	}
	dst = append(dst, ">\n"...)
	dst = appendProvenance(dst, e.Provenance, e.Lookalikes)
	dst = append(dst, "\n"+instruction...)
	if e.Nonce != "" {
		dst = append(dst, sealed...)
	}
	return append(dst, "\n\n"...)
}

// headSize is what appendHead appends for an ordinary label, and less for one that needs repair.
func (e Envelope) headSize() int {
	n := len("<"+Token+`- kind="">`+"\n\n\n\n") + len(instruction) + len(sealed) + len(noSource) + maxNonce +
		len(e.Kind) + len(e.Provenance)
	for _, a := range e.Attributes {
		n += len(a.Name) + len(a.Value) + len(` =""`)
	}
	return n
}

// isControl reports whether r could end a line or steer a terminal: C0 but tab, DEL, C1, and the two separators.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' || r >= 0x7F && r < 0xA0 || r == '\u2028' || r == '\u2029'
}

// appendValue appends s as an attribute's value. The `>` is escaped because the tag's end must be findable, and what could
// break the line becomes a numeric reference because a tag is one line.
func appendValue(dst []byte, s string) []byte {
	for len(s) > 0 {
		plain := 0
		for plain < len(s) && standsInValue(s[plain]) {
			plain++
		}
		if dst, s = append(dst, s[:plain]...), s[plain:]; s == "" {
			break
		}
		r, size := decode(s)
		switch {
		case r == '&':
			dst = append(dst, "&amp;"...)
		case r == '"':
			dst = append(dst, "&quot;"...)
		case r == '<':
			dst = append(dst, "&lt;"...)
		case r == '>':
			dst = append(dst, "&gt;"...)
		case isControl(r):
			dst = append(dst, "&#"...)
			dst = strconv.AppendInt(dst, int64(r), 10)
			dst = append(dst, ';')
		default:
			dst = utf8.AppendRune(dst, r)
		}
		s = s[size:]
	}
	return dst
}

// standsInValue reports whether c is ASCII that stands for itself in a value.
func standsInValue(c byte) bool {
	return c >= ' ' && c < 0x7F && c != '&' && c != '"' && c != '<' && c != '>'
}

// appendProvenance appends the provenance as one line, defanged. An empty one, or one that holds an empty line, would move the
// header's end and hand the label out as content.
func appendProvenance(dst []byte, s string, lookalikes bool) []byte {
	if s == "" {
		return append(dst, noSource...)
	}
	if strings.IndexFunc(s, isControl) >= 0 {
		var line strings.Builder
		inRun := false
		for _, r := range s {
			if control := isControl(r); !control {
				line.WriteRune(r)
			} else if !inRun {
				line.WriteByte(' ')
			}
			inRun = isControl(r)
		}
		s = line.String()
	}
	return appendDefanged(dst, s, lookalikes)
}

// repairNames returns the attributes with names that can stand in a tag, each once. Ordinary names cost no allocation.
func repairNames(attributes []Attribute) []Attribute {
	if ordinary(attributes) {
		return attributes
	}
	repaired := make([]Attribute, len(attributes))
	used := make(map[string]int, len(attributes)) // name → the number to try next
	for i, a := range attributes {
		name := repairName(a.Name)
		unique := name
		for n := max(used[name], 2); used[unique] > 0; n++ {
			unique = name + "-" + strconv.Itoa(n)
			used[name] = n + 1
		}
		used[unique] = max(used[unique], 1)
		repaired[i] = Attribute{unique, a.Value}
	}
	return repaired
}

// manyAttributes is where comparing every pair of names stops being the quicker way to find a double.
const manyAttributes = 16

func ordinary(attributes []Attribute) bool {
	if len(attributes) > manyAttributes {
		return false
	}
	for i, a := range attributes {
		if !nameStart(a.Name) || isKind(a.Name) {
			return false
		}
		for j := range len(a.Name) {
			if !nameByte(a.Name[j]) {
				return false
			}
		}
		for _, before := range attributes[:i] {
			if before.Name == a.Name {
				return false
			}
		}
	}
	return true
}

// repairName turns any string into a name that can stand in a tag and is not `kind`, which the reader takes from the frame.
func repairName(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := decode(s)
		if r < utf8.RuneSelf && nameByte(byte(r)) {
			b.WriteByte(byte(r))
		} else {
			b.WriteByte('_')
		}
		s = s[size:]
	}
	name := b.String()
	if !nameStart(name) || isKind(name) {
		return "_" + name
	}
	return name
}

func nameByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' || letter(c)
}

func nameStart(s string) bool { return s != "" && (s[0] == '_' || letter(s[0])) }

func letter(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }

// isKind reports whether s is `kind` in any ASCII case. strings.EqualFold would fold the Kelvin sign too, which is not a k here.
func isKind(s string) bool {
	return len(s) == len("kind") && s[0]|0x20 == 'k' && s[1]|0x20 == 'i' && s[2]|0x20 == 'n' && s[3]|0x20 == 'd'
}
