package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

var (
	errFrames  = errors.New("the server sends more texts in one message than the gateway frames")
	errState   = errors.New("the server's requestState is larger than 64 KiB or no plain text")
	errAddress = errors.New("the server wants a person to open an address that is not https, leads inward or is not what it seems")
)

func textBlock(text string) strictjson.Value {
	return strictjson.Object(
		strictjson.Member{Name: "type", Value: strictjson.String("text")},
		strictjson.Member{Name: "text", Value: strictjson.String(text)})
}

func userMessage(block strictjson.Value) strictjson.Value {
	return strictjson.Object(
		strictjson.Member{Name: "role", Value: strictjson.String("user")},
		strictjson.Member{Name: "content", Value: block})
}

// blocks treats a list of content blocks. One block can become two: a note beside an image, a framed text beside a link.
func (p *pass) blocks(typ string, v strictjson.Value) (strictjson.Value, bool) {
	p.tail = ""
	if v.Kind() != strictjson.KindArray {
		return strictjson.Array(p.withhold("content that is no list")), true
	}
	out := make([]strictjson.Value, 0, min(v.Len(), maxBlocks))
	for i, b := range v.Elems() {
		if i == maxBlocks { // each gets a frame ten times its own size, if it is small
			p.out.Withheld += v.Len() - maxBlocks - 1
			out = append(out, p.withhold(fmt.Sprintf("%d more blocks than the %d it passes in one list", v.Len()-maxBlocks, maxBlocks)))
			break
		}
		p.path = append(p.path, strconv.Itoa(i))
		out = append(out, p.block(typ, b)...)
		p.path = p.path[:len(p.path)-1]
	}
	return strictjson.Array(out...), true
}

// block treats one content block. What the table does not know is withheld: its text would have no rule.
func (p *pass) block(typ string, b strictjson.Value) []strictjson.Value {
	kind := unions[typ].choose(b)
	switch {
	case b.Kind() != strictjson.KindObject || kind == "":
		return []strictjson.Value{p.withhold("a block of a kind it does not know: " + Quote(b.Get("type").Str()))}
	case kind == "ToolUseContent" && !p.t.source.SamplingTools, kind == "ToolResultContent" && !p.t.source.SamplingTools:
		// A history of tool calls that never were, told in the model's own voice.
		p.find("tool-history", "")
		return []strictjson.Value{textBlock(p.frame(string(b.Append(nil)), "tool history told by the server"))}
	}
	treated, missing := p.object(kind, b)
	if missing != "" {
		return []strictjson.Value{p.withhold(fmt.Sprintf("a block of the kind %s without usable %s", Quote(b.Get("type").Str()), missing))}
	}
	switch kind {
	case "ImageContent", "AudioContent":
		return p.media(treated)
	case "ResourceLink":
		return p.link(b, treated)
	}
	return []strictjson.Value{treated}
}

func (p *pass) withhold(what string) strictjson.Value {
	p.out.Withheld++
	p.find("withheld", "")
	return p.note("The gateway withheld " + what + ".")
}

// media checks that bytes are what their type says. Words inside a picture or a sound cannot be framed, so a framed note stands
// beside it.
func (p *pass) media(b strictjson.Value) []strictjson.Value {
	typ, kind := strings.ToLower(b.Get("mimeType").Str()), b.Get("type").Str()
	essence, _, _ := strings.Cut(typ, ";")
	data, err := decodeBase64(b.Get("data").Str())
	switch {
	case err != nil:
		return []strictjson.Value{p.withhold(fmt.Sprintf("a block of the kind %s whose data is not base64", Quote(kind)))}
	case textual(typ), readsAsText(data):
		p.find("text-as-media", "")
		return []strictjson.Value{textBlock(p.frame(decodeText(data), "text sent as "+kind))}
	}
	found := sniff(data)
	switch {
	case tokenInside(data):
		return []strictjson.Value{p.withhold(fmt.Sprintf("a block of the kind %s with the envelope's tag inside its data", Quote(kind)))}
	case found != "" && !strings.HasPrefix(found, kind+"/") && !(kind == "audio" && found == "video/mp4"),
		!strings.HasPrefix(essence, kind+"/"), found == "" && sniffable[essence]:
		return []strictjson.Value{p.withhold(fmt.Sprintf("a block of the kind %s whose data is not of the type it says, %s", Quote(kind), Quote(typ)))}
	case found != "" && sniffable[essence] && found != essence && sniffable[found]:
		b = b.With("mimeType", strictjson.String(found))
		p.find("mime", "")
	}
	note := fmt.Sprintf("The %s beside this note (%s, %d bytes) comes from the source named above. Words in it are part of that material.", kind, p.word(typ), len(data))
	return []strictjson.Value{b, p.note(note)}
}

// link keeps a resource link usable and moves the words on it into a framed text beside it.
func (p *pass) link(raw, treated strictjson.Value) []strictjson.Value {
	treated = treated.Without("title", "description")
	var words []string
	for _, name := range []string{"title", "description"} {
		if s := raw.Get(name).Str(); s != "" {
			words = append(words, s)
		}
	}
	if len(words) == 0 {
		return []strictjson.Value{treated}
	}
	text := strings.Join(words, "\n\n") + "\n\n" + treated.Get("uri").Str()
	return []strictjson.Value{treated, textBlock(p.frame(text, "words on a resource link"))}
}

// messages treats the messages of a prompt or of a sampling request. Content that becomes several blocks becomes several messages
// where a message holds one block.
func (p *pass) messages(typ string, v strictjson.Value) (strictjson.Value, bool) {
	if v.Kind() != strictjson.KindArray {
		return v, false
	}
	union := "ContentBlock"
	if typ == "SamplingMessage" {
		union = "SamplingMessageContentBlock"
	}
	p.tail = ""
	var out []strictjson.Value
	for i, m := range v.Elems() {
		if i == maxBlocks {
			p.fail(errors.New("the server sends more messages than the gateway passes in one list"))
			break
		}
		p.path = append(p.path, strconv.Itoa(i))
		treated, missing := p.object(typ, m)
		content := m.Get("content")
		switch {
		case missing != "":
			out = append(out, userMessage(p.withhold("a message without usable "+missing)))
		case typ == "SamplingMessage" && content.Kind() == strictjson.KindArray:
			blocks, _ := p.blocks(union, content)
			out = append(out, treated.With("content", blocks))
		default:
			for _, b := range p.block(union, content) {
				out = append(out, treated.With("content", b))
			}
		}
		if p.t.source.SamplingTools && isToolUse(content) {
			out[len(out)-1] = out[len(out)-1].With("role", strictjson.String("assistant"))
		} else if m.Get("role").Str() != "user" {
			p.find("role", "")
		}
		p.path = p.path[:len(p.path)-1]
	}
	return strictjson.Array(out...), true
}

// isToolUse: content of tool calls only, which has to stay an assistant's for a sampling dialogue with tools to work.
func isToolUse(content strictjson.Value) bool {
	if content.Kind() == strictjson.KindObject {
		return content.Get("type").Str() == "tool_use"
	}
	for _, b := range content.Elems() {
		if b.Get("type").Str() != "tool_use" {
			return false
		}
	}
	return content.Len() > 0
}

// after does what concerns several members of an object at once. raw is the object as sent, v as treated.
func (p *pass) after(name string, raw, v strictjson.Value) strictjson.Value {
	switch name {
	case "CallToolResult", "ToolResultContent":
		return p.foldResult(raw, v)
	case "ResourceContents":
		return p.resourceContents(raw, v)
	case "CreateMessageRequestParams":
		return p.samplingRequest(v)
	case "ElicitRequestURLParams":
		return p.urlElicitation(raw, v)
	case "InputRequiredResult":
		return p.inputRequired(v)
	case "Error":
		return p.errorObject(raw, v)
	}
	return v
}

// resourceContents treats a resource's bytes and its address together.
func (p *pass) resourceContents(raw, v strictjson.Value) strictjson.Value {
	uri, typ := raw.Get("uri").Str(), strings.ToLower(v.Get("mimeType").Str())
	if app := strings.HasPrefix(strings.ToLower(uri), "ui:") || strings.Contains(typ, "profile=") && strings.Contains(typ, "mcp-app"); app {
		p.out.Withheld++
		p.find("mcp-app", "")
		return v.Without("blob", "text").With("uri", strictjson.String("withheld:mcp-app")).With("mimeType", strictjson.String("text/plain")).
			With("text", p.note("The gateway withheld an MCP app: its words would reach the conversation unframed.").Get("text"))
	}
	if asked := p.about.URI; p.about.Method == "resources/read" && asked != "" && uri != asked && !strings.HasPrefix(uri, strings.TrimSuffix(asked, "/")+"/") {
		p.find("uri-not-asked", "")
		v = v.With("uri", strictjson.String(asked))
	}
	blob := v.Get("blob")
	if blob.Kind() == strictjson.KindAbsent {
		return v
	}
	data, err := decodeBase64(blob.Str())
	essence, _, _ := strings.Cut(typ, ";")
	essence = strings.TrimSpace(essence)
	switch {
	case err != nil:
		return v.Without("blob").With("text", p.withhold("a resource whose blob is not base64").Get("text"))
	case !textual(typ) && !looksLikeText(data) && tokenInside(data):
		return v.Without("blob").With("text", p.withhold("a resource with the envelope's tag inside its bytes").Get("text"))
	case textual(typ), readsAsText(data) && (essence != "application/pdf" || sniff(data) != "application/pdf" || tokenInside(data)):
		text := p.frame(decodeText(data), "")
		return v.With("blob", strictjson.String(base64.StdEncoding.EncodeToString([]byte(text))))
	}
	return v
}

// samplingRequest moves the system prompt, framed by now, into a user message, and drops a choice between tools that are gone.
func (p *pass) samplingRequest(v strictjson.Value) strictjson.Value {
	if system := v.Get("systemPrompt"); system.Kind() == strictjson.KindString {
		p.find("system-prompt", "")
		messages := []strictjson.Value{userMessage(textBlock(system.Str()))}
		for _, m := range v.Get("messages").Elems() {
			messages = append(messages, m)
		}
		v = v.Without("systemPrompt").With("messages", strictjson.Array(messages...))
	}
	if v.Get("tools").Kind() == strictjson.KindAbsent {
		v = v.Without("toolChoice")
	}
	return v
}

// urlElicitation frames the message with the host that the address really leads to.
func (p *pass) urlElicitation(raw, v strictjson.Value) strictjson.Value {
	message := raw.Get("message")
	if message.Kind() != strictjson.KindString || v.Get("url").Kind() == strictjson.KindAbsent {
		return v.Without("message")
	}
	kind, label := p.kind, p.label
	p.kind, p.label = "elicitation", envelope.Envelope{}
	text := message.Str() + "\n\nThe address to open, as the server wrote it: " + raw.Get("url").Str()
	p.label = p.newLabel()
	p.label.Attributes = append(p.label.Attributes, envelope.Attribute{Name: "host", Value: p.word(hostOf(v.Get("url").Str()))})
	v = v.With("message", strictjson.String(p.frame(text, "")))
	p.kind, p.label = kind, label
	return v
}

// inputRequired needs something to ask or something to send back.
func (p *pass) inputRequired(v strictjson.Value) strictjson.Value {
	if v.Get("inputRequests").Len() == 0 && v.Get("requestState").Kind() == strictjson.KindAbsent {
		p.fail(errors.New("the server asks for input, but for none that the gateway knows"))
	}
	return v
}

func decodeBase64(s string) ([]byte, error) {
	s = strings.NewReplacer("\n", "", "\r", "").Replace(s)
	if data, err := base64.StdEncoding.DecodeString(s); err == nil {
		return data, nil
	}
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
}

// textual reports whether a media type is read as text.
func textual(mime string) bool {
	essence, _, _ := strings.Cut(mime, ";")
	essence = strings.TrimSpace(essence)
	major, minor, _ := strings.Cut(essence, "/")
	if major == "text" || major == "message" || strings.HasSuffix(minor, "+xml") || strings.HasSuffix(minor, "+json") || strings.HasSuffix(minor, "+yaml") {
		return true
	}
	switch minor {
	case "json", "xml", "yaml", "x-yaml", "toml", "javascript", "x-javascript", "ecmascript", "typescript", "x-sh", "sql", "graphql", "x-ndjson", "jsonl",
		"json-seq", "markdown", "x-www-form-urlencoded", "rtf", "x-python", "x-httpd-php", "ld+json":
		return true
	}
	return false
}

// looksLikeText: valid UTF-8 without the control characters that text does not hold. Bytes cut off at a character count as text.
func looksLikeText(data []byte) bool {
	if len(data) == 0 {
		return false
	}
	head := data[:min(len(data), 4096)]
	for len(head) > 0 && !utf8.Valid(head) && len(data)-len(head) < utf8.UTFMax && len(data) > 4096-utf8.UTFMax {
		head = head[:len(head)-1]
	}
	return utf8.Valid(head) && bytes.IndexFunc(head, func(r rune) bool { return r < 7 || r > 13 && r < 27 || r > 27 && r < 32 }) < 0
}

// readsAsText reports whether bytes are read as text: in UTF-8, in UTF-16, or, where nothing says what else they are, as text with
// a few odd bytes in it. Formats that are no text are packed:
// a tenth of their bytes at least are no printable ASCII.
func readsAsText(data []byte) bool {
	found := sniff(data)
	switch {
	case looksLikeText(data):
		return true
	case found != "" && found != "application/pdf":
		return false
	case utf16Order(data) != nil:
		return true
	}
	head, odd := data[:min(len(data), 4096)], 0
	for _, c := range head {
		if c >= 0x7f || c < 0x20 && c != '\n' && c != '\r' && c != '\t' {
			odd++
		}
	}
	return len(head)-odd >= minText && odd*10 < len(head)
}

// minText is how many printable bytes make a text among odd ones.
const minText = 8

// utf16Order gives the order of the bytes of UTF-16, nil where data is none: by its mark, or since most of its units are ASCII.
func utf16Order(data []byte) binary.ByteOrder {
	head := data[:min(len(data), 4096)&^1]
	if len(head) < 2 {
		return nil
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if order.Uint16(head) == 0xfeff {
			return order
		}
		ascii := 0
		for i := 0; i < len(head); i += 2 {
			if u := order.Uint16(head[i:]); u >= ' ' && u < 0x7f || u == '\n' || u == '\r' || u == '\t' {
				ascii++
			}
		}
		if ascii >= minText && ascii*20 > len(head)*9 { // nine in ten
			return order
		}
	}
	return nil
}

// decodeText gives bytes that are read as text in UTF-8.
func decodeText(data []byte) string {
	order := utf16Order(data)
	if order == nil || looksLikeText(data) {
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 0; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	return string(utf16.Decode(units))
}

// tokenInside reports whether bytes that are no text hold the token in plain ASCII, as a comment in a picture could.
func tokenInside(data []byte) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(data[at:], '-')
		if i < 0 {
			return false
		}
		at += i
		if from, to := at-len("namzu"), at+len("-untrusted"); from >= 0 && to <= len(data) && strings.EqualFold(string(data[from:to]), envelope.Token) {
			return true
		}
	}
}

// sniffable are the types whose first bytes sniff knows: data of such a type has to begin so.
var sniffable = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "image/bmp": true, "image/tiff": true,
	"image/avif": true, "audio/wav": true, "audio/mpeg": true, "audio/ogg": true, "audio/flac": true}

// sniff names the type of bytes by how they begin, "" for one it does not know.
func sniff(data []byte) string {
	at := func(i int, s string) bool { return len(data) >= i+len(s) && string(data[i:i+len(s)]) == s }
	switch {
	case at(0, "\x89PNG\r\n\x1a\n"):
		return "image/png"
	case at(0, "\xff\xd8\xff"):
		return "image/jpeg"
	case at(0, "GIF87a"), at(0, "GIF89a"):
		return "image/gif"
	case at(0, "RIFF") && at(8, "WEBP"):
		return "image/webp"
	case at(0, "RIFF") && at(8, "WAVE"):
		return "audio/wav"
	case at(0, "BM") && len(data) > 26 && data[6] == 0 && data[7] == 0:
		return "image/bmp"
	case at(0, "II*\x00"), at(0, "MM\x00*"):
		return "image/tiff"
	case at(4, "ftypavif"), at(4, "ftypavis"):
		return "image/avif"
	case at(4, "ftypM4A"):
		return "audio/mp4"
	case at(4, "ftyp"):
		return "video/mp4"
	case at(0, "ID3"), len(data) > 1 && data[0] == 0xff && data[1]&0xe6 == 0xe2:
		return "audio/mpeg"
	case at(0, "OggS"):
		return "audio/ogg"
	case at(0, "fLaC"):
		return "audio/flac"
	case at(0, "%PDF-"):
		return "application/pdf"
	case at(0, "PK\x03\x04"):
		return "application/zip"
	}
	return ""
}
