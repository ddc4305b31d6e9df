package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/approve"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

func newExplain() *cobra.Command {
	var file, lock, profile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain CALL.json",
		Short: "Say how one call would be decided, by which rule, and what would change it",
		Long: `Decide one call as the gateway would, and say why. The call is a JSON object:

  {"tool": "mail.send", "args": {"to": "ann@example.org", "body": "hello"},
   "principal": "", "said": ["what the user said"], "reads": ["web"],
   "calls": ["mail.send"], "paths": {"/w/link": "/etc/passwd"}}

The parameters of a tools/call ({"name": "mail__send", "arguments": {…}}) are taken as well, and server and tool apart.
said, reads and calls describe the session before the call: the user's words, the servers whose untrusted results were
read, and the tools that were called before that. paths gives what paths resolve to. - reads the call from standard input.
Exit code 0: allowed; 3: asked or denied.`,
		Example: `  hearsay explain call.json
  echo '{"tool": "mail.send", "args": {"to": "eve@evil.example"}}' |
      hearsay explain -c team.yaml -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one file with the call, or - for standard input; see %s --help", cmd.CommandPath())
			}
			f, in, err := loadRules(file, lock)
			if err != nil {
				return err
			}
			spec, _, err := f.Gate(profile, in)
			if err != nil {
				return err
			}
			policy, err := gate.Compile(spec)
			if err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
			call, state, err := readCall(args[0], cmd.InOrStdin(), f.Store)
			if err != nil {
				return err
			}
			e := policy.Explain(call, state)
			if asJSON {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(explained(call, e))
			} else {
				printExplanation(cmd.OutOrStdout(), call, e)
			}
			if err == nil && e.Decision.Answer != gate.Allow {
				return withCode(exitRefused, nil)
			}
			return err
		},
	}
	rulesFlags(cmd, &file, &lock)
	cmd.Flags().StringVar(&profile, "profile", "", "the `PROFILE` to decide in (default: the file's own)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the explanation as JSON")
	return cmd
}

// maxCall bounds the call that is explained.
const maxCall = 4 << 20

// readCall reads a call with the session before it.
func readCall(path string, stdin io.Reader, store *config.Store) (gate.Call, gate.State, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return gate.Call{}, gate.State{}, fmt.Errorf("reading the call: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxCall+1))
	if err != nil {
		return gate.Call{}, gate.State{}, fmt.Errorf("reading the call: %w", err)
	}
	v, err := strictjson.Parse(data, strictjson.Limits{MaxBytes: maxCall})
	if err != nil {
		return gate.Call{}, gate.State{}, fmt.Errorf("reading the call: %w", err)
	}
	return parseCall(v, store)
}

func parseCall(v strictjson.Value, store *config.Store) (c gate.Call, s gate.State, err error) {
	if v.Kind() != strictjson.KindObject {
		return c, s, errors.New("the call is a JSON object with tool and args")
	}
	if o, ok := store.Observation(); ok {
		s = s.Observe(o)
	}
	var reads []string
	var calls []gate.Call
	for name, e := range v.Members() {
		switch name {
		case "server":
			c.Server = e.Str()
		case "tool", "name":
			c.Tool = e.Str()
		case "args", "arguments":
			args, ok := e.Any().(map[string]any)
			if !ok {
				return c, s, errors.New("args: it is a JSON object")
			}
			c.Args = args
		case "principal":
			c.Principal = e.Str()
		case "said":
			for _, t := range e.Elems() {
				s = s.Observe(gate.Observation{Source: "user", Trust: gate.User, Text: t.Str()})
			}
		case "reads":
			for _, t := range e.Elems() {
				reads = append(reads, t.Str())
			}
		case "calls":
			for _, t := range e.Elems() {
				server, tool, err := gate.SplitTool(t.Str(), nil)
				if err != nil {
					return c, s, fmt.Errorf("calls: %s %w", strconv.Quote(t.Str()), err)
				}
				calls = append(calls, gate.Call{Server: server, Tool: tool})
			}
		case "paths":
			c.Paths = map[string]string{}
			for from, to := range e.Members() {
				c.Paths[from] = to.Str()
			}
		default:
			return c, s, fmt.Errorf("unknown field %q; a call has tool, args, principal, said, reads, calls and paths", name)
		}
	}
	switch {
	case c.Tool == "":
		return c, s, errors.New("the call has no tool")
	case c.Server == "":
		full := c.Tool
		if c.Server, c.Tool, err = gate.SplitTool(full, nil); err != nil {
			return c, s, fmt.Errorf("tool: %s %w", strconv.Quote(full), err)
		}
	}
	for _, before := range calls {
		s = s.Commit(before)
	}
	for _, source := range reads {
		s = s.Observe(gate.Observation{Source: source, Trust: gate.Untrusted})
	}
	return c, s, nil
}

// explained is an explanation as programs read it.
func explained(c gate.Call, e gate.Explanation) map[string]any {
	ungrounded := make([]map[string]any, 0, len(e.Decision.Ungrounded))
	for _, u := range e.Decision.Ungrounded {
		ungrounded = append(ungrounded, map[string]any{"path": u.Path, "value": u.Value, "kind": u.Kind.String(), "class": u.Class.String(), "why": u.Why})
	}
	considered := make([]map[string]any, 0, len(e.Considered))
	for _, k := range e.Considered {
		considered = append(considered, map[string]any{"rule": k.Rule, "answer": k.Answer.String(), "matches": k.Matches, "why": k.Why})
	}
	change := e.Change
	if change == nil {
		change = []string{}
	}
	return map[string]any{
		"tool": c.Server + "." + c.Tool, "answer": e.Decision.Answer.String(), "rule": e.Decision.Rule, "reason": string(e.Decision.Reason),
		"text": e.Decision.Text, "effects": e.Effects, "labelled": e.Labelled, "ungrounded": ungrounded, "considered": considered, "change": change,
	}
}

func printExplanation(w io.Writer, c gate.Call, e gate.Explanation) {
	fmt.Fprintf(w, "%s: %s.%s (%s)\n", strings.ToUpper(e.Decision.Answer.String()), approve.Visible(c.Server), approve.Visible(c.Tool), e.Decision.Reason)
	fmt.Fprintf(w, "  %s\n", approve.Visible(e.Decision.Text))
	if e.Labelled {
		fmt.Fprintf(w, "  effects: %s\n", strings.Join(e.Effects, ", "))
	} else {
		fmt.Fprintf(w, "  effects: %s, because the file says nothing about this tool\n", strings.Join(e.Effects, ", "))
	}
	for _, u := range e.Decision.Ungrounded {
		if u.Path == "" { // the call as a whole
			fmt.Fprintf(w, "  not grounded: %s\n", approve.Visible(u.Why))
			continue
		}
		fmt.Fprintf(w, "  not grounded: %s %s: %s\n", approve.Visible(u.Path), strconv.QuoteToGraphic(u.Value), approve.Visible(u.Why))
	}
	if len(e.Considered) > 0 {
		fmt.Fprintln(w, "rules about it, in order:")
	}
	for _, k := range e.Considered {
		mark := "no "
		if k.Matches {
			mark = "yes"
		}
		fmt.Fprintf(w, "  %s %s", mark, approve.Visible(k.Rule))
		if k.Why != "" {
			fmt.Fprintf(w, ": %s", approve.Visible(k.Why))
		}
		fmt.Fprintln(w)
	}
	if len(e.Change) > 0 {
		fmt.Fprintln(w, "what would change it:")
	}
	for _, s := range e.Change {
		fmt.Fprintf(w, "  - %s\n", approve.Visible(s))
	}
}
