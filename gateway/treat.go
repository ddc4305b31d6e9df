package gateway

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Trust is what the operator says about a server. The zero value is Untrusted.
type Trust uint8

const (
	Untrusted  Trust = iota // every text is framed, cleaned or pinned as the table says
	FirstParty              // the operator vouches for the server: its messages pass as they are
)

// Structured is what becomes of structuredContent, which many hosts hand the model as it is.
type Structured uint8

const (
	Fold       Structured = iota // its JSON goes into the framed text; the member and the tool's outputSchema are removed
	Defang                       // kept; every string and every name in it loses hidden characters and the token
	PassOnward                   // kept as it is: the operator has looked at this server
)

// Source says whose messages are treated and what the operator chose for them. The zero value of each choice is the strict one.
type Source struct {
	Server            string // the name in the configuration
	Trust             Trust
	Structured        Structured
	FrameInstructions bool     // frame the server's instructions; otherwise they are dropped
	PassUnknown       bool     // pass members that the table lacks, cleaned; otherwise they are dropped and counted
	SamplingTools     bool     // let a sampling request bring tools; otherwise they are dropped
	OwnHosts          []string // host names of the gateway: an elicitation may not lead there
}

// About says what a message is. The zero value of a field means that it is not known or not so.
type About struct {
	Method  string // of the request that is answered, of the request or the notification itself
	Name    string // the server's own name of the tool or prompt; for a task's messages, of the tool it runs
	URI     string // the resource asked for
	Version string // the protocol version spoken with the server
	// Screen, if set, sees each text that a model or a person may read, decoded and before it is framed. What it returns takes
	// the text's place; an error refuses the whole message.
	Screen func(Text) (string, error)
}

// Text is one text of a message, without frame.
type Text struct {
	Where string // such as content[0].text
	Text  string
}

// Finding is something the treatment did that a log should show. It quotes nothing of the server.
type Finding struct {
	Where string `json:"where"`
	Rule  string `json:"rule"` // a stable token: hidden, token, unknown-member, unknown-content, …
	Note  string `json:"note,omitempty"`
}

// Treated is what the client gets, and what was done.
type Treated struct {
	// Refused, if not nil, says why nothing of the message may be passed on, in words fit for the client. Value is then absent.
	Refused error
	// Value is the result, error or params for the client.
	Value strictjson.Value
	// Texts is what a model or a person may read of it, for screens and the gate's state.
	Texts []Text
	// Structured is the structuredContent the server sent, before it was folded or defanged; absent if none.
	Structured strictjson.Value
	Findings   []Finding
	Framed     int // texts that were framed
	Dropped    int // members that were dropped
	Withheld   int // blocks and list entries that were withheld
}

// Treater turns the messages of one server into what its client gets. It holds no state between messages and may be used by
// several goroutines at once.
type Treater struct {
	source Source
}

// NewTreater returns the treatment for a server's messages.
func NewTreater(s Source) *Treater {
	s.OwnHosts = append([]string(nil), s.OwnHosts...)
	return &Treater{s}
}

// errNoRow refuses a method that the table lacks.
func errNoRow(name string) error {
	return fmt.Errorf("method %s is not one the gateway knows how to treat", Quote(name))
}

// Result treats the answer to a request of the client.
func (t *Treater) Result(a About, v strictjson.Value) Treated {
	m := channels.methods["client "+a.Method]
	if m == nil || m.result == "" {
		return Treated{Refused: errNoRow(a.Method)}
	}
	if v.Kind() != strictjson.KindObject {
		return t.refuse("the result of %s is not an object", a.Method)
	}
	typ, ok := resultType(m, a, v)
	if t.source.Trust == FirstParty {
		return Treated{Value: v}
	}
	p := t.begin(a)
	if !ok {
		return p.unknownResult(v)
	}
	return p.finish(p.top(typ, v, "result"))
}

// resultType chooses the rows for a result: the method's own, a task's or those of a request for input.
func resultType(m *method, a About, v strictjson.Value) (string, bool) {
	kind := v.Get("resultType")
	extension := kind.Kind() != strictjson.KindAbsent || a.Version >= "2026"
	switch {
	case kind.Str() == "input_required":
		return "InputRequiredResult", m.asks
	case kind.Str() == "task":
		return "ExtensionTask", m.tasks
	case kind.Kind() != strictjson.KindAbsent && kind.Str() != "complete":
		return "", false
	case m.tasks && v.Get("task").Kind() == strictjson.KindObject && v.Get("content").Kind() == strictjson.KindAbsent:
		return "CreateTaskResult", true
	case m.name == "tasks/get" && extension:
		return "ExtensionTask", true
	case m.name == "tasks/cancel" && extension:
		return "Empty", true
	}
	return m.result, true
}

// Error treats the error object that answers a request of the client.
func (t *Treater) Error(a About, v strictjson.Value) Treated {
	if v.Kind() != strictjson.KindObject {
		return t.refuse("the error of %s is not an object", a.Method)
	}
	if t.source.Trust == FirstParty {
		return Treated{Value: v}
	}
	p := t.begin(a)
	p.kind = "error"
	return p.finish(p.top("Error", v, "error"))
}

// Request treats the params of a request that the server sends its client.
func (t *Treater) Request(a About, params strictjson.Value) Treated {
	return t.params(a, params, false)
}

// Notification treats the params of a server's notification.
func (t *Treater) Notification(a About, params strictjson.Value) Treated {
	return t.params(a, params, true)
}

func (t *Treater) params(a About, params strictjson.Value, notification bool) Treated {
	m := channels.methods["server "+a.Method]
	if m == nil || (m.result == "") != notification {
		return Treated{Refused: errNoRow(a.Method)}
	}
	switch params.Kind() {
	case strictjson.KindAbsent:
		params = strictjson.Object()
	case strictjson.KindObject:
	default:
		return t.refuse("the params of %s are not an object", a.Method)
	}
	if t.source.Trust == FirstParty {
		return Treated{Value: params}
	}
	p := t.begin(a)
	return p.finish(p.top(m.params, params, "params"))
}

func (t *Treater) refuse(format string, args ...any) Treated {
	return Treated{Refused: fmt.Errorf(format, args...)}
}

// pass is the treatment of one message.
type pass struct {
	t     *Treater
	about About
	kind  string // of the frames
	label envelope.Envelope
	out   Treated
	path  []string // where we are, for findings
	tail  string   // the end of the last framed text of this list of blocks, see split
}

func (t *Treater) begin(a About) *pass {
	return &pass{t: t, about: a, kind: frameKind(a.Method)}
}

// top treats the outermost object. Where a needed member did not hold, nothing is passed on.
func (p *pass) top(typ string, v strictjson.Value, part string) strictjson.Value {
	if u, ok := unions[typ]; ok {
		typ = u.choose(v)
	}
	v, missing := p.object(typ, v)
	if missing != "" && p.out.Refused == nil {
		p.out.Refused = fmt.Errorf("the %s of %s from server %s has no usable %s", part, p.about.Method, Quote(p.t.source.Server), missing)
	}
	return v
}

func (p *pass) finish(v strictjson.Value) Treated {
	if p.out.Refused != nil {
		return Treated{Refused: p.out.Refused, Findings: p.out.Findings, Dropped: p.out.Dropped, Texts: p.out.Texts}
	}
	p.out.Value = p.provenance(v)
	return p.out
}

// fail refuses the message; the first reason stands.
func (p *pass) fail(err error) {
	if p.out.Refused == nil {
		p.out.Refused = err
	}
}

// unknownResult handles a result of a kind nobody knows: fail closed, its whole JSON as framed text where the answer can hold
// text, a refusal elsewhere.
func (p *pass) unknownResult(v strictjson.Value) Treated {
	p.find("unknown-result-type", "")
	text := textBlock(p.frame(string(v.Append(nil)), ""))
	switch p.about.Method {
	case "tools/call", "tasks/result":
		return p.finish(strictjson.Object(
			strictjson.Member{Name: "resultType", Value: strictjson.String("complete")},
			strictjson.Member{Name: "content", Value: strictjson.Array(text)},
			strictjson.Member{Name: "isError", Value: strictjson.Bool(true)}))
	case "prompts/get":
		return p.finish(strictjson.Object(
			strictjson.Member{Name: "resultType", Value: strictjson.String("complete")},
			strictjson.Member{Name: "messages", Value: strictjson.Array(userMessage(text))}))
	}
	p.fail(fmt.Errorf("the result of %s from server %s is of a kind the gateway does not know", p.about.Method, Quote(p.t.source.Server)))
	return p.finish(v)
}

func (u union) choose(v strictjson.Value) string {
	by := v.Get(u.by)
	if by.Kind() == strictjson.KindAbsent {
		return u.of[u.none]
	}
	return u.of[by.Str()]
}

// object treats the members of v by the rows of typ. missing names a needed member that is not there afterwards.
func (p *pass) object(typ string, v strictjson.Value) (_ strictjson.Value, missing string) {
	rows, object := channels.rows[typ], channels.objects[typ]
	if rows == nil || v.Kind() != strictjson.KindObject {
		return strictjson.Value{}, "value"
	}
	members := make([]strictjson.Member, 0, v.Len())
	for name, value := range v.Members() {
		row := rows[name]
		known := row != nil
		if !known {
			row = rows["*"]
		}
		p.path = append(p.path, name)
		if !known {
			p.path[len(p.path)-1] = "*" // an unknown name is the server's text
		}
		switch {
		case row == nil, !known && row.do == drop:
			if p.t.source.PassUnknown {
				name, ok := p.name(name)
				if ok {
					members = append(members, strictjson.Member{Name: name, Value: p.leaves(value)})
					break
				}
			}
			p.drop("unknown-member")
		case !known && !isWord(name): // a free name is text too
			p.drop("name")
		default:
			if value, ok := p.member(row, value); ok {
				members = append(members, strictjson.Member{Name: name, Value: value})
			}
		}
		p.path = p.path[:len(p.path)-1]
	}
	treated := p.after(object.name, v, strictjson.Object(members...))
	for _, name := range object.need {
		if treated.Get(name).Kind() == strictjson.KindAbsent {
			return treated, name
		}
	}
	return treated, ""
}

// member does what a row says. ok = false: the member does not pass, which was counted.
func (p *pass) member(f *field, v strictjson.Value) (_ strictjson.Value, ok bool) {
	switch f.do {
	case leave:
		return v, true
	case fixed:
		return strictjson.String(f.as), true
	case frame:
		return p.framed(f.as, v)
	case clean, pin:
		return p.cleaned(f.as, v)
	case check:
		if v, ok = checks[f.as](p, v); !ok {
			p.drop("invalid")
		}
		return v, ok
	case into:
		return p.into(f.as, v)
	}
	if f.as == "instructions" && p.t.source.FrameInstructions && v.Kind() == strictjson.KindString {
		return strictjson.String(p.frame(v.Str(), "")), true
	}
	p.drop("dropped")
	return strictjson.Value{}, false
}

// into treats a value whose members have rows of their own.
func (p *pass) into(as string, v strictjson.Value) (strictjson.Value, bool) {
	list, typ, _ := strings.Cut(as, "]")
	if typ == "" {
		typ, list = list, ""
	}
	switch {
	case as == "InputRequest":
		return p.inputRequest(v)
	case as == "ContentBlock", as == "SamplingMessageContentBlock":
		return v, true // the message as a whole is treated by messages
	case typ == "PromptMessage", typ == "SamplingMessage":
		return p.messages(typ, v)
	case list == "[" && unions[typ].by != "":
		return p.blocks(typ, v)
	case list == "sampling[":
		if !p.t.source.SamplingTools {
			p.drop("sampling-tools")
			return strictjson.Value{}, false
		}
		return p.list(typ, v)
	case list == "[":
		return p.list(typ, v)
	case strings.HasPrefix(as, "{}"):
		return p.fields(as[2:], v)
	}
	v, missing := p.object(typ, v)
	if missing != "" {
		p.drop("invalid")
	}
	return v, missing == ""
}

// framedLists are the types whose elements get a frame each: many small ones would grow many times their size.
var framedLists = map[string]bool{"ResourceContents": true, "Task": true, "ElicitRequestURLParams": true}

// list treats each element; one that lacks something it needs is withheld, the others stay.
func (p *pass) list(typ string, v strictjson.Value) (strictjson.Value, bool) {
	if v.Kind() != strictjson.KindArray {
		p.drop("invalid")
		return strictjson.Value{}, false
	}
	elems := make([]strictjson.Value, 0, v.Len())
	for i, e := range v.Elems() {
		if i == maxBlocks && framedLists[typ] {
			p.out.Withheld += v.Len() - i
			p.find("withheld", "too many")
			break
		}
		p.path = append(p.path, strconv.Itoa(i))
		if e, missing := p.object(typ, e); missing == "" {
			elems = append(elems, e)
		} else {
			p.out.Withheld++
			p.find("withheld", "no usable "+missing)
		}
		p.path = p.path[:len(p.path)-1]
	}
	return strictjson.Array(elems...), true
}

var errSecret = errors.New("the form asks for something that looks like a secret, which a server may not ask for in a form")

// fields treats the map of an elicitation's properties: free names, each with the same rows.
func (p *pass) fields(typ string, v strictjson.Value) (strictjson.Value, bool) {
	if v.Kind() != strictjson.KindObject {
		p.drop("invalid")
		return strictjson.Value{}, false
	}
	var members []strictjson.Member
	for name, value := range v.Members() {
		if looksSecret(name) || looksSecret(value.Get("title").Str()) {
			p.fail(errSecret)
		}
		p.path = append(p.path, "*")
		value, missing := p.object(typ, value)
		if missing != "" || !isWord(name) {
			p.drop("invalid")
		} else {
			members = append(members, strictjson.Member{Name: name, Value: value})
		}
		p.path = p.path[:len(p.path)-1]
	}
	return strictjson.Object(members...), true
}

// inputRequest treats one entry of an InputRequiredResult: a request of the server inside a result.
func (p *pass) inputRequest(v strictjson.Value) (strictjson.Value, bool) {
	name := v.Get("method").Str()
	switch name {
	case "elicitation/create", "sampling/createMessage", "roots/list":
	default:
		p.drop("input-method")
		return strictjson.Value{}, false
	}
	params := v.Get("params")
	if params.Kind() == strictjson.KindAbsent {
		params = strictjson.Object()
	}
	typ := channels.methods["server "+name].params
	if u, ok := unions[typ]; ok {
		typ = u.choose(params)
	}
	kind, label := p.kind, p.label
	p.kind, p.label = frameKind(name), envelope.Envelope{}
	params, missing := p.object(typ, params)
	p.kind, p.label = kind, label
	if missing != "" {
		p.drop("invalid")
		return strictjson.Value{}, false
	}
	return strictjson.Object(
		strictjson.Member{Name: "method", Value: strictjson.String(name)},
		strictjson.Member{Name: "params", Value: params}), true
}

func (p *pass) where() string { return strings.Join(p.path, ".") }

// find records what was done here. Findings are bounded: a hostile message can hold millions.
func (p *pass) find(rule, note string) {
	if len(p.out.Findings) < maxFindings {
		p.out.Findings = append(p.out.Findings, Finding{p.where(), rule, note})
	}
}

func (p *pass) drop(rule string) {
	p.out.Dropped++
	p.find(rule, "")
}
