package envelope

import (
	"fmt"
	"log/slog"
	"strconv"
)

// Untrusted holds text from outside until it is framed. Printing, logging or marshalling it gives a placeholder with its
// length, never the text: text that is forgotten somewhere is lost there, and not believed.
//
// The two ways out are [Untrusted.Wrap] and [Untrusted.RawUntrustedText]; the second has a name that can be searched for.
//
// The zero value holds the empty text.
type Untrusted struct {
	// A pointer, because fmt shows the fields of a value, without asking it, for a verb it does not know.
	text *string
}

// NewUntrusted takes text in.
func NewUntrusted(text string) Untrusted { return Untrusted{&text} }

// Wrap returns the text in the frame that label describes.
func (u Untrusted) Wrap(label Envelope) string { return label.Wrap(u.RawUntrustedText()) }

// RawUntrustedText returns the text itself. Each place that calls it has to say why the text does not reach a model, a person
// or a terminal unmarked.
func (u Untrusted) RawUntrustedText() string {
	if u.text == nil {
		return ""
	}
	return *u.text
}

// Len is the length of the text in bytes.
func (u Untrusted) Len() int { return len(u.RawUntrustedText()) }

// String returns the placeholder.
func (u Untrusted) String() string {
	return "[untrusted text of " + strconv.Itoa(len(u.RawUntrustedText())) + " bytes, not framed]"
}

// Format writes the placeholder for every verb and flag: %#v and %x would show the text.
func (u Untrusted) Format(f fmt.State, _ rune) { fmt.Fprint(f, u.String()) }

// GoString returns the placeholder.
func (u Untrusted) GoString() string { return u.String() }

// MarshalJSON gives the placeholder as a JSON string.
func (u Untrusted) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, u.String()), nil }

// MarshalText gives the placeholder.
func (u Untrusted) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// LogValue gives the placeholder.
func (u Untrusted) LogValue() slog.Value { return slog.StringValue(u.String()) }
