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
