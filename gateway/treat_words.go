package gateway

import (
	"strings"
	"unicode/utf8"

	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"

	"github.com/seed-4e9f7b04/hearsay/screen"
)

// Bounds of the treatment. Honest servers stay far below each.
const (
	maxName     = 128      // bytes of a name
	maxLine     = 256      // of a title or label
	maxShort    = 1 << 10  // of a progress, status or elicitation message
	maxLog      = 64 << 10 // of what a server logs
	maxProse    = 16 << 10 // of a description; the longest seen is 6 KB
	maxURI      = 4 << 10
	maxCursor   = 4 << 10
	maxState    = 64 << 10
	maxOpaque   = 1 << 10
	maxIcon     = 64 << 10
	maxValues   = 100           // of a completion, by the specification
	maxSchema   = 256 << 10     // bytes of a tool's schema; the longest seen is 30 KB
	maxDepth    = 32            // nested objects in a tool's schema
	maxBlocks   = 4096          // of content in one list
	maxFrames   = 3 * maxBlocks // in one message; with a note beside each block, and its words
	maxFindings = 64            // of one message
	maxCacheMS  = 3600_000      // how long a client may keep a list: an hour
	maxTokens   = 8 << 10       // a sampling request may ask for
	maxQuote    = 200           // runes of the outside world in one of our own sentences
)

// bounds of cleaned text, by the name the table uses.
var cleanBounds = map[string]int{"name": maxName, "line": maxLine, "prose": maxProse}

// plain removes what a reader cannot see and what a terminal obeys, then the envelope's token and all that looks like it.
func (p *pass) plain(s string) string {
	cleaned, found := screen.Clean(s)
	if len(found) > 0 {
		p.find("hidden", "")
	}
	defanged := envelope.NeutralizeLookalikes(cleaned)
	if defanged != cleaned {
		p.find("token", "")
	}
	return defanged
}

// bounded is plain, cut to a number of bytes; one line unless it is prose.
func (p *pass) bounded(s string, max int) string {
	s = p.plain(cut(s, 4*max)) // no need to clean what cannot stay
	if max < maxProse {
		s = oneLine(s)
	}
	if len(s) > max {
		p.find("cut", "")
		s = cut(s, max-len("…")) + "…"
	}
	return s
}

// cut returns at most max bytes of s, whole characters only.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\r\t\u0085\u2028\u2029") {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// Quote returns words of the outside world for a sentence of our own: cleaned, on one line, cut, in quotation marks. It is the
// only way outside words get into an error of the gateway.
func Quote(s string) string {
	s, _ = screen.Clean(cut(s, 8*maxQuote))
	s = oneLine(envelope.NeutralizeLookalikes(s))
	s = strings.NewReplacer("“", "'", "”", "'", "\"", "'").Replace(s)
	if utf8.RuneCountInString(s) > maxQuote {
		s = string([]rune(s)[:maxQuote]) + "…"
	}
	return "“" + s + "”"
}

// frame puts a text that the server wrote into an envelope: screened, without hidden characters, defanged. part says which part
// of the message it is where that is not plain, such as "structured content".
func (p *pass) frame(text, part string) string {
	if p.out.Framed >= maxFrames {
		p.fail(errFrames)
		return ""
	}
	if p.about.Screen != nil {
		screened, err := p.about.Screen(Text{p.where(), text})
		if err != nil {
			p.fail(err)
			return ""
		}
		text = screened
	}
	cleaned, found := screen.Clean(text)
	if len(found) > 0 {
		p.find("hidden", "")
	}
	if p.split(cleaned) {
		p.find("token-split", "")
		cleaned = "_" + cleaned
	}
	p.out.Texts = append(p.out.Texts, Text{p.where(), cleaned})
	p.out.Framed++
	return p.envelope(part).Wrap(cleaned)
}

// note is a framed sentence of our own about something the server sent.
func (p *pass) note(sentence string) strictjson.Value {
	p.out.Framed++
	return textBlock(p.envelope("note of the gateway").Wrap(sentence))
}

// splitWindow is how much of two neighbouring texts is looked at for a token that they make together: the token in its longest
// spelling, as entities, is below 150 bytes.
const splitWindow = 256

// split reports whether text goes on with a token that the text before it in the same list began. A client that joins the bodies
// of two frames would put it together.
func (p *pass) split(text string) bool {
	text = strings.TrimSpace(text)
	head := cut(text, splitWindow)
	joined := p.tail != "" && envelope.NeutralizeLookalikes(p.tail+head) != envelope.NeutralizeLookalikes(p.tail)+envelope.NeutralizeLookalikes(head)
	tail := text
	if len(text) < splitWindow {
		tail = p.tail + text
	}
	for len(tail) > splitWindow {
		_, n := utf8.DecodeRuneInString(tail[len(tail)-splitWindow:])
		tail = tail[len(tail)-splitWindow+n:]
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	p.tail = tail
	return joined
}

// envelope is the label of the frames of this message.
func (p *pass) envelope(part string) envelope.Envelope {
	if p.label.Kind == "" {
		p.label = p.newLabel()
	}
	e := p.label
	if part != "" {
		e.Attributes = append(e.Attributes[:len(e.Attributes):len(e.Attributes)], envelope.Attribute{Name: "part", Value: part})
	}
	return e
}

// word cleans a value for an attribute of a frame or a provenance: an attribute is escaped, not defanged, so it may not hold the
// token when it gets there.
func (p *pass) word(s string) string {
	s, _ = screen.Clean(cut(s, maxLine))
	return oneLine(envelope.NeutralizeLookalikes(s))
}

func (p *pass) newLabel() envelope.Envelope {
	e := envelope.Envelope{Kind: p.kind, Lookalikes: true}
	server := p.word(p.t.source.Server)
	e.Attributes = append(e.Attributes, envelope.Attribute{Name: "server", Value: server})
	from := "the MCP server " + server
	name, uri := p.word(p.about.Name), p.word(p.about.URI)
	switch p.kind {
	case "tool-result", "error", "task", "progress":
		if name != "" {
			e.Attributes = append(e.Attributes, envelope.Attribute{Name: "tool", Value: name})
		}
	case "prompt":
		e.Attributes = append(e.Attributes, envelope.Attribute{Name: "prompt", Value: name})
	}
	if uri != "" {
		e.Attributes = append(e.Attributes, envelope.Attribute{Name: "uri", Value: uri})
	}
	switch {
	case p.kind == "tool-result" && name != "":
		e.Provenance = "Returned by the tool " + name + " of " + from + "."
	case p.kind == "prompt":
		e.Provenance = "A prompt written by " + from + "."
	case p.kind == "resource":
		e.Provenance = "A resource of " + from + "."
	case p.kind == "error":
		e.Provenance = "An error reported by " + from + "."
	case p.kind == "sampling-request":
		e.Provenance = "Sent to be completed by " + from + "."
	case p.kind == "elicitation":
		e.Provenance = "Asked by " + from + "; hearsay did not ask this."
	default:
		e.Provenance = "Written by " + from + "."
	}
	return e
}

func frameKind(method string) string {
	switch method {
	case "tools/call", "tasks/result":
		return "tool-result"
	case "prompts/get":
		return "prompt"
	case "resources/read":
		return "resource"
	case "sampling/createMessage":
		return "sampling-request"
	case "elicitation/create":
		return "elicitation"
	case "notifications/message":
		return "log"
	case "notifications/progress":
		return "progress"
	case "tasks/get", "tasks/cancel", "tasks/list", "notifications/tasks", "notifications/tasks/status":
		return "task"
	}
	return "server-message"
}

// provenanceKey is the member of _meta in which every framed message says, as data, whose words it carries.
const provenanceKey = "hearsay/provenance"

// provenance adds that member. An error has no _meta of its own; there it stands in data.
func (p *pass) provenance(v strictjson.Value) strictjson.Value {
	if p.out.Framed == 0 && p.out.Dropped == 0 && p.out.Withheld == 0 && len(p.out.Findings) == 0 {
		return v
	}
	count := func(name string, n int) strictjson.Member {
		if n == 0 {
			return strictjson.Member{}
		}
		return strictjson.Member{Name: name, Value: number(n)}
	}
	members := []strictjson.Member{
		{Name: "server", Value: strictjson.String(p.word(p.t.source.Server))},
		{Name: "kind", Value: strictjson.String(p.kind)},
		{Name: "trust", Value: strictjson.String("untrusted")},
	}
	for _, m := range []strictjson.Member{count("framed", p.out.Framed), count("dropped", p.out.Dropped), count("withheld", p.out.Withheld)} {
		if m.Name != "" {
			members = append(members, m)
		}
	}
	if rules := p.rules(); len(rules) > 0 {
		members = append(members, strictjson.Member{Name: "found", Value: strictjson.Array(rules...)})
	}
	mark := strictjson.Object(members...)
	if p.kind == "error" {
		data := v.Get("data")
		return v.With("data", data.With("_meta", data.Get("_meta").With(provenanceKey, mark)))
	}
	return v.With("_meta", v.Get("_meta").With(provenanceKey, mark))
}

// rules lists each rule that found something, once.
func (p *pass) rules() []strictjson.Value {
	var rules []strictjson.Value
	seen := map[string]bool{}
	for _, f := range p.out.Findings {
		if !seen[f.Rule] {
			seen[f.Rule] = true
			rules = append(rules, strictjson.String(f.Rule))
		}
	}
	return rules
}
