package strictjson

import (
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a [Value]. The zero Kind is the absence of a value.
type Kind uint8

const (
	KindAbsent Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

func (k Kind) String() string {
	return [...]string{"absent", "null", "bool", "number", "string", "array", "object"}[k]
}

// Value is an immutable JSON value. The zero Value is absent: what [Value.Get] returns for a name that an object lacks.
// Methods for one kind give the zero result for another, so a chain of Get on outside data cannot fail.
type Value struct {
	doc  *document // what it was read from; nil if it was built
	at   uint32    // its node
	made *made     // what it was built from; nil if it was read
}

// Member is one name and value of an object.
type Member struct {
	Name  string
	Value Value
}

type made struct {
	kind    Kind
	text    string // of a string, number, bool or null
	members []Member
	elems   []Value
}

// String builds a string; invalid UTF-8 becomes U+FFFD.
func String(s string) Value {
	return Value{made: &made{kind: KindString, text: valid(s)}}
}

func valid(s string) string {
	if utf8.ValidString(s) { // much faster than looking for what to replace
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Number builds a number from its literal, digit for digit. What is no JSON number gives the absent value.
func Number(lit string) Value {
	if n := numberLen(lit); n == 0 || n != len(lit) || n > maxNumber {
		return Value{}
	}
	return Value{made: &made{kind: KindNumber, text: lit}}
}

var (
	madeNull  = made{kind: KindNull, text: "null"}
	madeTrue  = made{kind: KindBool, text: "true"}
	madeFalse = made{kind: KindBool, text: "false"}
)

// Bool builds true or false.
func Bool(b bool) Value {
	if b {
		return Value{made: &madeTrue}
	}
	return Value{made: &madeFalse}
}

// Null builds null.
func Null() Value { return Value{made: &madeNull} }

// Array builds an array. Absent elements are left out.
func Array(elems ...Value) Value {
	m := &made{kind: KindArray, elems: make([]Value, 0, len(elems))}
	for _, e := range elems {
		if e.Kind() != KindAbsent {
			m.elems = append(m.elems, e)
		}
	}
	return Value{made: m}
}

// Object builds an object in the order given. Of a name given twice the last value counts, at the first place; absent
// values are left out.
func Object(members ...Member) Value {
	m := &made{kind: KindObject, members: make([]Member, 0, len(members))}
	var place map[string]int
	if len(members) > manyNames {
		place = make(map[string]int, len(members))
	}
	for _, x := range members {
		if x.Value.Kind() == KindAbsent {
			continue
		}
		x.Name = valid(x.Name)
		i, known := place[x.Name]
		if place == nil {
			i = index(m.members, x.Name)
			known = i >= 0
		}
		if known {
			m.members[i] = x
			continue
		}
		if place != nil {
			place[x.Name] = len(m.members)
		}
		m.members = append(m.members, x)
	}
	return Value{made: m}
}

func index(members []Member, name string) int {
	for i := range members {
		if members[i].Name == name {
			return i
		}
	}
	return -1
}

// Kind says what v is.
func (v Value) Kind() Kind {
	switch {
	case v.made != nil:
		return v.made.kind
	case v.doc != nil:
		return v.doc.nodes[v.at].kind
	}
	return KindAbsent
}

// text returns what is written of a number, bool or null, or what is between the quotes of a string that was read.
func (v Value) text() string {
	if v.made != nil {
		return v.made.text
	}
	n := v.doc.nodes[v.at]
	return v.doc.src[n.start:n.end]
}

// Str returns a string's characters. A string that was read with escapes is decoded on each call.
func (v Value) Str() string {
	if v.Kind() != KindString {
		return ""
	}
	if v.made == nil && v.doc.nodes[v.at].escaped {
		return unescape(v.text())
	}
	return v.text()
}

// Number returns a number's literal.
func (v Value) Number() string {
	if v.Kind() != KindNumber {
		return ""
	}
	return v.text()
}

// Bool says whether v is true.
func (v Value) Bool() bool { return v.Kind() == KindBool && v.text() == "true" }

// Len returns the number of members or elements.
func (v Value) Len() int {
	switch {
	case v.made != nil:
		return len(v.made.members) + len(v.made.elems)
	case v.doc != nil:
		return int(v.doc.nodes[v.at].count)
	}
	return 0
}

// Get returns the value of an object's member, the absent value if there is none. It looks at the members one by one.
func (v Value) Get(name string) Value {
	for have, value := range v.Members() {
		if have == name {
			return value
		}
	}
	return Value{}
}

// Members yields an object's members in their order.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != KindObject {
			return
		}
		if v.made != nil {
			for _, m := range v.made.members {
				if !yield(m.Name, m.Value) {
					return
				}
			}
			return
		}
		for i, end := v.at+1, v.doc.nodes[v.at].next; i < end; i = v.doc.nodes[i+1].next {
			if !yield(Value{doc: v.doc, at: i}.Str(), Value{doc: v.doc, at: i + 1}) {
				return
			}
		}
	}
}

// Elems yields an array's elements with their index.
func (v Value) Elems() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Kind() != KindArray {
			return
		}
		if v.made != nil {
			for i, e := range v.made.elems {
				if !yield(i, e) {
					return
				}
			}
			return
		}
		n := 0
		for i, end := v.at+1, v.doc.nodes[v.at].next; i < end; i = v.doc.nodes[i].next {
			if !yield(n, Value{doc: v.doc, at: i}) {
				return
			}
			n++
		}
	}
}

// With returns v with a member set, at its place or else at the end; an absent value takes it away. Anything but an object
// counts as an empty one.
func (v Value) With(name string, value Value) Value {
	members := v.list(1)
	if i := index(members, name); i >= 0 && value.Kind() != KindAbsent {
		members[i].Value = value
		return Value{made: &made{kind: KindObject, members: members}}
	} else if i >= 0 {
		members = append(members[:i], members[i+1:]...)
	}
	if value.Kind() != KindAbsent {
		members = append(members, Member{valid(name), value})
	}
	return Value{made: &made{kind: KindObject, members: members}}
}

// Without returns v without the members of these names; v itself if it has none of them.
func (v Value) Without(names ...string) Value {
	members := v.list(0)
	kept := members[:0]
	for _, m := range members {
		drop := false
		for _, name := range names {
			drop = drop || m.Name == name
		}
		if !drop {
			kept = append(kept, m)
		}
	}
	if len(kept) == v.Len() {
		return v
	}
	return Value{made: &made{kind: KindObject, members: kept}}
}

// list copies an object's members, with room for more.
func (v Value) list(more int) []Member {
	if v.Kind() != KindObject {
		return make([]Member, 0, more)
	}
	members := make([]Member, 0, v.Len()+more)
	for name, value := range v.Members() {
		members = append(members, Member{name, value})
	}
	return members
}

// Size is about how many bytes Append writes: enough for most texts, too few for one that is full of escapes.
func (v Value) Size() int {
	switch {
	case v.made == nil && v.doc == nil:
		return 4
	case v.made == nil:
		n := &v.doc.nodes[v.at]
		return int(n.end-n.start) + 2
	case v.made.kind == KindString:
		return stringSize(v.made.text)
	}
	n := len(v.made.text) + 2
	for _, m := range v.made.members {
		n += len(m.Name) + 4 + m.Value.Size()
	}
	for _, e := range v.made.elems {
		n += 1 + e.Size()
	}
	return n
}

// Append writes v as JSON on one line. What was read and not changed is written as it was read; an absent value as null.
func (v Value) Append(dst []byte) []byte {
	if v.made == nil && v.doc != nil {
		n := &v.doc.nodes[v.at]
		if !n.rewrite {
			if n.kind == KindString {
				return append(dst, v.doc.src[n.start-1:n.end+1]...)
			}
			return append(dst, v.doc.src[n.start:n.end]...)
		}
	}
	switch v.Kind() {
	case KindAbsent:
		return append(dst, "null"...)
	case KindString:
		return appendString(dst, v.Str())
	case KindArray:
		dst = append(dst, '[')
		for i, e := range v.Elems() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.Append(dst)
		}
		return append(dst, ']')
	case KindObject:
		dst = append(dst, '{')
		first := true
		for name, value := range v.Members() {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendString(dst, name)
			dst = append(dst, ':')
			dst = value.Append(dst)
		}
		return append(dst, '}')
	default:
		return append(dst, v.text()...)
	}
}

// Any returns v as nil, bool, string, json.Number, []any or map[string]any; nil for the absent value.
func (v Value) Any() any {
	switch v.Kind() {
	case KindBool:
		return v.Bool()
	case KindNumber:
		return json.Number(v.text())
	case KindString:
		return v.Str()
	case KindArray:
		list := make([]any, 0, v.Len())
		for _, e := range v.Elems() {
			list = append(list, e.Any())
		}
		return list
	case KindObject:
		object := make(map[string]any, v.Len())
		for name, value := range v.Members() {
			object[name] = value.Any()
		}
		return object
	}
	return nil
}
