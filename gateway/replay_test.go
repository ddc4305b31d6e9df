package gateway

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// A transcript is a file of JSON lines that a hostile server plays. The first line says what it is about; each other line is a
// step: wait for a message of the client ("on"), write ("send", "raw", "b64", "gen", "stderr"), or misbehave ("hang", "close",
// "stopread", "loop", "hold"). $ID, $PREVID, $CALLID, $TOKEN, $PV, $ARGS and $IDNUM stand for what the client sent.

// header is the first line of a transcript.
type header struct {
	Case, Title, Class, Era, Surface, Expect string
	Want                                     []string // must stand in some text that the client gets
	Forbid                                   []string // must stand in none
	Dead                                     bool     // the session need not answer afterwards
}

// step is one line, its members as written.
type step map[string]json.RawMessage

func readTranscript(path string) (header, []step, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return header{}, nil, err
	}
	var h header
	var steps []step
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var s step
		err := json.Unmarshal(line, &s)
		if i == 0 {
			err = json.Unmarshal(line, &h)
		} else {
			steps = append(steps, s)
		}
		if err != nil {
			return h, nil, fmt.Errorf("%s line %d: %w", path, i+1, err)
		}
	}
	return h, steps, nil
}

// player plays one transcript on two streams, as a stdio MCP server.
type player struct {
	in     *bufio.Reader
	out    io.Writer
	stderr io.Writer
	values map[string]json.RawMessage
	header header
}

// message is what the client sent, as far as a transcript looks.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion json.RawMessage            `json:"protocolVersion"`
		Arguments       json.RawMessage            `json:"arguments"`
		Meta            map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
}

// playTranscript plays the file until its input ends.
func playTranscript(path string, in io.Reader, out, stderr io.Writer) error {
	h, steps, err := readTranscript(path)
	if err != nil {
		return err
	}
	p := &player{bufio.NewReader(in), out, stderr, map[string]json.RawMessage{"PV": []byte(`"2025-11-25"`)}, h}
	last := 0
	for k := 0; k < len(steps); k++ {
		s := steps[k]
		switch {
		case s["on"] != nil:
			last = k
			if err := p.await(unquote(s["on"])); err != nil {
				return err
			}
		case s["loop"] != nil:
			k = last - 1
		case s["close"] != nil:
			return nil
		case s["hang"] != nil, s["stopread"] != nil:
			select {}
		default:
			if err := p.write(s); err != nil {
				return err
			}
		}
	}
	for {
		m, err := p.read()
		if err != nil {
			return err
		}
		p.harmless(m)
	}
}

func (p *player) read() (message, error) {
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil {
			return message{}, err
		}
		var m message
		if json.Unmarshal(line, &m) == nil {
			return m, nil
		}
	}
}

// await answers what comes in between without harm, and keeps what the steps after it refer to.
func (p *player) await(on string) error {
	for {
		m, err := p.read()
		if err != nil {
			return err
		}
		if on == "$response" && m.Method == "" {
			return nil
		}
		if m.Method != on {
			p.harmless(m)
			continue
		}
		p.values["PREVID"], p.values["ID"] = p.values["ID"], m.ID
		switch on {
		case "tools/call":
			p.values["CALLID"], p.values["ARGS"] = m.ID, m.Params.Arguments
		case "initialize":
			p.values["PV"] = m.Params.ProtocolVersion
		}
		if token := m.Params.Meta["progressToken"]; token != nil {
			p.values["TOKEN"] = token
		}
		return nil
	}
}

var harmlessResults = map[string]string{
	"initialize":               `{"protocolVersion":$PV,"capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"logging":{},"completions":{}},"serverInfo":{"name":"hostile","version":"1"}}`,
	"server/discover":          `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{},"completions":{}},"ttlMs":0,"cacheScope":"private"}`,
	"tools/list":               `{"tools":[{"name":"t","description":"t","inputSchema":{"type":"object"}}]}`,
	"prompts/list":             `{"prompts":[]}`,
	"resources/list":           `{"resources":[]}`,
	"resources/templates/list": `{"resourceTemplates":[]}`,
	"tools/call":               `{"content":[{"type":"text","text":"default"}]}`,
	"ping":                     `{}`, "logging/setLevel": `{}`, "resources/subscribe": `{}`,
}

func (p *player) harmless(m message) {
	if m.ID == nil || m.Method == "" {
		return
	}
	modern := m.Params.Meta["io.modelcontextprotocol/protocolVersion"] != nil
	result := harmlessResults[m.Method]
	era := p.header.Era
	if os.Getenv(asEra) != "" {
		era = os.Getenv(asEra)
	}
	if result == "" || m.Method == "server/discover" && (!modern || era == "2025-11-25") || m.Method == "initialize" && os.Getenv(asEra) == "2026-07-28" {
		fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
		return
	}
	version := m.Params.ProtocolVersion
	if version == nil {
		version = []byte(`"2025-11-25"`)
	}
	result = strings.Replace(result, "$PV", string(version), 1)
	if modern {
		result = strings.Replace(result, "{", `{"resultType":"complete",`, 1)
		result = strings.Replace(result, ",}", "}", 1)
	}
	fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
}

func (p *player) write(s step) error {
	var err error
	switch {
	case s["send"] != nil:
		_, err = p.out.Write(append(p.fill(s["send"]), '\n'))
	case s["raw"] != nil:
		text := p.fillRaw(unquote(s["raw"]))
		if s["nonl"] == nil {
			text += "\n"
		}
		_, err = io.WriteString(p.out, text)
	case s["b64"] != nil:
		var data []byte
		if data, err = base64.StdEncoding.DecodeString(unquote(s["b64"])); err == nil {
			_, err = p.out.Write(bytes.ReplaceAll(data, []byte("$ID"), p.values["ID"]))
		}
	case s["gen"] != nil:
		err = p.generate(s["gen"])
	case s["sleep_ms"] != nil:
		var ms int
		err = json.Unmarshal(s["sleep_ms"], &ms)
		time.Sleep(time.Duration(ms) * time.Millisecond)
	case s["stderr"] != nil:
		_, err = io.WriteString(p.stderr, unquote(s["stderr"]))
	case s["stderr_gen"] != nil:
		var g struct {
			Item string
			N    int
		}
		if err = json.Unmarshal(s["stderr_gen"], &g); err == nil {
			_, err = io.Copy(p.stderr, io.LimitReader(repeat(g.Item), int64(g.N*len(g.Item))))
		}
	}
	return err
}

var placeholder = regexp.MustCompile(`"\$(ID\+1|PREVID|CALLID|TOKEN|ID|PV)"`)

// fill puts values into a message to send; its text otherwise stays as the transcript writes it, but that raw control characters
// and lone surrogates go out as their bytes.
func (p *player) fill(raw json.RawMessage) []byte {
	text := placeholder.ReplaceAllFunc(raw, func(m []byte) []byte {
		name := strings.Trim(string(m), `"$`)
		if name == "ID+1" {
			n, err := strconv.Atoi(string(p.values["ID"]))
			if err != nil {
				return p.values["ID"]
			}
			return strconv.AppendInt(nil, int64(n+1), 10)
		}
		if v := p.values[name]; v != nil {
			return v
		}
		return []byte("null")
	})
	args, _ := json.Marshal(string(p.values["ARGS"]))
	return bytes.ReplaceAll(text, []byte("$ARGS"), args[1:len(args)-1])
}

func (p *player) fillRaw(s string) string {
	number := string(p.values["ID"])
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		number = "0"
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "$IDNUM", number), "$ID", string(p.values["ID"]))
}

var letters = regexp.MustCompile(`%A(\d+)`)

// generate writes something large, piece by piece.
func (p *player) generate(raw json.RawMessage) error {
	var g struct {
		Pre, Item, Sep, Post, Tail, End string
		N, TailN                        int
		NoNL                            int
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		return err
	}
	out := bufio.NewWriterSize(p.out, 1<<20)
	out.WriteString(p.fillRaw(g.Pre))
	item := letters.ReplaceAllStringFunc(g.Item, func(m string) string {
		n, _ := strconv.Atoi(m[2:])
		return strings.Repeat("A", n)
	})
	if strings.Contains(item, "%d") || g.Sep != "" {
		for n := range g.N {
			if n > 0 {
				out.WriteString(g.Sep)
			}
			out.WriteString(strings.ReplaceAll(item, "%d", strconv.Itoa(n)))
		}
	} else {
		io.Copy(out, io.LimitReader(repeat(item), int64(g.N*len(item))))
	}
	out.WriteString(g.Post)
	if g.Tail != "" {
		io.Copy(out, io.LimitReader(repeat(g.Tail), int64(g.TailN*len(g.Tail))))
		out.WriteString(g.End)
	}
	if g.NoNL == 0 {
		out.WriteByte('\n')
	}
	return out.Flush()
}

// repeat is an endless stream of s.
func repeat(s string) io.Reader {
	return &repeater{strings.Repeat(s, max(1, 1<<16/max(1, len(s)))), 0}
}

type repeater struct {
	s  string
	at int
}

func (r *repeater) Read(b []byte) (int, error) {
	n := copy(b, r.s[r.at:])
	r.at = (r.at + n) % len(r.s)
	return n, nil
}

// unquote decodes a JSON string, with a lone surrogate as the three bytes that a sloppy encoder writes for it.
func unquote(raw json.RawMessage) string {
	s := string(raw)
	if len(s) < 2 || s[0] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b = append(b, s[i])
			continue
		}
		i++
		if s[i] != 'u' {
			b = append(b, map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}[s[i]])
			if b[len(b)-1] == 0 {
				b[len(b)-1] = s[i]
			}
			continue
		}
		r := hexRune(s[i+1 : i+5])
		i += 4
		if utf16.IsSurrogate(r) && i+6 < len(s) && s[i+1] == '\\' && s[i+2] == 'u' {
			if pair := utf16.DecodeRune(r, hexRune(s[i+3:i+7])); pair != '\uFFFD' {
				r, i = pair, i+6
			}
		}
		if utf16.IsSurrogate(r) {
			b = append(b, byte(0xe0|r>>12), byte(0x80|r>>6&0x3f), byte(0x80|r&0x3f))
			continue
		}
		b = append(b, string(r)...)
	}
	return string(b)
}

func hexRune(s string) rune {
	n, _ := strconv.ParseUint(s, 16, 32)
	return rune(n)
}
