package gateway

import (
	"net/url"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// framed does what a row of action frame says beyond the text itself.
func (p *pass) framed(as string, v strictjson.Value) (strictjson.Value, bool) {
	switch as {
	case "log", "errordata":
		return p.frameJSON(as, v)
	}
	if v.Kind() != strictjson.KindString {
		p.drop("invalid")
		return strictjson.Value{}, false
	}
	switch as {
	case "beside", "url":
		return v, true // framed with the object as a whole: see link and urlElicitation
	case "short":
		return strictjson.String(p.frame(p.cut(v.Str(), maxShort), "")), true
	}
	return strictjson.String(p.frame(v.Str(), "")), true
}

// cut shortens a text that is longer than an honest one, before it is framed.
func (p *pass) cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	p.find("cut", "")
	return cut(text, max) + "…"
}

// frameJSON frames a value of any kind: a string as it is, anything else as its JSON. The data of an error whose code programs
// act on is built again from the members they need.
func (p *pass) frameJSON(as string, v strictjson.Value) (strictjson.Value, bool) {
	if as == "errordata" && v.Kind() == strictjson.KindObject {
		return v, true // see errorObject
	}
	text := v.Str()
	if v.Kind() != strictjson.KindString {
		text = string(v.Append(nil))
	}
	if as == "log" {
		text = p.cut(text, maxLog)
	}
	return strictjson.String(p.frame(text, "data")), true
}

// foldResult puts structuredContent where the source's choice wants it. Many servers also send its JSON as text; then the text
// is there already, and is framed once.
func (p *pass) foldResult(raw, v strictjson.Value) strictjson.Value {
	data := raw.Get("structuredContent")
	content := v.Get("content")
	if content.Kind() == strictjson.KindAbsent {
		content = strictjson.Array()
	}
	if data.Kind() != strictjson.KindAbsent {
		p.out.Structured = data
		if p.t.source.Structured == Fold {
			v = v.Without("structuredContent")
			if !restated(raw.Get("content"), data) {
				p.path = append(p.path, "structuredContent")
				block := textBlock(p.frame(string(data.Append(nil)), "structured content"))
				p.path = p.path[:len(p.path)-1]
				blocks := make([]strictjson.Value, 0, content.Len()+1)
				for _, b := range content.Elems() {
					blocks = append(blocks, b)
				}
				content = strictjson.Array(append(blocks, block)...)
			}
		}
	}
	return v.With("content", content)
}

// restated reports whether a text block is data as JSON.
func restated(content, data strictjson.Value) bool {
	for _, b := range content.Elems() {
		text := strings.TrimSpace(b.Get("text").Str())
		if text == "" || !strings.ContainsAny(text[:1], `{["-0123456789tfn`) {
			continue
		}
		if v, err := strictjson.ParseString(text, strictjson.Limits{KeepCaseTwins: true, RepairSurrogates: true}); err == nil && equal(v, data) {
			return true
		}
	}
	return false
}

// equal compares two values; the order of names does not count, the spelling of numbers does.
func equal(a, b strictjson.Value) bool {
	if a.Kind() != b.Kind() || a.Len() != b.Len() {
		return false
	}
	switch a.Kind() {
	case strictjson.KindString:
		return a.Str() == b.Str()
	case strictjson.KindNumber:
		return a.Number() == b.Number()
	case strictjson.KindBool:
		return a.Bool() == b.Bool()
	case strictjson.KindArray:
		others := make([]strictjson.Value, 0, b.Len())
		for _, e := range b.Elems() {
			others = append(others, e)
		}
		for i, e := range a.Elems() {
			if !equal(e, others[i]) {
				return false
			}
		}
	case strictjson.KindObject:
		others := make(map[string]strictjson.Value, b.Len())
		for name, e := range b.Members() {
			others[name] = e
		}
		for name, e := range a.Members() {
			if other, ok := others[name]; !ok || !equal(e, other) {
				return false
			}
		}
	}
	return true
}

// cleaned does what a row of action clean or pin says.
func (p *pass) cleaned(as string, v strictjson.Value) (strictjson.Value, bool) {
	switch as {
	case "structured":
		switch p.t.source.Structured {
		case Defang:
			return p.leaves(v), true
		case PassOnward:
			return v, true
		}
		return strictjson.Value{}, false // folded by foldResult: not lost, so not counted
	case "leaves":
		return p.leaves(v), true
	case "values":
		return p.strings(v, maxValues, maxLine)
	case "choices":
		return p.strings(v, 1024, maxLine)
	case "toolname":
		if v, ok := checks[as](p, v); ok && len(v.Str()) <= maxName {
			return v, true
		}
		p.drop("name")
		return strictjson.Value{}, false
	case "outputschema":
		if p.t.source.Structured == Fold {
			return strictjson.Value{}, false
		}
		return p.schema(v)
	case "schema":
		return p.schema(v)
	}
	if v.Kind() != strictjson.KindString {
		p.drop("invalid")
		return strictjson.Value{}, false
	}
	max, ok := cleanBounds[as]
	if !ok {
		max = maxLine
	}
	s := p.bounded(v.Str(), max)
	if s == v.Str() {
		return v, true
	}
	return strictjson.String(s), true
}

// strings cleans a list of strings; what is no string, or one too many, is dropped.
func (p *pass) strings(v strictjson.Value, count, length int) (strictjson.Value, bool) {
	if v.Kind() != strictjson.KindArray {
		p.drop("invalid")
		return strictjson.Value{}, false
	}
	out := make([]strictjson.Value, 0, min(v.Len(), count))
	for _, e := range v.Elems() {
		if e.Kind() != strictjson.KindString || len(out) == count {
			p.drop("invalid")
			continue
		}
		out = append(out, strictjson.String(p.bounded(e.Str(), length)))
	}
	return strictjson.Array(out...), true
}

// leaves cleans every string and every name of a value, however deep. Numbers keep their digits.
func (p *pass) leaves(v strictjson.Value) strictjson.Value {
	switch v.Kind() {
	case strictjson.KindString:
		if s := p.plain(v.Str()); s != v.Str() {
			return strictjson.String(s)
		}
	case strictjson.KindArray:
		out := make([]strictjson.Value, 0, v.Len())
		for _, e := range v.Elems() {
			out = append(out, p.leaves(e))
		}
		return strictjson.Array(out...)
	case strictjson.KindObject:
		out := make([]strictjson.Member, 0, v.Len())
		for name, e := range v.Members() {
			out = append(out, strictjson.Member{Name: p.plain(name), Value: p.leaves(e)})
		}
		return strictjson.Object(out...)
	}
	return v
}

// name cleans the name of an unknown member that the operator lets pass. Ours nobody else writes.
func (p *pass) name(s string) (string, bool) {
	s = p.bounded(s, maxName)
	return s, s != "" && !strings.HasPrefix(strings.ToLower(s), "hearsay/")
}

// schema cleans a tool's schema. A property name is what the model has to send back, so it cannot be cleaned: an odd one makes the
// schema unusable. So does a schema over its bounds. A $ref outward is taken out: a host that follows it is a beacon.
func (p *pass) schema(v strictjson.Value) (strictjson.Value, bool) {
	size := 0
	out, ok := p.schemaPart(v, 0, &size)
	if !ok || !objectSchema(v) {
		p.drop("schema")
		return strictjson.Value{}, false
	}
	if out.Get("type").Kind() == strictjson.KindAbsent {
		out = out.With("type", strictjson.String("object")) // as the specification asks; strict clients refuse the list otherwise
	}
	return out, true
}

// objectSchema: one tool whose schema is not what the specification asks for makes a strict client refuse the list as a whole.
func objectSchema(v strictjson.Value) bool {
	if t := v.Get("type"); v.Kind() != strictjson.KindObject || t.Kind() != strictjson.KindAbsent && t.Str() != "object" {
		return false
	}
	properties, required := v.Get("properties"), v.Get("required")
	if properties.Kind() != strictjson.KindAbsent && properties.Kind() != strictjson.KindObject || required.Kind() != strictjson.KindAbsent && required.Kind() != strictjson.KindArray {
		return false
	}
	for _, e := range properties.Members() {
		if e.Kind() != strictjson.KindObject && e.Kind() != strictjson.KindBool {
			return false
		}
	}
	for _, e := range required.Elems() {
		if e.Kind() != strictjson.KindString {
			return false
		}
	}
	return true
}

func (p *pass) schemaPart(v strictjson.Value, depth int, size *int) (strictjson.Value, bool) {
	if depth > maxDepth || *size > maxSchema {
		return v, false
	}
	switch v.Kind() {
	case strictjson.KindString:
		*size += len(v.Str())
		if s := p.bounded(v.Str(), maxProse); s != v.Str() {
			return strictjson.String(s), true
		}
	case strictjson.KindArray:
		out := make([]strictjson.Value, 0, v.Len())
		for _, e := range v.Elems() {
			e, ok := p.schemaPart(e, depth+1, size)
			if !ok {
				return v, false
			}
			out = append(out, e)
		}
		return strictjson.Array(out...), true
	case strictjson.KindObject:
		out := make([]strictjson.Member, 0, v.Len())
		for name, e := range v.Members() {
			*size += len(name)
			if len(name) > maxLine || unseen(name) || holdsToken(name) || oneLine(name) != name {
				return v, false
			}
			if (name == "$ref" || name == "$dynamicRef" || name == "$recursiveRef") && e.Kind() == strictjson.KindString && !strings.HasPrefix(e.Str(), "#") {
				p.drop("remote-ref")
				continue
			}
			e, ok := p.schemaPart(e, depth+1, size)
			if !ok {
				return v, false
			}
			out = append(out, strictjson.Member{Name: name, Value: e})
		}
		return strictjson.Object(out...), true
	}
	return v, true
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// errorData names the rows by which the data of an error is built again, by its code.
var errorData = map[string]string{
	"-32042": "URLElicitationRequiredError.data",
	"-32022": "UnsupportedProtocolVersionError.data",
	"-32021": "MissingRequiredClientCapabilityError.data",
}

// errorObject frames the data of an error, unless its code is one whose data programs act on: then it is built again from
// members that hold.
func (p *pass) errorObject(raw, v strictjson.Value) strictjson.Value {
	data := raw.Get("data")
	if data.Kind() != strictjson.KindObject {
		if s := v.Get("data"); s.Kind() == strictjson.KindString {
			return v.With("data", strictjson.Object(strictjson.Member{Name: "detail", Value: s}))
		}
		return v
	}
	p.path = append(p.path, "data")
	defer func() { p.path = p.path[:len(p.path)-1] }()
	if typ, ok := errorData[raw.Get("code").Number()]; ok {
		data, _ = p.object(typ, data)
		return v.With("data", data)
	}
	detail := strictjson.String(p.frame(string(data.Append(nil)), "data"))
	return v.With("data", strictjson.Object(strictjson.Member{Name: "detail", Value: detail}))
}
