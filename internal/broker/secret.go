package broker

import (
	"bytes"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

const (
	// maxSecret bounds a secret: far above any token, far below what a header may hold.
	maxSecret = 16 << 10
	// minSecret is the least that can be found again in a response without masking ordinary text.
	minSecret = 8
)

const redacted = "[secret]"

// Secret is a credential's value. It cannot be printed, logged or encoded: every such way gives "[secret]". The value leaves
// it through [Credential.Stamp], [Credential.Replace] and [Secret.Reveal] alone. The zero value is no secret.
type Secret struct {
	value func() []byte // nil for none; a function, since fmt looks through pointers and past methods in fields of others
}

// NewSecret takes a secret that is already in memory; line ends behind it are cut. It refuses what no header can carry.
func NewSecret(value []byte) (Secret, error) {
	v := bytes.Clone(bytes.TrimRight(value, "\r\n"))
	switch {
	case len(v) == 0:
		return Secret{}, errors.New("secret is empty")
	case len(v) > maxSecret:
		return Secret{}, fmt.Errorf("secret is longer than %d bytes", maxSecret)
	}
	for _, c := range v {
		if c < ' ' || c >= 0x7f {
			return Secret{}, errors.New("secret holds a character that no header carries")
		}
	}
	if v[0] == ' ' || v[len(v)-1] == ' ' {
		return Secret{}, errors.New("secret begins or ends with a space")
	}
	return Secret{func() []byte { return v }}, nil
}

// ReadSecret reads "file:PATH" (line ends at the end are cut) or "env:NAME". A variable stays in this
// process's environment, to be read again at a reload: who starts a child leaves it out. The error never holds the value.
func ReadSecret(source string) (Secret, error) {
	kind, rest, _ := strings.Cut(source, ":")
	switch {
	case rest == "":
	case kind == "file":
		f, err := os.Open(rest)
		if err != nil {
			return Secret{}, fmt.Errorf("reading a secret: %w", err)
		}
		defer f.Close()
		v, err := io.ReadAll(io.LimitReader(f, maxSecret+2))
		if err != nil {
			return Secret{}, fmt.Errorf("reading a secret: %w", err)
		}
		s, err := NewSecret(v)
		clear(v)
		if err != nil {
			return Secret{}, fmt.Errorf("%s: %w", rest, err)
		}
		return s, nil
	case kind == "env":
		v, ok := os.LookupEnv(rest)
		if !ok {
			return Secret{}, fmt.Errorf("environment variable %s is not set", rest)
		}
		s, err := NewSecret([]byte(v))
		if err != nil {
			return Secret{}, fmt.Errorf("environment variable %s: %w", rest, err)
		}
		return s, nil
	}
	return Secret{}, errors.New(`a secret is written as file:PATH or env:NAME, never in the file itself`)
}

// IsSet reports whether there is a value.
func (s Secret) IsSet() bool { return s.value != nil }

// Reveal gives the value, for a login at a proxy or a header of our own request.
func (s Secret) Reveal() string { return string(s.bytes()) }

// Equal compares in constant time for one length. No secret equals nothing, the empty text included.
func (s Secret) Equal(text string) bool {
	return s.value != nil && subtle.ConstantTimeCompare(s.value(), []byte(text)) == 1
}

func (s Secret) bytes() []byte {
	if s.value == nil {
		return nil
	}
	return s.value()
}

// Format writes the redaction for every verb and flag.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String gives the redaction.
func (s Secret) String() string { return redacted }

// GoString gives the redaction.
func (s Secret) GoString() string { return redacted }

// MarshalText gives the redaction, and with it every encoder that asks for text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON gives the redaction.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue gives the redaction.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// replaceIn puts the secret in place of each placeholder in a header value, looking into Basic credentials too (RFC 7617),
// where git and curl put a password. It reports whether there was one.
func (s Secret) replaceIn(value, placeholder []byte) ([]byte, bool) {
	if bytes.Contains(value, placeholder) {
		return bytes.ReplaceAll(value, placeholder, s.bytes()), true
	}
	if len(value) > 6 && strings.EqualFold(string(value[:6]), "basic ") {
		plain, err := base64.StdEncoding.DecodeString(strings.TrimLeft(string(value[6:]), " "))
		if err == nil && bytes.Contains(plain, placeholder) {
			plain = bytes.ReplaceAll(plain, placeholder, s.bytes())
			out := base64.StdEncoding.AppendEncode(bytes.Clone(value[:6]), plain)
			clear(plain)
			return out, true
		}
	}
	return value, false
}
