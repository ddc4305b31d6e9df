package connect

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

var (
	jsonc = Formats["mcpServers"]
	tomls = Formats["mcp_servers"]
)

// there connects and gives what came of it, and checks that taking hearsay out gives the same bytes again.
func there(t *testing.T, before string, opt Options) (string, []Server) {
	t.Helper()
	plan, err := Connect([]byte(before), opt)
	if err != nil {
		t.Fatalf("%v, for\n%s", err, before)
	}
	undone, err := Undo(plan.Data, [][]byte{[]byte(before)}, options(opt.Format))
	if err != nil {
		t.Fatalf("%v, for\n%s\nwhich became\n%s", err, before, plan.Data)
	}
	if string(undone.Data) != before {
		t.Errorf("there and back:\n%q\nbecame\n%q\nand then\n%q", before, plan.Data, undone.Data)
	}
	return string(plan.Data), plan.Servers
}

// What a server's entry looks like is kept, however it is written.
func TestEntriesKeepTheirForm(t *testing.T) {
	for name, tt := range map[string]struct {
		format       Format
		before, want string
	}{
		"one line":             {jsonc, `{"mcpServers":{"a":{"command":"x","args":["1","2"]}}}`, `{"mcpServers":{"a":{"command":"BIN","args":["mcp","--name","a","--","x","1","2"]}}}`},
		"one argument":         {jsonc, `{"mcpServers":{"a":{"args":["1"],"command":"x"}}}`, `{"mcpServers":{"a":{"args":["mcp", "--name", "a", "--", "x", "1"],"command":"BIN"}}}`},
		"no args":              {jsonc, `{"mcpServers":{"a":{"type":"stdio","command":"x","env":{}}}}`, `{"mcpServers":{"a":{"type":"stdio","command":"BIN","args":["mcp", "--name", "a", "--", "x"],"env":{}}}}`},
		"no args, only member": {jsonc, `{"mcpServers": {"a": {"command" : "x"}}}`, `{"mcpServers": {"a": {"command" : "BIN", "args" : ["mcp", "--name", "a", "--", "x"]}}}`},
		"empty args":           {jsonc, "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\n]}}}", "{\"mcpServers\":{\"a\":{\"command\":\"BIN\",\"args\":[\"mcp\", \"--name\", \"a\", \"--\", \"x\"\n]}}}"},
		"args of a comment":    {jsonc, `{"mcpServers":{"a":{"command":"x","args":[/* none */]}}}`, `{"mcpServers":{"a":{"command":"BIN","args":["mcp", "--name", "a", "--", "x"/* none */]}}}`},
		"spelled with escapes": {jsonc, `{"mcpServers":{"a":{"command":"\u0078\/y","args":["\u0031"]}}}`, `{"mcpServers":{"a":{"command":"BIN","args":["mcp", "--name", "a", "--", "\u0078\/y", "\u0031"]}}}`},
		"carriage returns":     {jsonc, "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\r\n\t\t\t\"command\": \"x\"\r\n\t\t}\r\n\t}\r\n}\r\n", "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\r\n\t\t\t\"command\": \"BIN\",\r\n\t\t\t\"args\": [\"mcp\", \"--name\", \"a\", \"--\", \"x\"]\r\n\t\t}\r\n\t}\r\n}\r\n"},
		"byte order mark":      {jsonc, "\ufeff{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[]}}}", "\ufeff{\"mcpServers\":{\"a\":{\"command\":\"BIN\",\"args\":[\"mcp\", \"--name\", \"a\", \"--\", \"x\"]}}}"},
		"comment at the end":   {jsonc, `{"mcpServers":{"a":{"command":"x","args":["1",]}}} // end`, `{"mcpServers":{"a":{"command":"BIN","args":["mcp", "--name", "a", "--", "x", "1",]}}} // end`},
		"env is null":          {jsonc, `{"mcpServers":{"a":{"command":"x","args":["1"],"env":null}}}`, `{"mcpServers":{"a":{"command":"BIN","args":["mcp", "--name", "a", "--", "x", "1"],"env":null}}}`},
		"env":                  {jsonc, `{"mcpServers":{"a":{"command":"x","args":["1"],"env":{"B":"2","A":"1"}}}}`, `{"mcpServers":{"a":{"command":"BIN","args":["mcp", "--name", "a", "--pass-env", "B", "--pass-env", "A", "--", "x", "1"],"env":{"B":"2","A":"1"}}}}`},
		"its words are ours":   {jsonc, `{"mcpServers":{"a":{"command":"x","args":["--","--name","mcp"]}}}`, `{"mcpServers":{"a":{"command":"BIN","args":["mcp","--name","a","--","x","--","--name","mcp"]}}}`},

		"table":                     {tomls, "[mcp_servers.a]\ncommand = \"x\"\nargs = [ \"1\" ]\n", "[mcp_servers.a]\ncommand = \"BIN\"\nargs = [ \"mcp\", \"--name\", \"a\", \"--\", \"x\", \"1\" ]\n"},
		"table without args":        {tomls, "[mcp_servers.a]\n  command=\"x\" # c", "[mcp_servers.a]\n  command=\"BIN\" # c\n  args=[\"mcp\", \"--name\", \"a\", \"--\", \"x\"]"},
		"table, carriage returns":   {tomls, "[mcp_servers.a]\r\ncommand = \"x\"\r\nurl_ = 1\r\n", "[mcp_servers.a]\r\ncommand = \"BIN\"\r\nargs = [\"mcp\", \"--name\", \"a\", \"--\", \"x\"]\r\nurl_ = 1\r\n"},
		"args before command":       {tomls, "[mcp_servers.a]\nargs = []\ncommand = 'x'", "[mcp_servers.a]\nargs = [\"mcp\", \"--name\", \"a\", \"--\", 'x']\ncommand = \"BIN\""},
		"dotted":                    {tomls, "mcp_servers.a.command = \"x\"\nmcp_servers . \"b\" . command = \"y\"\n", "mcp_servers.a.command = \"BIN\"\nmcp_servers.a.args = [\"mcp\", \"--name\", \"a\", \"--\", \"x\"]\nmcp_servers . \"b\" . command = \"BIN\"\nmcp_servers . \"b\" . args = [\"mcp\", \"--name\", \"b\", \"--\", \"y\"]\n"},
		"inline":                    {tomls, "mcp_servers = { a = { command = \"x\" }, b = {command='y',args=['1','2']} }\n", "mcp_servers = { a = { command = \"BIN\", args = [\"mcp\", \"--name\", \"a\", \"--\", \"x\"] }, b = {command=\"BIN\",args=[\"mcp\",\"--name\",\"b\",\"--\",'y','1','2']} }\n"},
		"text over lines":           {tomls, "[mcp_servers.a]\ncommand = \"\"\"\\\n  x\"\"\"\nargs = [ # none\n]\n", "[mcp_servers.a]\ncommand = \"BIN\"\nargs = [\"mcp\", \"--name\", \"a\", \"--\", \"\"\"\\\n  x\"\"\" # none\n]\n"},
		"env in a table of its own": {tomls, "[mcp_servers.a.env]\nB = \"1\"\n[mcp_servers.a]\ncommand = \"x\"\nenv_vars = [\"A\"]\nargs = [\n  \"1\",\n]\n", "[mcp_servers.a.env]\nB = \"1\"\n[mcp_servers.a]\ncommand = \"BIN\"\nenv_vars = [\"A\"]\nargs = [\n  \"mcp\",\n  \"--name\",\n  \"a\",\n  \"--pass-env\",\n  \"B\",\n  \"--pass-env\",\n  \"A\",\n  \"--\",\n  \"x\",\n  \"1\",\n]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, servers := there(t, tt.before, options(tt.format))
			if want := strings.ReplaceAll(tt.want, "BIN", binary); got != want {
				t.Errorf("got\n%q\nwant\n%q", got, want)
			}
			for _, s := range servers {
				if s.State != Wrapped {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// The entry for a hearsay.yaml finds its place in whatever is there.
func TestServedEntryFindsItsPlace(t *testing.T) {
	const entry = `"hearsay": {"command": "BIN", "args": ["mcp", "-c", "/home/ann/hearsay.yaml"]}`
	wide := func(indent, newline string) string {
		return strings.Join([]string{`"hearsay": {`, indent + `  "command": "BIN",`, indent + `  "args": ["mcp", "-c", "/home/ann/hearsay.yaml"]`, indent + `}`}, newline)
	}
	const table = "[mcp_servers.hearsay]\ncommand = \"BIN\"\nargs = [\"mcp\", \"-c\", \"/home/ann/hearsay.yaml\"]\n"
	for name, tt := range map[string]struct {
		format       Format
		before, want string
	}{
		"white space only":           {jsonc, "\n", ""},
		"empty object":               {jsonc, `{}`, "{\n  \"mcpServers\": {\n    " + wide("    ", "\n") + "\n  }\n}"},
		"empty object over lines":    {jsonc, "{\n}\n", "{\n  \"mcpServers\": {\n    " + wide("    ", "\n") + "\n  }\n}\n"},
		"empty servers":              {jsonc, "{\n  \"mcpServers\": {}\n}", "{\n  \"mcpServers\": {\n    " + wide("    ", "\n") + "\n  }\n}"},
		"empty servers over lines":   {jsonc, "{\n  \"mcpServers\": {\n\n  }\n}", "{\n  \"mcpServers\": {\n    " + wide("    ", "\n") + "\n\n  }\n}"},
		"servers of a comment":       {jsonc, "{\n  \"mcpServers\": { // none\n  }\n}", "{\n  \"mcpServers\": {\n    " + wide("    ", "\n") + " // none\n  }\n}"},
		"other members":              {jsonc, "{\n  \"theme\": \"dark\"\n}", "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    " + wide("    ", "\n") + "\n  }\n}"},
		"one line":                   {jsonc, `{"mcpServers":{"a":{"url":"u"}}}`, `{"mcpServers":{"a":{"url":"u"},` + entry + `}}`},
		"one line, no servers":       {jsonc, `{"theme":1}`, `{"theme":1,"mcpServers": {` + entry + `}}`},
		"trailing comma":             {jsonc, "{\n  \"mcpServers\": {\n    \"a\": {\"url\": \"u\"},\n  },\n}", "{\n  \"mcpServers\": {\n    \"a\": {\"url\": \"u\"},\n    " + wide("    ", "\n") + ",\n  },\n}"},
		"comment of the last":        {jsonc, "{\n  \"mcpServers\": {\n    \"a\": {\"url\": \"u\"} // a\n  }\n}", "{\n  \"mcpServers\": {\n    \"a\": {\"url\": \"u\"}, // a\n    " + wide("    ", "\n") + "\n  }\n}"},
		"comment behind the comma":   {jsonc, "{\n  \"mcpServers\": {\n    \"a\": {\"url\": \"u\"}, /* a */\n    // b\n  }\n}", "{\n  \"mcpServers\": {\n    \"a\": {\"url\": \"u\"}, /* a */\n    " + wide("    ", "\n") + ",\n    // b\n  }\n}"},
		"carriage returns":           {jsonc, "{\r\n  \"mcpServers\": {\r\n    \"a\": {\"url\": \"u\"}\r\n  }\r\n}", "{\r\n  \"mcpServers\": {\r\n    \"a\": {\"url\": \"u\"},\r\n    " + wide("    ", "\r\n") + "\r\n  }\r\n}"},
		"toml, empty":                {tomls, "", table},
		"toml, other things":         {tomls, "a = 1\n", "a = 1\n\n" + table},
		"toml, last line not ended":  {tomls, "a = 1", "a = 1\n\n" + table},
		"toml, empty lines":          {tomls, "a = 1\n\n\n", "a = 1\n\n\n\n" + table},
		"toml, carriage returns":     {tomls, "a = 1\r\n", "a = 1\r\n\r\n" + strings.ReplaceAll(table, "\n", "\r\n")},
		"toml, dotted servers above": {tomls, "mcp_servers.a.url = \"u\"\n", "mcp_servers.a.url = \"u\"\n\n" + table},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := there(t, tt.before, served(tt.format))
			if want := strings.ReplaceAll(tt.want, "BIN", binary); tt.want != "" && got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	if _, err := Connect([]byte("mcp_servers = { a = { url = \"u\" } }\n"), served(tomls)); err == nil {
		t.Error("a table was added to one that is closed")
	}
}

// A file that was not there is made, and removed again.
func TestServedEntryMakesTheFile(t *testing.T) {
	for _, f := range []Format{jsonc, tomls} {
		plan, err := Connect(nil, served(f))
		if err != nil {
			t.Fatal(err)
		}
		if d, err := read(f, plan.Data); err != nil || !slices.Equal(d.entries[0].words(), []string{binary, "mcp", "-c", config}) {
			t.Errorf("%v: %s", err, plan.Data)
		}
		undone, err := Undo(plan.Data, [][]byte{{}}, options(f))
		if err != nil || undone.Data != nil {
			t.Errorf("%v: %q", err, undone.Data)
		}
	}
}

func states(servers []Server) map[string]State {
	out := map[string]State{}
	for _, s := range servers {
		out[s.Name] = s.State
	}
	return out
}

// What cannot be put behind hearsay stays, and the person learns why.
func TestEntriesThatStay(t *testing.T) {
	for name, tt := range map[string]struct {
		format Format
		entry  string
		state  State
		why    string
	}{
		"through hearsay":           {jsonc, `{"command":"` + binary + `","args":["mcp","--","x"]}`, Guarded, ""},
		"through hearsay of PATH":   {jsonc, `{"command":"hearsay","args":["mcp","--","x"]}`, Guarded, ""},
		"hearsay of a PATH it sets": {jsonc, `{"command":"hearsay","args":["mcp","--","x"],"env":{"PATH":"/tmp"}}`, Unknown, "is not this one"},
		"another hearsay":           {jsonc, `{"command":"/opt/hearsay","args":["mcp","--","x"]}`, Unknown, "is not this one"},
		"a project's hearsay":       {jsonc, `{"command":"./tools/hearsay","args":["mcp","--","x"]}`, Unknown, "is not this one"},
		"toml, another hearsay":     {tomls, `{ command = "tools/hearsay", args = ["mcp", "-c", "x"] }`, Unknown, "is not this one"},
		"command in two cases":      {jsonc, `{"command":"x","Command":"y"}`, Unknown, `some clients read its "Command" as command`},
		"address in another case":   {jsonc, `{"command":"x","URL":"https://x.example"}`, Unknown, "as url"},
		"another word of hearsay":   {jsonc, `{"command":"/opt/hearsay","args":["demo-server"]}`, Wrapped, ""},
		"an address":                {jsonc, `{"url":"https://x.example"}`, Remote, ""},
		"an address of Gemini's":    {jsonc, `{"httpUrl":"https://x.example"}`, Remote, ""},
		"an address of Windsurf's":  {jsonc, `{"serverUrl":"https://x.example"}`, Remote, ""},
		"both":                      {jsonc, `{"command":"x","url":"https://x.example"}`, Unknown, "a command and an address"},
		"neither":                   {jsonc, `{}`, Unknown, "no command"},
		"no object":                 {jsonc, `"x"`, Unknown, "no object"},
		"command of another kind":   {jsonc, `{"command":["x"]}`, Unknown, "its command is no text"},
		"empty command":             {jsonc, `{"command":""}`, Unknown, "empty"},
		"command line":              {jsonc, `{"command":"npx -y x"}`, Unknown, "a whole line"},
		"args of another kind":      {jsonc, `{"command":"x","args":["a",1]}`, Unknown, "its args"},
		"args as one text":          {jsonc, `{"command":"x","args":"a"}`, Unknown, "its args"},
		"env of another kind":       {jsonc, `{"command":"x","env":["A=1"]}`, Unknown, "its env"},
		"a variable that is none":   {jsonc, `{"command":"x","env":{"A=B":"1"}}`, Unknown, "no name of a variable"},
		"variables in a file":       {jsonc, `{"command":"x","envFile":".env"}`, Unknown, "--pass-env"},
		"toml, no table":            {tomls, `"x"`, Unknown, "no table"},
		"toml, an address":          {tomls, `{ url = "https://x.example" }`, Remote, ""},
		"toml, command of numbers":  {tomls, `{ command = 1 }`, Unknown, "its command"},
		"toml, args of numbers":     {tomls, `{ command = "x", args = [1] }`, Unknown, "its args"},
		"toml, args of arrays":      {tomls, `{ command = "x", args = [["a"]] }`, Unknown, "its args"},
		"toml, env of another kind": {tomls, `{ command = "x", env = 1 }`, Unknown, "its env"},
		"toml, env_vars of numbers": {tomls, `{ command = "x", env_vars = [1] }`, Unknown, "env_vars"},
		"toml, through hearsay":     {tomls, `{ command = "hearsay", args = ["mcp", "-c", "x"] }`, Guarded, ""},
		"toml, a table of tables":   {tomls, "[]\n[[mcp_servers.b]]\ncommand = \"x\"", Unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := `{"mcpServers":{"a":` + tt.entry + `}}`
			entry := "a"
			if tt.format.TOML {
				before = "[mcp_servers]\na = " + tt.entry + "\n"
				if strings.HasPrefix(tt.entry, "[]") {
					entry = "b"
				}
			}
			got, servers := there(t, before, options(tt.format))
			if (got == before) != (tt.state != Wrapped) {
				t.Errorf("it became %s", got)
			}
			i := slices.IndexFunc(servers, func(s Server) bool { return s.Name == entry })
			if s := servers[i]; s.State != tt.state || !strings.Contains(s.Why, tt.why) {
				t.Errorf("%+v", s)
			}
		})
	}
	opt := options(jsonc)
	opt.PassEnv = []string{"A"}
	if got, _ := there(t, `{"mcpServers":{"a":{"command":"x","args":["1","2"],"envFile":".env"}}}`, opt); !strings.Contains(got, `"--pass-env","A","--","x","1"`) {
		t.Errorf("got %s", got)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		format      Format
		before, why string
	}{
		"no JSON":             {jsonc, `{"mcpServers":`, "line 2, column 1"},
		"no object":           {jsonc, `[]`, "no JSON object"},
		"servers of a kind":   {jsonc, `{"mcpServers":[]}`, "no object"},
		"twice the servers":   {jsonc, `{"mcpServers":{},"mcpServers":{}}`, "stands twice"},
		"the servers folded":  {jsonc, `{"mcpServers":{},"MCPServers":{"a":{"command":"x"}}}`, "read \"MCPServers\" as mcpServers"},
		"twice a server":      {jsonc, "{\"mcpServers\":{\"a\":{},\n\"\\u0061\":{}}}", "line 2: the name \"a\" stands twice"},
		"twice a command":     {jsonc, `{"mcpServers":{"a":{"command":"x","command":"y"}}}`, "stands twice"},
		"twice a variable":    {jsonc, `{"mcpServers":{"a":{"command":"x","env":{"A":"1","A":"2"}}}}`, "stands twice"},
		"nests too deep":      {jsonc, `{"a":` + strings.Repeat("[", 1<<20), "deep"},
		"too many values":     {jsonc, `{"a":[` + strings.Repeat("0,", maxValues+1) + "0]}", "values"},
		"a secret in no JSON": {jsonc, "{\"token\":\n\"s3cret\\q\"}", "line 2, column 1"},
		"no TOML":             {tomls, "[mcp_servers.a\n", "line 1"},
		"twice in TOML":       {tomls, "[mcp_servers.a]\n[mcp_servers.a]\n", "line 2"},
		"no table":            {tomls, "mcp_servers = 1\n", "no table"},
		"an array of tables":  {tomls, "[[mcp_servers]]\ncommand = \"x\"\n", "no table"},
		"a secret in no TOML": {tomls, "token = \"s3cret\n", "line 1"},
		"TOML too deep":       {tomls, "a = " + strings.Repeat("[", maxTOML-4), "not TOML"},
		"TOML too large":      {tomls, strings.Repeat("#", maxTOML+1), "larger"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Connect([]byte(tt.before), options(tt.format))
			if err == nil || !strings.Contains(err.Error(), tt.why) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v, want it to say %q", err, tt.why)
			}
		})
	}
	if _, err := Connect(bytes.Repeat([]byte(" "), MaxFile+1), options(jsonc)); err == nil {
		t.Error("a file beyond the bound is read")
	}
	for _, bad := range []string{"", "hearsay", "/opt/$HOME/hearsay", "/opt/\nhearsay", "/opt/\xff"} {
		opt := options(jsonc)
		opt.Binary = bad
		if _, err := Connect([]byte(`{}`), opt); err == nil {
			t.Errorf("%q may stand in a client's file", bad)
		}
	}
}

// An edit that says more than it should is not written, whatever made it.
func TestWrongEditsAreRefused(t *testing.T) {
	const before = `{"mcpServers": {"a": {"command": "x", "args": ["1"]}}, "theme": "dark"}`
	d, err := read(jsonc, []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	e := d.entries[0]
	theme := strings.Index(before, "dark")
	for name, edits := range map[string][]edit{
		"another member":   {{span{theme, theme + 4}, "bright"}},
		"another argument": {{e.args.elems[0].span, `"2"`}},
		"no JSON":          {{span{theme, theme + 5}, ""}},
		"none":             nil,
		"overlapping":      {{e.command.span, `"y"`}, {span{e.command.start, e.command.end + 1}, `"y",`}},
	} {
		c := &change{document: d, edits: edits, want: map[*entry][]string{e: {"y", "1"}}}
		if _, err := c.plan(nil); err == nil {
			t.Errorf("%s: it would be written", name)
		}
	}
	c := &change{document: d, edits: []edit{{e.command.span, `"y"`}}, want: map[*entry][]string{e: {"y", "1"}}}
	if plan, err := c.plan(nil); err != nil || string(plan.Data) != strings.Replace(before, `"x"`, `"y"`, 1) {
		t.Errorf("the right edit: %v", err)
	}

	c = &change{document: d}
	for after, ok := range map[string]bool{
		`{"mcpServers": {"a": {"command": "x", "args": ["1"]}, "hearsay": {}}, "theme": "dark"}`:   true,
		`{"mcpServers": {"a": {"command": "x", "args": ["1"]}, "hearsay": {}}, "theme": "bright"}`: false,
		`{"mcpServers": {"hearsay": {}}, "theme": "dark"}`:                                         false,
	} {
		if err := c.sameWithout([]byte(after)); (err == nil) != ok {
			t.Errorf("%s: %v", after, err)
		}
	}
}
