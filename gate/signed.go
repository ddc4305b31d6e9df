package gate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An agent host that holds a key can say what the user said: it sends the text with a signature, in a header or in the
// _meta of a request. The agent itself must not reach the key.
const (
	// SignedFor is how long a signature is good: long enough for clocks that differ, short enough that words of last week
	// cannot be played into a new session.
	SignedFor = 5 * time.Minute
	// MinKey is the least length of a key in bytes.
	MinKey = 32
	// MaxWords bounds one text of a user.
	MaxWords = 256 << 10

	signedPrefix = "v1"
)

// SignWords signs what the user said to the principal at the time given. The key has at least [MinKey] bytes.
func SignWords(key []byte, principal, text string, at time.Time) (string, error) {
	if len(key) < MinKey {
		return "", fmt.Errorf("signing the user's words: the key has fewer than %d bytes", MinKey)
	}
	if len(text) > MaxWords {
		return "", fmt.Errorf("signing the user's words: more than %d bytes", MaxWords)
	}
	unix := strconv.FormatInt(at.Unix(), 10)
	return signedPrefix + "." + unix + "." + base64.RawURLEncoding.EncodeToString(wordsMAC(key, principal, text, unix)), nil
}

// errSignature says no more: what is wrong with a signature is for whoever holds the key.
var errSignature = errors.New("the user's words: the signature is not good")

// VerifyWords checks a signature of [SignWords] and gives the words as an observation.
func VerifyWords(key []byte, principal, text, signature string, now time.Time) (Observation, error) {
	if len(key) < MinKey || len(text) > MaxWords {
		return Observation{}, errSignature
	}
	prefix, rest, _ := strings.Cut(signature, ".")
	unix, mac64, ok := strings.Cut(rest, ".")
	if !ok || prefix != signedPrefix || len(unix) > 12 {
		return Observation{}, errSignature
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(mac64)
	if err != nil || !hmac.Equal(mac, wordsMAC(key, principal, text, unix)) {
		return Observation{}, errSignature
	}
	sec, err := strconv.ParseInt(unix, 10, 64)
	if err != nil {
		return Observation{}, errSignature
	}
	if age := now.Sub(time.Unix(sec, 0)); age > SignedFor || age < -SignedFor {
		return Observation{}, errors.New("the user's words: the signature is too old, or of a clock that differs")
	}
	return Observation{Source: "user", Trust: User, Text: text}, nil
}

// wordsMAC signs each part with its length, so that no two readings sign the same bytes.
func wordsMAC(key []byte, principal, text, unix string) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range []string{"hearsay user words", signedPrefix, unix, principal, text} {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}
