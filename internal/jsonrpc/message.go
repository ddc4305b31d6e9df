package jsonrpc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Kind says what a message is.
type Kind uint8

const (
	Request Kind = iota + 1
	Notification
	Response
)

// Codes of errors that the protocol itself defines.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// maxID bounds an id: it is kept while the request is open. Honest ids are below 100 bytes.
const maxID = 1024

// ID identifies a request for one side. The zero ID is none. Compare by [ID.Key].
type ID struct{ value strictjson.Value }

// NewID takes a string or a number as an id; false for any other value.
func NewID(v strictjson.Value) (ID, bool) {
	switch v.Kind() {
	case strictjson.KindString:
		return ID{v}, len(v.Str()) <= maxID
	case strictjson.KindNumber:
		return ID{v}, len(v.Number()) <= maxID
	}
	return ID{}, false
}

// Key is equal for equal ids only: a number by its digits as written, a string by its characters.
func (id ID) Key() string {
	switch id.value.Kind() {
	case strictjson.KindString:
		return `"` + id.value.Str()
	case strictjson.KindNumber:
		return id.value.Number()
	}
	return ""
}

// Value is the id as it was written; absent for the zero ID.
func (id ID) Value() strictjson.Value { return id.value }

// IsZero says that there is no id.
func (id ID) IsZero() bool { return id.value.Kind() == strictjson.KindAbsent }

// Message is one request, notification or response.
type Message struct {
	Kind   Kind
	ID     ID     // of a request or response
	Method string // of a request or notification
	Params strictjson.Value
	Result strictjson.Value    // of a response that succeeded
	Error  strictjson.Value    // of one that failed: an object with an integer code and a message
	Extra  []strictjson.Member // members that JSON-RPC does not name

	// On is the open request of ours that the other side sent a request or notification for, where the transport tells: each
	// request has a stream of its own. It is not written.
	On ID

	// Own says that Error is in words of this program: a transport answers for a side that was not reached, or that said nothing
	// usable. It is not written, and nothing that is read has it.
	Own bool
}

// Failed gives the error of a response that is [Message.Own]; nil for any other message.
func (m Message) Failed() error {
	if !m.Own {
		return nil
	}
	return errors.New(m.Error.Get("message").Str())
}

// ErrInvalid says that a JSON value is no JSON-RPC message. The errors of [Decode] wrap it.
var ErrInvalid = errors.New("not a JSON-RPC 2.0 message")

func invalid(what string) error { return fmt.Errorf("%w: %s", ErrInvalid, what) }

// Decode reads a message. Next to an error it gives what it could tell of id and method, for an answer.
func Decode(v strictjson.Value) (Message, error) {
	var m Message
	var version, id, method strictjson.Value
	if v.Kind() != strictjson.KindObject {
		return m, invalid("no object")
	}
	for name, value := range v.Members() {
		switch name {
		case "jsonrpc":
			version = value
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			m.Params = value
		case "result":
			m.Result = value
		case "error":
			m.Error = value
		default:
			m.Extra = append(m.Extra, strictjson.Member{Name: name, Value: value})
		}
	}
	known := false
	m.ID, known = NewID(id)
	m.Method = method.Str()
	switch {
	case version.Str() != "2.0":
		if method.Kind() == strictjson.KindAbsent { // not an answer of this protocol: the call it names goes on waiting
			m.ID = ID{}
		}
		return m, invalid("version is not 2.0")
	case id.Kind() != strictjson.KindAbsent && !known && id.Kind() != strictjson.KindNull:
		m.ID = ID{}
		return m, invalid("id is neither a string nor a number, or too long")
	}
	result, failed := m.Result.Kind() != strictjson.KindAbsent, m.Error.Kind() != strictjson.KindAbsent
	if method.Kind() == strictjson.KindAbsent {
		m.Kind = Response
		switch {
		case result == failed:
			return m, invalid("neither a request nor a response")
		case m.Params.Kind() != strictjson.KindAbsent:
			return m, invalid("a response with params")
		case failed && !goodError(m.Error):
			return m, invalid("error is no object with a code and a message")
		case result && m.ID.IsZero():
			return m, invalid("a result without an id")
		}
		return m, nil
	}
	m.Kind = Request
	if id.Kind() == strictjson.KindAbsent {
		m.Kind = Notification
	}
	switch {
	case method.Kind() != strictjson.KindString:
		return m, invalid("method is no string")
	case result || failed:
		return m, invalid("both a request and a response")
	case m.Params.Kind() != strictjson.KindAbsent && m.Params.Kind() != strictjson.KindObject && m.Params.Kind() != strictjson.KindArray:
		return m, invalid("params are no object")
	case m.Kind == Request && m.ID.IsZero():
		return m, invalid("a request with a null id")
	}
	return m, nil
}

func goodError(v strictjson.Value) bool {
	_, ok := ErrorCode(v)
	return ok && v.Get("message").Kind() == strictjson.KindString
}

// ErrorCode returns the code of an error object: an integer of at most nine digits, as all known ones are.
func ErrorCode(v strictjson.Value) (int, bool) {
	lit := v.Get("code").Number()
	code, digits := 0, lit
	if lit != "" && lit[0] == '-' {
		digits = lit[1:]
	}
	if len(digits) == 0 || len(digits) > 9 {
		return 0, false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		code = code*10 + int(c-'0')
	}
	if lit[0] == '-' {
		code = -code
	}
	return code, true
}

// NewError builds an error object; an absent data is left out.
func NewError(code int, message string, data strictjson.Value) strictjson.Value {
	return strictjson.Object(
		strictjson.Member{Name: "code", Value: strictjson.Number(fmt.Sprint(code))},
		strictjson.Member{Name: "message", Value: strictjson.String(message)},
		strictjson.Member{Name: "data", Value: data},
	)
}

// Append writes the message as JSON on one line, without a line break.
func (m Message) Append(dst []byte) []byte {
	dst = slices.Grow(dst, 64+len(m.Method)+m.ID.value.Size()+m.Params.Size()+m.Result.Size()+m.Error.Size())
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	member := func(name string, v strictjson.Value) {
		if v.Kind() != strictjson.KindAbsent {
			dst = append(dst, ',', '"')
			dst = append(dst, name...)
			dst = append(dst, '"', ':')
			dst = v.Append(dst)
		}
	}
	if m.ID.IsZero() && m.Kind == Response {
		dst = append(dst, `,"id":null`...)
	}
	member("id", m.ID.value)
	if m.Kind != Response {
		member("method", strictjson.String(m.Method))
	}
	member("params", m.Params)
	member("result", m.Result)
	member("error", m.Error)
	for _, x := range m.Extra {
		dst = append(dst, ',')
		dst = strictjson.String(x.Name).Append(dst)
		dst = append(dst, ':')
		dst = x.Value.Append(dst)
	}
	return append(dst, '}')
}
