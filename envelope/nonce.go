package envelope

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

const (
	// maxNonce has room for the hexadecimal form of any common MAC; minNonce refuses what could be guessed by trying.
	minNonce, maxNonce = 8, 128

	nonceBytes = 16 // 128 bits from crypto/rand
)

// NewNonce draws a nonce for the sealed form: 128 bits from crypto/rand in lower-case hexadecimal.
func NewNonce() string {
	var raw [nonceBytes]byte
	rand.Read(raw[:]) // never fails: the program ends where the system has no randomness
	return hex.EncodeToString(raw[:])
}

// seal settles the nonce: it draws another where the one given is none, or stands in the label or in the content. A drawn
// nonce needs no check: nobody can have known it.
func (e *Envelope) seal(contentHolds func(nonce string) bool) {
	e.Nonce = strings.ToLower(e.Nonce)
	if !isNonce(e.Nonce) || e.labelHolds(e.Nonce) || contentHolds(e.Nonce) {
		e.Nonce = NewNonce()
	}
}

func (e *Envelope) labelHolds(nonce string) bool {
	if strings.Contains(e.Provenance, nonce) || strings.Contains(e.Kind, nonce) {
		return true
	}
	for _, a := range e.Attributes {
		if strings.Contains(a.Name, nonce) || strings.Contains(a.Value, nonce) {
			return true
		}
	}
	return false
}

// isNonce reports whether s has the form of a nonce.
func isNonce(s string) bool {
	return len(s) >= minNonce && len(s) <= maxNonce && strings.Trim(s, "0123456789abcdef") == ""
}
