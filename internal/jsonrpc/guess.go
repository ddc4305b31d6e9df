package jsonrpc

import (
	"regexp"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// lastID finds an id that stands at the end of a message, where some writers put it.
var lastID = regexp.MustCompile(`"id"\s*:\s*(-?[0-9]{1,20}|"[^"\\]{0,100}")\s*(,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// guess tells of a message that could not be read which request it is about: the only id at its outermost level, or the one
// at its end. A wrong guess fails a call that the same side answers, and nothing else: the answer itself is not used.
func guess(text string, err error) *BadMessage {
	bad := &BadMessage{Err: err}
	head := text[:min(len(text), keepHead)]
	depth, ids := 0, 0
	for i := 0; i < len(head); i++ {
		switch head[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := stringEnd(head, i)
			name := head[i:end]
			i = end - 1
			if depth != 1 {
				continue
			}
			rest, isName := strings.CutPrefix(strings.TrimLeft(head[end:], " \t"), ":")
			switch {
			case isName && name == `"method"`:
				bad.Request = true
			case isName && name == `"id"`:
				ids++
				bad.ID = leadingID(strings.TrimLeft(rest, " \t"))
			}
		}
	}
	if ids > 1 {
		bad.ID = ID{}
	}
	if ids == 0 {
		if m := lastID.FindStringSubmatch(text[max(0, len(text)-keepTail):]); m != nil {
			bad.ID = leadingID(m[1])
		}
	}
	return bad
}

// stringEnd returns the index after the string that starts at i.
func stringEnd(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// leadingID reads the string or number that s starts with.
func leadingID(s string) ID {
	end := strings.IndexAny(s, ",} \t")
	if strings.HasPrefix(s, `"`) {
		end = stringEnd(s, 0)
	}
	if end < 0 {
		end = len(s)
	}
	v, err := strictjson.ParseString(s[:min(end, len(s))], strictjson.Limits{MaxBytes: maxID})
	if err != nil {
		return ID{}
	}
	id, _ := NewID(v)
	return id
}
