package replay

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Suite is a set of user tasks, the attacks on them, and the tools of both. docs/replay.md describes the JSON form.
type Suite struct {
	Name       string         `json:"suite"`
	KnownStore map[string]any `json:"known_store"`
	Tools      []Tool         `json:"tools"`
	UserTasks  []UserTask     `json:"user_tasks"`
	Injections []Injection    `json:"injection_tasks"`
}

// Tool is a tool as its server describes it, with labels set by hand.
type Tool struct {
	Name             string         `json:"name"`
	Description      string         `json:"description"`
	InputSchema      map[string]any `json:"input_schema"`
	Effect           string         `json:"effect"` // read, egress or write
	ReturnsUntrusted bool           `json:"returns_untrusted"`
	BindArgs         []string       `json:"bind_args"`
	TextArgs         []string       `json:"text_args"`
}

// UserTask is what a user asks for and one way to do it.
type UserTask struct {
	ID                string `json:"id"`
	Prompt            string `json:"prompt"`
	FirstInjectedCall *int   `json:"first_injected_call"`
	Calls             []Call `json:"calls"`
}

// Injection is what an attacker wants and one way to get it.
type Injection struct {
	ID       string `json:"id"`
	Goal     string `json:"goal"`
	TextOnly bool   `json:"text_only"`
	Calls    []Call `json:"calls"`
}

// Call is one tool call with its result. ResultTemplate is the result with <INJECTION:id> where an attacker's text surfaces.
type Call struct {
	Tool           string         `json:"tool"`
	Args           map[string]any `json:"args"`
	Result         string         `json:"result"`
	ResultTemplate string         `json:"result_template"`
	Vectors        []string       `json:"vectors"`
}

// Bounds on what is read: far above any suite, below what could exhaust the machine.
const (
	maxSuite = 64 << 20
	maxItems = 10000
)

//go:embed testdata/own.json testdata/open.json
var embedded embed.FS

// Own returns the two suites that come with the program: "own", and "open", whose user tasks need instructions found in
// other people's data.
func Own() ([]Suite, error) {
	var out []Suite
	for _, name := range []string{"own", "open"} {
		data, err := embedded.ReadFile("testdata/" + name + ".json")
		if err != nil {
			return nil, err
		}
		s, err := Parse(data)
		if err != nil {
			return nil, fmt.Errorf("suite %s: %w", name, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// Load reads suites from files and folders; of a folder every file ending in .json that holds a suite, in the order of
// their names. A file that is named and is none is an error, as is a folder without any.
func Load(paths ...string) ([]Suite, error) {
	var out []Suite
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("reading a suite: %w", err)
		}
		files := []string{path}
		if info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil {
				return nil, fmt.Errorf("reading a suite: %w", err)
			}
			slices.Sort(files)
		}
		found := 0
		for _, file := range files {
			s, err := loadFile(file)
			if info.IsDir() && errors.Is(err, errNoSuite) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			out = append(out, s)
			found++
		}
		if found == 0 {
			return nil, fmt.Errorf("%s: no suite in it", path)
		}
	}
	return out, nil
}

func loadFile(file string) (Suite, error) {
	f, err := os.Open(file)
	if err != nil {
		return Suite{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSuite+1))
	if err != nil {
		return Suite{}, err
	}
	return Parse(data)
}

var errNoSuite = errors.New("not a suite: it needs suite, tools, user_tasks and injection_tasks")

// Parse reads one suite and checks that its calls name its tools.
func Parse(data []byte) (Suite, error) {
	if len(data) > maxSuite {
		return Suite{}, fmt.Errorf("larger than %d bytes", maxSuite)
	}
	var s Suite
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&s); err != nil {
		return Suite{}, fmt.Errorf("reading a suite: %w", err)
	}
	if s.Name == "" || len(s.Tools) == 0 || len(s.UserTasks) == 0 {
		return Suite{}, errNoSuite
	}
	if len(s.Tools) > maxItems || len(s.UserTasks) > maxItems || len(s.Injections) > maxItems {
		return Suite{}, fmt.Errorf("more than %d tools or tasks", maxItems)
	}
	known := map[string]bool{}
	for _, t := range s.Tools {
		switch t.Effect {
		case "read", "egress", "write":
		default:
			return Suite{}, fmt.Errorf("tool %s: effect %q is none of read, egress, write", t.Name, t.Effect)
		}
		if t.Name == "" || known[t.Name] {
			return Suite{}, fmt.Errorf("tool %q: no name, or one that is there already", t.Name)
		}
		known[t.Name] = true
	}
	check := func(id string, calls []Call) error {
		for i, c := range calls {
			if !known[c.Tool] {
				return fmt.Errorf("%s, call %d: no tool %q", id, i, c.Tool)
			}
		}
		return nil
	}
	for i := range s.UserTasks {
		t := &s.UserTasks[i]
		if err := check(t.ID, t.Calls); err != nil {
			return Suite{}, err
		}
		if t.FirstInjectedCall == nil {
			if i := slices.IndexFunc(t.Calls, func(c Call) bool { return len(c.Vectors) > 0 }); i >= 0 {
				t.FirstInjectedCall = &i
			}
		}
		if f := t.FirstInjectedCall; f != nil && (*f < 0 || *f >= len(t.Calls)) {
			return Suite{}, fmt.Errorf("%s: first_injected_call %d is no call of it", t.ID, *f)
		}
	}
	for _, inj := range s.Injections {
		if err := check(inj.ID, inj.Calls); err != nil {
			return Suite{}, err
		}
	}
	return s, nil
}

// injected is the result of a call with the attacker's text where it surfaces; it surfaces behind the result where no
// template says where.
func (c Call) injected(payload string) string {
	if c.ResultTemplate == "" {
		return c.Result + "\n" + payload
	}
	out := c.ResultTemplate
	for _, v := range c.Vectors {
		out = strings.ReplaceAll(out, "<INJECTION:"+v+">", payload)
	}
	return out
}

// structured is what a server would send beside the text of a result: its JSON. A result that is a YAML list or mapping is
// how these suites print one.
func structured(text string) any {
	var v any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) == nil && !dec.More() {
		return v
	}
	if yaml.Unmarshal([]byte(text), &v) != nil {
		return nil
	}
	switch v.(type) {
	case map[string]any, []any:
		data, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		var out any
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		if dec.Decode(&out) != nil {
			return nil
		}
		return out
	}
	return nil
}
