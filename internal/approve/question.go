package approve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/audit"
)

// MaxShown bounds what a question may show, in bytes. What cannot be shown whole cannot be approved.
const MaxShown = 256 << 10

// Question is one call that waits for a person.
type Question struct {
	Session   string
	Principal string
	Server    string
	Tool      string
	Args      any    // decoded JSON of the call's arguments; every leaf is shown
	Call      []byte // the exact call, as it will be sent on; the digest covers it
	Directory string // where the call acts, if it depends on that
	Policy    string // version of the policy that asks
	Effects   []string
	Rule      string
	Why       string   // one sentence: why this is asked
	Reads     []string // what was read before, with provenance, newest last
	// Ungrounded are the arguments no trusted text vouches for.
	Ungrounded []Ungrounded
	Warnings   []string // what else a person should know: a server without a sandbox, an untested pin
	// HighRisk keeps the question off channels that the agent's host answers.
	HighRisk bool
	// Elicit asks through the MCP client, if it can. It must return when ctx ends.
	Elicit func(ctx context.Context, text string) (Verdict, error)
}

// Ungrounded is one argument that no trusted text vouches for.
type Ungrounded struct{ Path, Kind, Value, Why string }

// Digest names the exact call: tool, server, directory, policy and every byte of it.
func (q Question) Digest() string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(q.Server), []byte(q.Tool), []byte(q.Directory), []byte(q.Policy), q.Call} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Event is the audit's record of an answer.
func (q Question) Event(a Answer) audit.Event {
	return audit.Event{
		Kind: audit.Approval, Session: q.Session, Principal: q.Principal, Server: q.Server, Tool: q.Tool, Rule: q.Rule,
		Answer: a.Verdict.String(), Reason: a.Reason, Digest: q.Digest(), Shape: audit.Shape(q.Args), Detail: map[string]string{"channel": a.Channel},
	}
}

func (q Question) size() int {
	n := len(q.Call)
	for _, r := range q.rows() {
		n += len(r.Path) + len(r.Value)
	}
	return n
}

// row is one leaf of the arguments.
type row struct {
	Path  string
	Value string
	Text  bool // a string, rather than a number, a truth value or an empty container
}

// rows lists every leaf of the arguments by its path, members in order of their names.
func (q Question) rows() []row {
	var rows []row
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if len(v) == 0 {
				rows = append(rows, row{path, "{}", false})
			}
			names := make([]string, 0, len(v))
			for name := range v {
				names = append(names, name)
			}
			sort.Strings(names)
			for _, name := range names {
				walk(join(path, name), v[name])
			}
		case []any:
			if len(v) == 0 {
				rows = append(rows, row{path, "[]", false})
			}
			for i, e := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), e)
			}
		case string:
			rows = append(rows, row{path, v, true})
		default:
			text, err := json.Marshal(v)
			if err != nil {
				text = fmt.Append(nil, v)
			}
			rows = append(rows, row{path, string(text), false})
		}
	}
	walk("", q.Args)
	return rows
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Text is the question for a terminal or an elicitation: every field, one a line, nothing hidden.
func (q Question) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Allow %s on %s?\n", Visible(q.Tool), Visible(q.Server))
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", name, Visible(value))
		}
	}
	field("why", q.Why)
	field("effects", strings.Join(q.Effects, ", "))
	field("rule", q.Rule)
	field("directory", q.Directory)
	field("for", q.Principal)
	field("session", q.Session)
	for _, w := range q.Warnings {
		field("warning", w)
	}
	b.WriteString("Arguments\n")
	for _, r := range q.rows() {
		value := Visible(r.Value)
		if r.Text {
			value = `"` + value + `"`
		}
		fmt.Fprintf(&b, "  %s = %s\n", Visible(r.Path), value)
	}
	if len(q.Ungrounded) > 0 {
		b.WriteString("Nothing you or your operator said vouches for\n")
		for _, u := range q.Ungrounded {
			fmt.Fprintf(&b, "  %s (%s) %s: %s\n", Visible(u.Path), Visible(u.Kind), Visible(u.Value), Visible(u.Why))
		}
	}
	if len(q.Reads) > 0 {
		b.WriteString("Read before\n")
		for _, r := range q.Reads {
			fmt.Fprintf(&b, "  %s\n", Visible(r))
		}
	}
	fmt.Fprintf(&b, "Call %s\n", q.Digest())
	return b.String()
}
