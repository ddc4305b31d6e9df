package jsonrpc

import "github.com/seed-4e9f7b04/hearsay/internal/strictjson"

// DecodeText reads one message from its text; a batch is none. Its errors are *[BadMessage].
func DecodeText(text string, lim strictjson.Limits) (Message, error) {
	v, err := strictjson.ParseString(text, lim)
	if err != nil {
		return Message{}, guess(text, err)
	}
	m, err := Decode(v)
	if err != nil {
		return Message{}, badMessage(m, err)
	}
	return m, nil
}

// TooLarge is the error for a message over the bound, of which head is the beginning.
func TooLarge(head string) *BadMessage { return guess(head, strictjson.ErrTooLarge) }
