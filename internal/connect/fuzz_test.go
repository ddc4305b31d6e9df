package connect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// holds checks what must hold of any file that connect takes: it says the same but for the entries, and hearsay comes out again.
// It gives the number of ways in which the file was taken and changed.
func holds(t interface{ Fatalf(string, ...any) }, before []byte, format Format) (taken int) {
	for _, opt := range []Options{options(format), served(format)} {
		plan, err := Connect(before, opt)
		if err != nil {
			continue
		}
		old, err := read(format, before)
		if err != nil {
			t.Fatalf("a file that cannot be read was taken: %v", err)
		}
		now, err := read(format, plan.Data)
		if err != nil {
			t.Fatalf("%v:\n%q\nbecame\n%q", err, before, plan.Data)
		}
		changed := 0
		for _, s := range plan.Servers {
			if s.State.changes() {
				changed++
			}
		}
		if (changed == 0) != bytes.Equal(before, plan.Data) {
			t.Fatalf("%d entries change:\n%q\nbecame\n%q", changed, before, plan.Data)
		}
		if !reflect.DeepEqual(rest(old.tree, format), rest(now.tree, format)) {
			t.Fatalf("something else changed:\n%q\nbecame\n%q", before, plan.Data)
		}
		for i, s := range plan.Servers {
			if s.State != Wrapped {
				continue
			}
			was, is := old.entries[i].words(), now.entries[i].words()
			if is[0] != binary || !reflect.DeepEqual(is[len(is)-len(was):], was) || leadLength(now.entries[i]) != len(is)-len(was)-1 {
				t.Fatalf("%q became %q", was, is)
			}
		}
		if changed > 0 {
			taken++
		}
		again, err := Connect(plan.Data, opt)
		if err != nil || !bytes.Equal(again.Data, plan.Data) {
			t.Fatalf("connected twice: %v\n%q\nbecame\n%q", err, plan.Data, again.Data)
		}
		undone, err := Undo(plan.Data, [][]byte{before}, options(format))
		if err != nil {
			t.Fatalf("%v:\n%q\nbecame\n%q", err, before, plan.Data)
		}
		if changed > 0 && len(before) == 0 && undone.Data == nil {
			continue // the file was made, and is removed
		}
		if !bytes.Equal(undone.Data, before) {
			t.Fatalf("there and back:\n%q\nbecame\n%q\nand then\n%q", before, plan.Data, undone.Data)
		}
	}
	return taken
}

// rest is what a file says without what connect may change in it.
func rest(tree any, format Format) any {
	root, _ := tree.(map[string]any)
	holders := []any{root}
	if projects, ok := root["projects"].(map[string]any); ok && format.Projects {
		for _, p := range projects {
			holders = append(holders, p)
		}
	}
	for _, h := range holders {
		servers, _ := at(h, format.Key).(map[string]any)
		for name, e := range servers {
			if e, ok := e.(map[string]any); ok && name != entryName {
				delete(e, "command")
				delete(e, "args")
			}
		}
		delete(servers, entryName)
	}
	if servers, ok := root[format.Key].(map[string]any); ok && len(servers) == 0 {
		delete(root, format.Key)
	}
	return root
}

func seeds(f *testing.F, toml bool) {
	for _, c := range Clients {
		if c.Format.TOML != toml {
			continue
		}
		for _, name := range []string{"before", "wrapped", "served"} {
			data, err := os.ReadFile(filepath.Join("testdata", "golden", c.Name, name))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
}

func FuzzJSON(f *testing.F) {
	seeds(f, false)
	for _, s := range []string{"", "{}", "{}//", `{"mcpServers":{"a":{"args":["1",/*x*/],"command":"x"},},"projects":{"p":{"mcpServers":{"a":{"command":"x"}}}},}`, "\ufeff{\"mcpServers\":{}}"} {
		f.Add([]byte(s))
	}
	format := Formats["mcpServers"]
	format.Projects = true
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<16 {
			holds(t, data, format)
		}
	})
}

func FuzzTOML(f *testing.F) {
	seeds(f, true)
	for _, s := range []string{"", "a=1", "mcp_servers={a={command='x'}}", "[mcp_servers]\na.command='x'\na.args=['1',# x\n]", "[mcp_servers.a]\ncommand='''\nx'''", "[[mcp_servers.a.b]]\n[mcp_servers.a]\ncommand=\"x\"#"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<16 {
			holds(t, data, tomls)
		}
	})
}

// Fuzzing seldom makes whole files: these are whole, and laid out in every way a person might.
func TestAnyLayout(t *testing.T) {
	for _, tt := range []struct {
		format Format
		draw   func(*rapid.T) string
	}{{jsonc, drawJSON}, {tomls, drawTOML}} {
		drawn, taken := 0, 0
		rapid.Check(t, func(t *rapid.T) {
			drawn++
			taken += holds(t, []byte(tt.draw(t)), tt.format)
		})
		if taken < drawn {
			t.Errorf("of %d files in both ways only %d were taken: the draw makes no files", drawn, taken)
		}
	}
}

func drawJSON(t *rapid.T) string {
	comments := rapid.Bool().Draw(t, "comments")
	nl := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "newline")
	space := func() string {
		all := []string{"", "", " ", "\t", nl, nl + "  ", nl + nl + "\t\t"}
		if comments {
			all = append(all, " // c, \"x\": 1"+nl, "/* } */", nl+"  // ]"+nl+"  ")
		}
		return rapid.SampledFrom(all).Draw(t, "space")
	}
	word := func() string {
		return rapid.SampledFrom([]string{`"x"`, `"npx"`, `"--"`, `"mcp"`, `"\u0061\n"`, `"/a b"`, `""`, `"é"`, `"a\"b,]"`}).Draw(t, "word")
	}
	join := func(open, end string, items []string) string {
		var b strings.Builder
		b.WriteString(open)
		for i, item := range items {
			b.WriteString(space() + item + space())
			if i < len(items)-1 || comments && rapid.Bool().Draw(t, "trailing comma") {
				b.WriteString(",")
			}
		}
		return b.String() + space() + end
	}
	member := func(name, value string) string { return `"` + name + `"` + space() + ":" + space() + value }
	entry := func() string {
		var members []string
		for _, name := range rapid.Permutation([]string{"command", "args", "env", "type", "n"}).Draw(t, "members") {
			if name != "command" && rapid.Bool().Draw(t, name) {
				continue
			}
			switch name {
			case "command":
				members = append(members, member(name, word()))
			case "args":
				var words []string
				for range rapid.IntRange(0, 3).Draw(t, "args") {
					words = append(words, word())
				}
				members = append(members, member(name, join("[", "]", words)))
			case "env":
				members = append(members, member(name, join("{", "}", []string{member("A", `"1"`), member("B.C", `"2"`)})))
			case "type":
				members = append(members, member(name, `"stdio"`))
			default:
				members = append(members, member(name, `{"command": [1e400, -0.0, "command"]}`))
			}
		}
		return join("{", "}", members)
	}
	var servers, members []string
	for i := range rapid.IntRange(0, 3).Draw(t, "servers") {
		servers = append(servers, member(fmt.Sprintf("s%d", i), entry()))
	}
	for _, name := range rapid.Permutation([]string{"theme", "mcpServers", "servers"}).Draw(t, "root") {
		switch {
		case name == "mcpServers" && !rapid.Bool().Draw(t, "no servers"):
			members = append(members, member(name, join("{", "}", servers)))
		case rapid.Bool().Draw(t, name):
			members = append(members, member(name, entry()))
		}
	}
	root := strings.Join([]string{space(), join("{", "}", members), space()}, "")
	return root
}

func drawTOML(t *rapid.T) string {
	nl := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "newline")
	word := func() string {
		return rapid.SampledFrom([]string{`"x"`, `'x'`, `"--"`, `"\u0061"`, `'C:\a'`, `"#"`, `"""` + nl + `x"""`, `'''x'''`, `"a,]"`}).Draw(t, "word")
	}
	space := func() string { return rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "space") }
	array := func() string {
		gap := func() string {
			return rapid.SampledFrom([]string{"", " ", nl, nl + "  ", " # c, ]" + nl}).Draw(t, "gap")
		}
		b := "["
		n := rapid.IntRange(0, 3).Draw(t, "args")
		for i := range n {
			b += gap() + word() + gap()
			if i < n-1 || rapid.Bool().Draw(t, "trailing comma") {
				b += ","
			}
		}
		return b + gap() + "]"
	}
	end := func() string { return space() + rapid.SampledFrom([]string{"", "# c"}).Draw(t, "comment") + nl }
	// Servers stand at the root with dotted names or below one header, and in tables of their own.
	head := rapid.SampledFrom([]string{"", "a = 1" + nl, "# c" + nl + nl}).Draw(t, "head")
	dot, section, tables := "mcp_servers"+space()+"."+space(), "", ""
	if rapid.Bool().Draw(t, "one header") {
		dot, section = "", "[mcp_servers]"+end()
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "servers") {
		name := fmt.Sprintf(rapid.SampledFrom([]string{"s%d", `"s %d"`, `'s.%d'`}).Draw(t, "name"), i)
		var members []string
		for _, m := range rapid.Permutation([]string{"command", "args", "env", "n"}).Draw(t, "members") {
			switch {
			case m == "command":
				members = append(members, "command"+space()+"="+space()+word())
			case !rapid.Bool().Draw(t, m):
			case m == "args":
				members = append(members, `"args"`+space()+"="+space()+array())
			case m == "env":
				members = append(members, `env = { A = "1", "B.C" = '2' }`)
			default:
				members = append(members, "n = 1979-05-27T07:32:00Z")
			}
		}
		switch rapid.SampledFrom([]string{"table", "dotted", "inline"}).Draw(t, "form") {
		case "table":
			tables += space() + "[" + space() + "mcp_servers." + name + "]" + end()
			for _, m := range members {
				tables += space() + m + end()
			}
		case "dotted":
			for _, m := range members {
				section += space() + dot + name + space() + "." + m + end()
			}
		case "inline":
			section += dot + name + " = {" + space() + strings.Join(members, space()+","+space()) + space() + "}" + end()
		}
	}
	text := head + section + tables
	if rapid.Bool().Draw(t, "unfinished line") {
		text = strings.TrimSuffix(text, nl)
	}
	return text
}
