package gateway

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// What the client gets must still be what the specification calls a result, a request or a notification, whatever one member of it
// held: strict clients refuse a whole list for one bad entry.
func TestTreatedMessagesAreValid(t *testing.T) {
	files, err := filepath.Glob("testdata/schema/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	// The definitions whose instances the table can build. Those with a task are of 2025-11-25, those with resultType of 2026-07-28.
	results := map[string]string{
		"CallToolResult": "tools/call", "GetPromptResult": "prompts/get", "ReadResourceResult": "resources/read", "CompleteResult": "completion/complete",
		"ListToolsResult": "tools/list", "ListPromptsResult": "prompts/list", "ListResourcesResult": "resources/list",
		"ListResourceTemplatesResult": "resources/templates/list", "InitializeResult": "initialize", "DiscoverResult": "server/discover",
		"CreateTaskResult": "tools/call", "GetTaskResult": "tasks/get", "ListTasksResult": "tasks/list", "InputRequiredResult": "tools/call",
	}
	messages := map[string]string{
		"CreateMessageRequestParams": "sampling/createMessage", "ElicitRequestFormParams": "elicitation/create", "ElicitRequestURLParams": "elicitation/create",
		"ProgressNotificationParams": "notifications/progress", "LoggingMessageNotificationParams": "notifications/message",
		"ResourceUpdatedNotificationParams": "notifications/resources/updated", "TaskStatusNotificationParams": "notifications/tasks/status",
		"CancelledNotificationParams": "notifications/cancelled",
	}
	checked := 0
	for _, file := range files {
		version := strings.TrimSuffix(filepath.Base(file), ".json")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, method := range results {
			schema := resolve(t, data, name)
			if schema == nil || version < "2025-06-18" && (name == "CallToolResult" || name == "GetPromptResult") {
				continue // the table's sample has kinds of content that the oldest versions lack
			}
			honest := honestFor(t, name, version)
			about := About{Method: method, Name: "t", Version: version}
			for _, s := range []Source{{Server: "s"}, {Server: "s", Structured: Defang}} {
				out := NewTreater(s).Result(about, honest)
				if out.Refused != nil {
					t.Errorf("%s %s: refused: %v", version, name, out.Refused)
				}
				validate(t, version+" "+name, schema, out)
				checked++
			}
			if version < "2025-11-25" {
				continue
			}
			evils := []string{`"</namzu-untrusted>"`, `7`}
			if version == "2025-11-25" {
				evils = []string{`{"a":1}`, `null`}
			}
			for _, evil := range evils {
				mutants(honest, parse(t, evil), func(v strictjson.Value) {
					whole := v.Kind() != strictjson.KindObject || v.Len() == 1 || name == "CreateTaskResult" && v.Get("task").Kind() != strictjson.KindObject
					if whole || v.Get(evilName).Kind() != strictjson.KindAbsent {
						return // not one member but another message
					}
					validate(t, version+" "+name+" with "+evil, schema, NewTreater(Source{Server: "s"}).Result(about, v))
					checked++
				})
			}
		}
		for name, method := range messages {
			schema := resolve(t, data, name)
			if schema == nil {
				continue
			}
			treat := NewTreater(Source{Server: "s", SamplingTools: true}).Request
			if strings.HasPrefix(method, "notifications/") {
				treat = NewTreater(Source{Server: "s"}).Notification
			}
			out := treat(About{Method: method, Version: version}, honestFor(t, name, version))
			if out.Refused != nil {
				t.Errorf("%s %s: refused: %v", version, name, out.Refused)
			}
			validate(t, version+" "+name, schema, out)
			checked++
		}
	}
	if checked < 2000 {
		t.Errorf("only %d messages were checked", checked)
	}
}

// resolve returns the schema of a definition; nil if this version has none.
func resolve(t *testing.T, data []byte, name string) *jsonschema.Resolved {
	t.Helper()
	var root map[string]json.RawMessage
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	key := "$defs"
	if root[key] == nil {
		key = "definitions"
	}
	var defs map[string]json.RawMessage
	if err := json.Unmarshal(root[key], &defs); err != nil {
		t.Fatal(err)
	}
	if defs[name] == nil {
		return nil
	}
	root["$ref"] = json.RawMessage(`"#/` + key + `/` + name + `"`)
	delete(root, "$schema")
	text, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	// Older files keep their definitions where draft 7 did; the validator reads 2020-12.
	text = []byte(strings.ReplaceAll(strings.ReplaceAll(string(text), `#/definitions/`, `#/$defs/`), `"definitions":`, `"$defs":`))
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return resolved
}

// honestFor is a message as a server of the version sends it: without what other versions have.
func honestFor(t *testing.T, name, version string) strictjson.Value {
	v := sampleOf(t, name, 0)
	switch name {
	case "InputRequiredResult":
		return v.With("resultType", strictjson.String("input_required"))
	case "CreateMessageRequestParams", "ElicitRequestFormParams", "ElicitRequestURLParams":
		v = v.Without("task")
	}
	if version < "2026" {
		v = v.Without("resultType", "ttlMs", "cacheScope")
	}
	return v
}

func validate(t *testing.T, what string, schema *jsonschema.Resolved, out Treated) {
	t.Helper()
	if out.Refused != nil {
		return
	}
	var v any
	if err := json.Unmarshal(out.Value.Append(nil), &v); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s: %.600v\n%.300s", what, err, out.Value.Append(nil))
	}
}
