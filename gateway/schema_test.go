package gateway

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

var update = flag.Bool("update", false, "write docs and expected files anew")

// node is the part of JSON Schema that the published schemas use.
type node struct {
	Ref         string           `json:"$ref"`
	Type        json.RawMessage  `json:"type"`
	Const       any              `json:"const"`
	Enum        []any            `json:"enum"`
	Properties  map[string]*node `json:"properties"`
	Items       *node            `json:"items"`
	AnyOf       []*node          `json:"anyOf"`
	AllOf       []*node          `json:"allOf"`
	Additional  json.RawMessage  `json:"additionalProperties"`
	Definitions map[string]*node `json:"definitions"`
	Defs        map[string]*node `json:"$defs"`
}

func (n *node) ref() string { return n.Ref[strings.LastIndexByte(n.Ref, '/')+1:] }

// walker walks one schema beside the table.
type walker struct {
	t       *testing.T
	version string
	defs    map[string]*node
	seen    map[*field]map[string]bool // the versions that have the member of a row
}

func walkSchemas(t *testing.T) map[*field]map[string]bool {
	t.Helper()
	files, err := filepath.Glob("testdata/schema/*.json")
	if err != nil || len(files) != 5 {
		t.Fatalf("schemas: %v, %v", files, err)
	}
	seen := map[*field]map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var root node
		if err := json.Unmarshal(data, &root); err != nil {
			t.Fatal(err)
		}
		w := &walker{t, strings.TrimSuffix(filepath.Base(file), ".json"), root.Definitions, seen}
		if w.defs == nil {
			w.defs = root.Defs
		}
		if len(w.defs) < 70 {
			t.Fatalf("%s: %d definitions", file, len(w.defs))
		}
		for _, name := range slices.Sorted(maps.Keys(w.defs)) {
			w.definition(name, w.defs[name])
		}
	}
	return seen
}

// definition checks a named type. Requests, notifications and responses are the message itself with params of their own.
func (w *walker) definition(name string, n *node) {
	if len(n.Properties) == 0 && n.Additional == nil {
		return // a union, a scalar or an extension: its parts are definitions themselves
	}
	if n.Properties["method"] != nil || n.Properties["jsonrpc"] != nil {
		w.message(name, n)
		return
	}
	w.object(name, name, n)
}

func (w *walker) message(name string, n *node) {
	for member, m := range n.Properties {
		w.row("JSONRPCMessage", member, name)
		if member == "error" {
			w.errorObject(name, m)
		}
		if member != "params" || m.Ref != "" {
			continue
		}
		typ := "NotificationParams" // the general shape of a message, which no method has
		if strings.HasSuffix(name, "Request") {
			typ = "RequestParams"
		}
		if c, ok := n.Properties["method"].Const.(string); ok {
			method := channels.methods["client "+c]
			if method == nil {
				method = channels.methods["server "+c]
			}
			if method == nil {
				w.t.Errorf("%s: method %s has no row", w.version, c)
				continue
			}
			typ = method.params
		}
		if u, ok := unions[typ]; ok {
			typ = u.of[u.none]
		}
		w.object(typ, name+".params", m)
	}
}

// errorObject checks the data of an error whose code the schema names.
func (w *walker) errorObject(name string, n *node) {
	parts := []*node{n}
	parts = append(append(parts, n.AnyOf...), n.AllOf...)
	for _, part := range parts {
		for member, m := range part.Properties {
			w.row("Error", member, name)
			if member == "data" && len(m.Properties) > 0 {
				w.object(name+".data", name+".error.data", m)
			}
		}
	}
}

func (w *walker) object(typ, where string, n *node) {
	if channels.rows[typ] == nil {
		w.t.Errorf("%s: type %s (%s) is not in the table", w.version, typ, where)
		return
	}
	for member, m := range n.Properties {
		if row := w.row(typ, member, where); row != nil {
			w.value(row, where+"."+member, m)
			if inline := typ + "." + member; row.do != into && channels.rows[inline] != nil { // treated whole, its parts named
				w.object(inline, inline, m)
			}
		}
	}
	if free := string(n.Additional); free != "" && free != "false" {
		if row := w.row(typ, "*", where); row != nil {
			var m node
			if err := json.Unmarshal(n.Additional, &m); err != nil {
				w.t.Fatal(err)
			}
			w.value(row, where+".*", &m)
		}
	}
}

func (w *walker) row(typ, member, where string) *field {
	row := channels.rows[typ][member]
	if row == nil {
		w.t.Errorf("%s: %s.%s has no row in the table (type %s)", w.version, where, member, typ)
		return nil
	}
	if w.seen[row] == nil {
		w.seen[row] = map[string]bool{}
	}
	w.seen[row][w.version] = true
	return row
}

// value checks that a member's schema is what its row leads to.
func (w *walker) value(row *field, where string, n *node) {
	for _, part := range append(slices.Clone(n.AnyOf), n.AllOf...) {
		w.value(row, where, part)
	}
	if row.do != into {
		return // the row treats whatever stands there
	}
	_, typ, _ := strings.Cut(row.as, "]")
	if typ == "" || strings.HasPrefix(row.as, "{}") {
		typ = strings.TrimPrefix(row.as, "{}")
	}
	switch {
	case n.Ref != "":
		w.leads(typ, where, n.ref())
	case n.Items != nil:
		w.value(row, where+"[]", n.Items)
	case len(n.Properties) > 0:
		w.object(typ, where, n)
	}
}

// leads checks that a reference ends at the rows that the table follows.
func (w *walker) leads(typ, where, def string) {
	n := w.defs[def]
	if len(n.AnyOf) > 0 && len(n.Properties) == 0 {
		for _, part := range n.AnyOf {
			if part.Ref != "" {
				w.leads(typ, where, part.ref())
			}
		}
		return
	}
	if len(n.Properties) == 0 && n.Additional == nil {
		return
	}
	if u, ok := unions[typ]; ok {
		for _, to := range u.of {
			if channels.objects[to] == channels.objects[def] {
				return
			}
		}
	} else if channels.objects[typ] == channels.objects[def] {
		return
	}
	switch {
	case typ == "InputRequest": // see inputRequest: a request inside a result
	case def == "RequestMetaObject" && typ == "Meta": // with RequestParams, which both sides write; a client's pass whole
	case def == "JSONObject" && (typ == "Empty" || strings.HasPrefix(typ, "ServerCapabilities")):
	case def == "ClientCapabilities" && typ == "ClientCapabilityNames": // read from a server, so by rows of its own
	default:
		w.t.Errorf("%s: %s is a %s, the table treats it as %s", w.version, where, def, typ)
	}
}

func TestEveryMemberOfTheSchemasHasARow(t *testing.T) {
	seen := walkSchemas(t)
	if len(seen) < 250 {
		t.Errorf("only %d rows were met: the walk lost its way", len(seen))
	}
	for _, s := range sections {
		for i := range s.objects {
			o := &s.objects[i]
			for j := range o.fields {
				f := &o.fields[j]
				if seen[f] == nil && f.name != "*" && !extension(o, f) {
					t.Errorf("%s.%s is in no schema", o.name, f.name)
				}
			}
		}
	}
}

// extension names the rows that stand for what is not in the published schemas.
func extension(o *object, f *field) bool {
	switch o.name {
	case "ExtensionTask", "ClientCapabilityNames", "ClientCapabilityNames.sampling", "ClientCapabilityNames.elicitation", "Empty":
		return true
	case "ServerCapabilities.extensions":
		return true
	case "SubscriptionFilter":
		return f.name == "taskIds" // of the tasks extension
	case "Meta": // keys that the specification's prose reserves
		return strings.Contains(f.name, "related-task") || strings.Contains(f.name, "immediate") || strings.HasPrefix(f.name, "trace") || f.name == "baggage" || f.name == "progressToken"
	case "Task":
		return f.name == "_meta" // of the results and notifications that are a Task
	case "ListTasksResult":
		return f.name == "resultType" || f.name == "ttlMs" || f.name == "cacheScope" // the members of every list
	case "ElicitationCompleteNotificationParams":
		return f.name == "_meta"
	case "DiscoverResult":
		return f.name == "serverInfo" // early servers of 2026-07-28
	}
	return false
}

func TestEveryRowLeadsSomewhere(t *testing.T) {
	for name, rows := range channels.rows {
		for _, f := range rows {
			switch f.do {
			case check:
				if checks[f.as] == nil && sectionOf(name) != fromClient && name != "JSONRPCMessage" {
					t.Errorf("%s.%s: no check %q", name, f.name, f.as)
				}
			case into:
				_, typ, _ := strings.Cut(f.as, "]")
				if typ == "" || strings.HasPrefix(f.as, "{}") {
					typ = strings.TrimPrefix(f.as, "{}")
				}
				if channels.rows[typ] == nil && unions[typ].by == "" && typ != "InputRequest" && name != "JSONRPCMessage" {
					t.Errorf("%s.%s: no type %q", name, f.name, typ)
				}
			case leave:
				if sectionOf(name) != fromClient {
					t.Errorf("%s.%s: a server's member is left as it is", name, f.name)
				}
			}
		}
	}
	for _, m := range methods {
		for _, typ := range []string{m.params, m.result} {
			if typ != "" && channels.rows[typ] == nil && unions[typ].by == "" {
				t.Errorf("%s: no type %q", m.name, typ)
			}
		}
	}
	for name, u := range unions {
		for _, typ := range u.of {
			if channels.rows[typ] == nil {
				t.Errorf("union %s: no type %q", name, typ)
			}
		}
	}
}

func sectionOf(typ string) direction {
	for _, s := range sections {
		for _, o := range s.objects {
			if o.name == typ || slices.Contains(o.also, typ) {
				return s.writer
			}
		}
	}
	return fromBoth
}

func TestEveryMethodOfTheSchemasHasARow(t *testing.T) {
	files, _ := filepath.Glob("testdata/schema/*.json")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var root node
		if err := json.Unmarshal(data, &root); err != nil {
			t.Fatal(err)
		}
		defs := root.Definitions
		if defs == nil {
			defs = root.Defs
		}
		for _, side := range []string{"Client", "Server"} {
			for _, form := range []string{"Request", "Notification"} {
				n := defs[side+form]
				if n == nil {
					continue
				}
				for _, part := range append(n.AnyOf, n) {
					def := part
					if part.Ref != "" {
						def = defs[part.ref()]
					}
					if def.Properties["method"] == nil {
						continue
					}
					name := def.Properties["method"].Const.(string)
					if !KnownMethod(name, side == "Server", form == "Notification") {
						t.Errorf("%s: %s of a %s has no row", file, name, side)
					}
				}
			}
		}
	}
	if KnownMethod("tools/run", false, false) || KnownMethod("tools/call", true, false) || KnownMethod("tools/call", false, true) {
		t.Error("a method without a row is known")
	}
}

func TestDocumentOfChannelsIsCurrent(t *testing.T) {
	path := filepath.Join(repotest.Root(t), "docs", "channels.md")
	want := channelsDocument(walkSchemas(t))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/channels.md is not what the table says: go test ./gateway -run Channels -update")
	}
}

// channelsDocument prints the table for readers.
func channelsDocument(seen map[*field]map[string]bool) string {
	intro, err := os.ReadFile("testdata/channels.head.md")
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	b.Write(intro)
	b.WriteString("\n## Methods\n\n| method | sent by | params | result | versions |\n|---|---|---|---|---|\n")
	for _, m := range methods {
		result := m.result
		if result != "" {
			result = "`" + result + "`"
		} else {
			result = "(notification)"
		}
		if m.asks {
			result += " or `InputRequiredResult`"
		}
		if m.tasks {
			result += " or a task"
		}
		eras := m.eras
		if eras == "" {
			eras = "all"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", m.name, [...]string{"client", "server", "both"}[m.from], m.params, result, eras)
	}
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n| type and member | read by | what happens | versions |\n|---|---|---|---|\n", s.title)
		for i := range s.objects {
			o := &s.objects[i]
			names := "`" + o.name + "`"
			if len(o.also) > 0 {
				names += " (also `" + strings.Join(o.also, "`, `") + "`)"
			}
			fmt.Fprintf(&b, "| **%s** | | | |\n", names)
			for j := range o.fields {
				f := &o.fields[j]
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.by, f.does(), versions(seen[f]))
			}
		}
	}
	b.WriteString("\n## Bounds\n\n| what | at most | over it |\n|---|---|---|\n")
	for _, bound := range []struct {
		what string
		max  int
		unit string
		over string
	}{
		{"a name", maxName, "bytes", "cut, or the definition withheld"},
		{"a title, label, reason or completion", maxLine, "bytes", "cut"},
		{"a progress, status or elicitation message", maxShort, "bytes", "cut"},
		{"what is logged", maxLog, "bytes", "cut"},
		{"a description", maxProse, "bytes", "cut"},
		{"values of a completion", maxValues, "", "dropped"},
		{"a tool's schema", maxSchema, "bytes of text", "the tool withheld"},
		{"depth of a tool's schema", maxDepth, "levels", "the tool withheld"},
		{"an icon", maxIcon, "bytes", "dropped"},
		{"a URI", maxURI, "bytes", "the entry withheld"},
		{"a cursor", maxCursor, "bytes", "dropped"},
		{"an id, a task's id", maxOpaque, "bytes", "the message refused"},
		{"requestState", maxState, "bytes", "the message refused"},
		{"tokens a sampling request may ask for", maxTokens, "", "lowered"},
		{"how long a client may keep a list (ttlMs)", maxCacheMS, "ms", "lowered"},
		{"content blocks in one list", maxBlocks, "", "withheld, a framed note says how many"},
		{"frames in one message", maxFrames, "", "the message refused"},
		{"the outside world in a sentence of our own", maxQuote, "characters", "cut"},
		{"definitions of one server and kind that a session remembers", maxDefinitions, "", "withheld"},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", bound.what, strings.TrimSpace(fmt.Sprintf("%d %s", bound.max, bound.unit)), bound.over)
	}
	b.WriteString("\n## Outside the schemas\n\n| where | read by | what happens |\n|---|---|---|\n")
	for _, o := range outside {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", o.where, o.by, o.does)
	}
	return b.String()
}

func (f *field) does() string {
	s := "**" + f.do.String() + "**"
	if f.as != "" {
		s += " " + f.as
	}
	if f.note != "" {
		s += "; " + f.note
	}
	return strings.ReplaceAll(s, "|", "\\|")
}

func versions(seen map[string]bool) string {
	if len(seen) == 5 {
		return "all"
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
}
