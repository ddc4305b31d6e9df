package jsonrpc

import (
	"regexp"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// lastID finds an id that stands at the end of a message, where some writers put it.
var lastID = regexp.MustCompile(`"id"\s*:\s*(-?[0-9]{1,20}|"[^"\\]{0,100}")\s*(,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// maxGuesses bounds the ids that one unreadable message is looked at for.
const maxGuesses = 4

// guess tells of a message that could not be read which requests it may be about: by the ids at its outermost level, also of a
// second message on the same line, or the one at its end. A wrong guess fails a call that the same side answers, and nothing
// else: the answer itself is not used.
func guess(text string, err error) *BadMessage {
	head := text[:min(len(text), keepHead)]
	depth, method := 0, false
	var own, requests, responses []ID
	end := func() { // of one message on the line
		if method {
			requests = append(requests, own...)
		} else {
			responses = append(responses, own...)
		}
		own = nil
	}
	for i := 0; i < len(head); i++ {
		switch head[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				end()
				method = false
			}
		case '"':
			after := stringEnd(head, i)
			name := head[i:after]
			i = after - 1
			rest, isName := strings.CutPrefix(strings.TrimLeft(head[after:], " \t"), ":")
			switch {
			case depth != 1 || !isName:
			case name == `"method"`:
				method = true
			case name == `"id"`:
				if id := leadingID(strings.TrimLeft(rest, " \t")); !id.IsZero() && len(own)+len(responses) < maxGuesses {
					own = append(own, id)
				}
			}
		}
	}
	end()
	bad := &BadMessage{Err: err, IDs: responses}
	switch {
	case len(responses) == 0 && (method || len(requests) > 0):
		bad.IDs, bad.Request = requests, true
	case len(responses) == 0:
		if m := lastID.FindStringSubmatch(text[max(0, len(text)-keepTail):]); m != nil {
			bad.IDs = []ID{leadingID(m[1])}
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
