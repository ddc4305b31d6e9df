package config

import (
	"strings"
	"testing"
)

// What is written and would not hold must not load.
func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"a second document":            {"servers: {a: {command: [x]}}\n---\npermissions: {deny: [\"a.*\"]}\n", "a second document"},
		"a second document, malformed": {"servers: {a: {command: [x]}}\n---\n{{\n", ""},
		"a second document, empty top": {"---\n---\npermissions: {deny: [\"a.*\"]}\n", "a second document"},
		"a document after its end":     {"servers: {a: {command: [x]}}\n...\npermissions: {deny: [\"a.*\"]}\n", ""},
		"a server that says nothing":   {"servers:\n  a:\n", "a: nothing stands below it"},
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
		"a marker at the start": "---\nservers: {a: {command: [x]}}\n",
		"a marker at the end":   "servers: {a: {command: [x]}}\n...\n# end\n",
		"three dashes in words": "servers: {a: {command: [x], env: {X: \"---\"}}}\nrules:\n  - name: a\n    because: |\n      one\n      ---\n      two\n",
	} {
		if _, err := Parse([]byte(file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
