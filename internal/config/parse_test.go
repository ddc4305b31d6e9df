package config

import (
	"strings"
	"testing"
)

// A section that was begun and would protect nothing is an error.
func TestEmptySections(t *testing.T) {
	const server = "servers:\n  s: {command: [/bin/true]}\n"
	for _, tt := range []struct{ name, file, want string }{
		{"a record without a file", server + "audit: {max_bytes: 5}\n", "audit"},
		{"a record that is empty", server + "audit:\n", "audit"},
		{"pins that are empty", server + "pins:\n", "pins"},
	} {
		if _, err := Parse([]byte(tt.file)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for _, file := range []string{"", "# nothing\n", "---\n" + server, server + "pins: {new: show}\n", server + "mode:\n"} {
		if _, err := Parse([]byte(file)); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// What is written and would not hold must not load.
func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"a second document":            {"servers: {a: {command: [x]}}\n---\npermissions: {deny: [\"a.*\"]}\n", "a second document"},
		"a second document, malformed": {"servers: {a: {command: [x]}}\n---\n{{\n", ""},
		"a second document, empty top": {"---\n---\npermissions: {deny: [\"a.*\"]}\n", "a second document"},
		"a document after its end":     {"servers: {a: {command: [x]}}\n...\npermissions: {deny: [\"a.*\"]}\n", ""},
		"a server that says nothing":   {"servers:\n  a:\n", "a: nothing stands below it"},
		"an emptied condition":         {"servers: {a: {command: [x]}}\nrules:\n  - allow: a.*\n    when:\n", "line 4: when is empty"},
		"an empty item":                {"servers: {a: {command: [x]}}\nstore:\n  own:\n    -\n", "an item of own is empty"},
		"an anchor to nothing":         {"servers: {a: {command: [x]}}\nrules:\n  - {allow: a.*, when: &x }\n", "when"},
		"a key twice":                  {"servers: {a: {command: [x]}, a: {command: [y]}}\n", "already defined"},
		"an unknown key":               {"servers: {a: {comand: [x]}}\n", `unknown field "comand"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestParseTakes(t *testing.T) {
	for name, file := range map[string]string{
		"nothing":               "",
		"only a comment":        "# nothing yet\n",
		"null as an argument":   "servers: {a: {command: [x]}}\nrules:\n  - {ask: a.b, tests: [{tool: a.b, args: {x: null}, expect: ask}]}\n",
		"a marker at the start": "---\nservers: {a: {command: [x]}}\n",
		"a marker at the end":   "servers: {a: {command: [x]}}\n...\n# end\n",
		"three dashes in words": "servers: {a: {command: [x], env: {X: \"---\"}}}\nrules:\n  - name: a\n    because: |\n      one\n      ---\n      two\n",
	} {
		if _, err := Parse([]byte(file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
