package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind says what happened.
type Kind string

const (
	Start    Kind = "start"    // a process, session, server or sandbox began; Detail says which and how
	Stop     Kind = "stop"     // it ended
	Decision Kind = "decision" // the gate or the egress policy answered
	Refusal  Kind = "refusal"  // a message, definition or connection was refused before any decision
	Approval Kind = "approval" // a person answered, or nobody did in time
	Taint    Kind = "taint"    // authority shrank: untrusted text was read
	Result   Kind = "result"   // what came of a call: screens, sizes, outcome
	Change   Kind = "change"   // policy, pins or configuration were changed or reloaded
	Recover  Kind = "recover"  // the log itself: an unfinished line of a killed process was taken off its end
)

// Event is one line. The zero value of a field is left out. Strings are the writer's own words or labels, cut to
// [MaxString] bytes; nothing of a body, a credential or an argument's value belongs in any of them.
type Event struct {
	Time      time.Time `json:"time"` // set by Append when zero; UTC
	Kind      Kind      `json:"kind"`
	Session   string    `json:"session,omitzero"`
	Principal string    `json:"principal,omitzero"`
	Server    string    `json:"server,omitzero"`
	Tool      string    `json:"tool,omitzero"`   // or the MCP method, where no tool is called
	Target    string    `json:"target,omitzero"` // canonical host:port of a connection
	Addr      string    `json:"addr,omitzero"`   // the address that was judged
	Class     string    `json:"class,omitzero"`  // its class
	Answer    string    `json:"answer,omitzero"` // allow, ask, deny
	Rule      string    `json:"rule,omitzero"`
	Reason    string    `json:"reason,omitzero"` // stable token
	Text      string    `json:"text,omitzero"`   // one sentence for a person
	Shape     any       `json:"shape,omitzero"`  // of the arguments, see Shape
	Digest    string    `json:"digest,omitzero"` // of the whole call, see Digest
	// Detail holds what a kind has besides, by name.
	Detail map[string]string `json:"detail,omitzero"`
}

// MaxString bounds one string of a line, in bytes: long enough for any label, short enough that a flood of refusals stays readable.
const MaxString = 1024

// MaxLine bounds a line, in bytes. A longer event is written without its shape and detail, and says so.
const MaxLine = 64 << 10

const hashSize = sha256.Size

// appendLine appends the line for an encoded event and its line feed to dst.
func appendLine(dst []byte, seq uint64, prev [hashSize]byte, event []byte) ([]byte, [hashSize]byte) {
	start := len(dst)
	dst = slices.Grow(dst, prefixLen+len(event)+suffixLen+1)
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, `,"prev":"`...)
	dst = hex.AppendEncode(dst, prev[:])
	dst = append(dst, `",`...)
	dst = append(dst, event[1:len(event)-1]...) // the closing brace follows the hash
	sum := sha256.Sum256(dst[start:])
	dst = append(dst, hashKey...)
	dst = hex.AppendEncode(dst, sum[:])
	return append(dst, "\"}\n"...), sum
}

// prefixLen is the most that stands before the event on a line.
const prefixLen = len(`{"seq":`) + 20 + len(`,"prev":"`) + 2*hashSize + len(`",`)

const hashKey = `,"hash":"`

// suffixLen is the length of what follows the hashed body on a line, without the line feed.
const suffixLen = len(hashKey) + 2*hashSize + len(`"}`)

// encode writes an event as JSON, cut to what a line can hold.
func encode(e Event) ([]byte, error) {
	e.cut()
	event, err := encodeJSON(e)
	if err == nil && prefixLen+len(event)+suffixLen > MaxLine {
		e.Shape = nil
		e.Detail = map[string]string{"omitted": fmt.Sprintf("shape and detail of an event of %d bytes", len(event))}
		event, err = encodeJSON(e)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding audit event: %w", err)
	}
	return event, nil
}

func encodeJSON(e Event) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

func (e *Event) cut() {
	for _, s := range []*string{&e.Session, &e.Principal, &e.Server, &e.Tool, &e.Target, &e.Addr, &e.Class, &e.Answer, &e.Rule, &e.Reason, &e.Text, &e.Digest} {
		*s = cutString(*s)
	}
	if len(e.Detail) == 0 {
		return
	}
	detail := make(map[string]string, len(e.Detail)) // the caller's map stays as it is
	for k, v := range e.Detail {
		detail[cutString(k)] = cutString(v)
	}
	e.Detail = detail
}

func cutString(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= MaxString {
		return s
	}
	n := MaxString
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:n], len(s))
}
