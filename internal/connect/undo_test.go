package connect

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

const twoServers = `{
  // mine
  "mcpServers": {
    "a": {"command": "x", "args": ["1", "2"], "env": {"K": "v"}},
    "b": {"command": "y"},
    "own": {"command": "` + binary + `", "args": ["mcp", "--name", "own", "--", "z"]}
  },
  "theme": "dark"
}
`

// Entries are put back in a file that was edited since; what was edited otherwise stays, and an entry that was edited too.
func TestUndoOfAnEditedFile(t *testing.T) {
	for name, tt := range map[string]struct {
		edit   func(string) string // of the file with hearsay in it
		states map[string]State
		want   func(before string) string // nil: as it was after the edit
	}{
		"elsewhere": {
			func(s string) string {
				return strings.Replace(s, `"dark"`, `"light" /* new */, "n": 1`, 1)
			},
			map[string]State{"a": Restored, "b": Restored, "own": Guarded},
			func(s string) string { return strings.Replace(s, `"dark"`, `"light" /* new */, "n": 1`, 1) },
		},
		"a further server": {
			func(s string) string { return strings.Replace(s, `"b":`, `"c": {"command": "w"}, "b":`, 1) },
			map[string]State{"a": Restored, "b": Restored, "own": Guarded, "c": Beside},
			func(s string) string { return strings.Replace(s, `"b":`, `"c": {"command": "w"}, "b":`, 1) },
		},
		"the value of a variable": {
			func(s string) string { return strings.Replace(s, `"v"`, `"w", "L": "u"`, 1) },
			map[string]State{"a": Restored, "b": Restored, "own": Guarded},
			func(s string) string { return strings.Replace(s, `"v"`, `"w", "L": "u"`, 1) },
		},
		"the label": {
			func(s string) string { return strings.Replace(s, `"--name", "a"`, `"--name", "mine"`, 1) },
			map[string]State{"a": Restored, "b": Restored, "own": Guarded},
			func(s string) string { return s },
		},
		"an argument": {
			func(s string) string { return strings.Replace(s, `"2"]`, `"3"]`, 1) },
			map[string]State{"a": Edited, "b": Restored, "own": Guarded},
			func(s string) string {
				return strings.Replace(s, `"command": "x", "args": ["1", "2"]`, `"command": "`+binary+`", "args": ["mcp", "--name", "a", "--pass-env", "K", "--", "x", "1", "3"]`, 1)
			},
		},
		"a flag of hearsay": {
			func(s string) string { return strings.Replace(s, `"--name", "b"`, `"--lock", "l", "--name", "b"`, 1) },
			map[string]State{"a": Restored, "b": Edited, "own": Guarded},
			func(s string) string {
				return strings.Replace(s, `"command": "y"`, `"command": "`+binary+`", "args": ["mcp", "--lock", "l", "--name", "b", "--", "y"]`, 1)
			},
		},
		"a comment among our words": {
			func(s string) string { return strings.Replace(s, `"--", "y"`, `"--", /* why */ "y"`, 1) },
			map[string]State{"a": Restored, "b": Edited, "own": Guarded}, nil,
		},
		"a comment among our words and others": {
			func(s string) string { return strings.Replace(s, `"x", "1"`, `"x", /* why */ "1"`, 1) },
			map[string]State{"a": Edited, "b": Restored, "own": Guarded}, nil,
		},
		"a name": {
			func(s string) string { return strings.Replace(s, `"b":`, `"d":`, 1) },
			map[string]State{"a": Restored, "d": Guarded, "own": Guarded}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := Connect([]byte(twoServers), options(jsonc))
			if err != nil {
				t.Fatal(err)
			}
			edited := tt.edit(string(plan.Data))
			if edited == string(plan.Data) {
				t.Fatal("the edit does nothing")
			}
			undone, err := Undo([]byte(edited), [][]byte{[]byte(twoServers)}, options(jsonc))
			if err != nil {
				t.Fatal(err)
			}
			got := states(undone.Servers)
			for name, want := range tt.states {
				if got[name] != want {
					t.Errorf("%s is %q, want %q", name, got[name], want)
				}
			}
			if tt.want != nil && string(undone.Data) != tt.want(twoServers) {
				t.Errorf("got\n%s\nwant\n%s", undone.Data, tt.want(twoServers))
			}
		})
	}
}

// A client that writes its file anew, in its own layout, keeps the words: they are put back.
func TestUndoOfAFileWrittenAnew(t *testing.T) {
	const before = `{"mcpServers":{"a":{"command":"x","args":["1","2"]},"b":{"command":"y"},"c":{"command":"z","args":[]}}}`
	for _, opt := range []Options{options(jsonc), served(jsonc)} {
		plan, err := Connect([]byte(before), opt)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(plan.Data, &v); err != nil {
			t.Fatal(err)
		}
		anew, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		undone, err := Undo(anew, [][]byte{[]byte(before)}, options(jsonc))
		if err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, undone.Data); err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(before)); err != nil {
			t.Fatal(err)
		}
		got, expected := new(any), new(any)
		_ = json.Unmarshal(compact.Bytes(), got)
		_ = json.Unmarshal(want.Bytes(), expected)
		a, _ := json.Marshal(*got)
		b, _ := json.Marshal(*expected)
		if !bytes.Equal(a, b) {
			t.Errorf("got %s, want %s", a, b)
		}
	}
}

// Without a copy of the file nobody can tell who wrote an entry.
func TestUndoWithoutACopy(t *testing.T) {
	plan, err := Connect([]byte(twoServers), options(jsonc))
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range [][][]byte{nil, {[]byte("no JSON")}, {plan.Data}} {
		undone, err := Undo(plan.Data, kept, options(jsonc))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(undone.Data, plan.Data) || undone.Changes() {
			t.Errorf("it became\n%s", undone.Data)
		}
		for _, s := range undone.Servers {
			if s.State != Guarded || !strings.Contains(s.Why, "did not put it there") {
				t.Errorf("%+v", s)
			}
		}
	}
}

// What was connected in several steps is undone in one, or server by server.
func TestUndoOfSeveralSteps(t *testing.T) {
	kept := [][]byte{[]byte(twoServers)}
	data := kept[0]
	for _, opt := range []Options{{Servers: []string{"b"}}, {Servers: []string{"a"}}, {Config: "/first.yaml"}, {Config: config}} {
		opt.Format, opt.Binary, opt.Label = jsonc, binary, options(jsonc).Label
		plan, err := Connect(data, opt)
		if err != nil {
			t.Fatal(err)
		}
		data = plan.Data
		kept = append(kept, data)
	}
	kept = kept[:len(kept)-1] // a copy is of what was before
	if !bytes.Contains(data, []byte(config)) || bytes.Contains(data, []byte("first")) {
		t.Errorf("the last file is not the one that is served: %s", data)
	}
	whole, err := Undo(data, kept, options(jsonc))
	if err != nil {
		t.Fatal(err)
	}
	if string(whole.Data) != twoServers {
		t.Errorf("got\n%s", whole.Data)
	}
	for _, name := range []string{"a", "hearsay", "b"} {
		opt := options(jsonc)
		opt.Servers = []string{name}
		plan, err := Undo(data, kept, opt)
		if err != nil {
			t.Fatal(err)
		}
		if n := slices.IndexFunc(plan.Servers, func(s Server) bool { return s.State.changes() && s.Name != name }); n >= 0 {
			t.Errorf("%+v too", plan.Servers[n])
		}
		data = plan.Data
	}
	if string(data) != twoServers {
		t.Errorf("one by one:\n%s", data)
	}
}

// An entry of one's own that serves a file is put back where connect served another, and one that was extended stays.
func TestUndoOfAServedEntry(t *testing.T) {
	const own = `{"mcpServers": {"hearsay": {"command": "hearsay",  "args": ["mcp",  "--config", "mine.yaml", "-v"], "env": {"A": "1"}}}}`
	plan, err := Connect([]byte(own), served(jsonc))
	if err != nil {
		t.Fatal(err)
	}
	if s := plan.Servers[0]; s.State != Replaced || !bytes.Contains(plan.Data, []byte(config)) {
		t.Errorf("%+v", s)
	}
	undone, err := Undo(plan.Data, [][]byte{[]byte(own)}, options(jsonc))
	if err != nil || string(undone.Data) != own {
		t.Errorf("%v: %s", err, undone.Data)
	}

	plan, err = Connect([]byte(`{}`), served(jsonc))
	if err != nil {
		t.Fatal(err)
	}
	more := bytes.Replace(plan.Data, []byte(`"command"`), []byte(`"env": {"A": "1"}, "command"`), 1)
	undone, err = Undo(more, [][]byte{[]byte(`{}`)}, options(jsonc))
	if err != nil || states(undone.Servers)["hearsay"] != Edited || !bytes.Equal(undone.Data, more) {
		t.Errorf("%v: %+v", err, undone.Servers)
	}

	more = bytes.Replace(plan.Data, []byte(`"-c"`), []byte(`"--profile", "p", "-c"`), 1)
	undone, err = Undo(more, [][]byte{[]byte(`{}`)}, options(jsonc))
	if err != nil || states(undone.Servers)["hearsay"] != Edited || !bytes.Equal(undone.Data, more) {
		t.Errorf("%v: %+v", err, undone.Servers)
	}

	for _, other := range []string{`{"command": "other"}`, `{"command": "hearsay"}`, `{"url": "u"}`, `1`,
		`{"command": "hearsay", "args": ["mcp", "-c"]}`, `{"command": "hearsay", "args": ["mcp", "--env", "A=s3cret", "--", "x"]}`} {
		if _, err := Connect([]byte(`{"mcpServers": {"hearsay": `+other+`}}`), served(jsonc)); err == nil {
			t.Errorf("%s was written over", other)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Error(err)
		}
	}
}
