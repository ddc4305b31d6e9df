package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/screen"
)

func newCheck() *cobra.Command {
	var file, lock string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Read the rules as the gateway would, run their tests, and say what they leave open",
		Long: `Read the file strictly, compile the rules of every profile and run their inline tests. What would keep the gateway from
starting is an error with its line; what loads but is no boundary, such as a deny by the text of a command, is named with
what to do instead. With a lock file of pinned tools, rules and labels are held against the tools that exist.`,
		Example: "  hearsay check\n  hearsay check -c team.yaml --lock hearsay.lock --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, in, err := loadRules(file, lock)
			if err != nil {
				return err
			}
			findings, rules := checkProfiles(f, in)
			if err := checkSections(f); err != nil {
				findings = append(findings, finding{Text: err.Error(), Fatal: true})
			} else if err := checkProxy(f); err != nil {
				findings = append(findings, finding{Text: err.Error() + " (as it is here, the egress proxy would not start)"})
			}
			for _, name := range f.ServerNames() {
				if s := f.Servers[name]; s.OAuth != nil && s.OAuth.Issuer == "" {
					findings = append(findings, finding{Text: "servers: " + name + ": the server itself names whom a person signs in at; after a sign-in, write the issuer that hearsay login --status shows under oauth"})
				}
			}
			failed := slices.ContainsFunc(findings, func(f finding) bool { return f.Fatal })
			if asJSON {
				if findings == nil {
					findings = []finding{}
				}
				if err := json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"ok": !failed, "rules": rules, "tools": len(in.Known), "findings": findings}); err != nil {
					return err
				}
			} else {
				printFindings(cmd.OutOrStdout(), f.Path, findings)
			}
			if failed {
				return withCode(exitFailed, errors.New("the gateway would not start with this file"))
			}
			if !asJSON {
				verdict := "the gateway starts with it"
				if len(f.Servers) == 0 {
					verdict += ", for a server given as a command"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %s, %s: %s\n", f.Path, counted(rules, "rule"), counted(len(in.Known), "pinned tool"), counted(1+len(f.Profiles), "profile"), verdict)
			}
			return nil
		},
	}
	rulesFlags(cmd, &file, &lock)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

func rulesFlags(cmd *cobra.Command, file, lock *string) {
	cmd.Flags().StringVarP(file, "config", "c", "", "the `FILE` with the rules (default: hearsay/hearsay.yaml in your configuration folder)")
	cmd.Flags().StringVar(lock, "lock", "", "the lock `FILE` of pinned tools (default: what the file names under pins)")
}

// finding is one thing to say about the rules, for people and programs.
type finding struct {
	Line    int    `json:"line,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Profile string `json:"profile,omitempty"`
	Text    string `json:"text"`
	Fatal   bool   `json:"fatal"`
}

// loadRules reads the configuration and the pinned tools it names.
func loadRules(path, lock string) (*config.File, config.GateInput, error) {
	f, err := loadFile(path)
	if err != nil {
		return nil, config.GateInput{}, err
	}
	if lock == "" {
		lock = f.LockPath()
	}
	var pins *gateway.Lock
	if lock != "" {
		if pins, err = config.ReadLock(lock); err != nil {
			return nil, config.GateInput{}, err
		}
	}
	return f, gateInput(f, pins), nil
}

// gateInput is what the gate needs to know of the other sections.
func gateInput(f *config.File, pins *gateway.Lock) config.GateInput {
	in := config.GateInput{Servers: f.ServerNames(), Sandboxed: f.Sandboxed()}
	if pins != nil {
		in.Known = pinnedTools(pins)
	}
	return in
}

// pinnedTools gives the tools of a lock file as the gate takes them.
func pinnedTools(pins *gateway.Lock) []gate.ToolDef {
	var defs []gate.ToolDef
	for _, server := range slices.Sorted(maps.Keys(pins.Servers)) {
		tools := pins.Servers[server].Definitions[gateway.PinTool]
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			def := tools[name].Definition
			annotations, _ := def.Get("annotations").Any().(map[string]any)
			defs = append(defs, gate.ToolDef{
				Server: server, Name: name, Description: def.Get("description").Str(),
				InputSchema: def.Get("inputSchema").Any(), Annotations: annotations,
			})
		}
	}
	return defs
}

// checkProfiles compiles every profile of the file and collects what there is to say, each thing once.
func checkProfiles(f *config.File, in config.GateInput) (findings []finding, rules int) {
	add := func(profile string, p gate.Problem) {
		n := finding{Line: p.Line, Rule: p.Rule, Text: p.Text, Fatal: p.Fatal}
		if slices.Contains(findings, n) {
			return // said of the file's own profile already
		}
		n.Profile = profile
		findings = append(findings, n)
	}
	for _, profile := range append([]string{""}, slices.Sorted(maps.Keys(f.Profiles))...) {
		spec, _, err := f.Gate(profile, in)
		if err != nil {
			add(profile, gate.Problem{Text: err.Error(), Fatal: true})
			continue
		}
		rules = len(spec.Permissions.Deny) + len(spec.Permissions.Ask) + len(spec.Permissions.Allow) + len(spec.Rules)
		policy, err := gate.Compile(spec)
		var refused *gate.CompileError
		switch {
		case errors.As(err, &refused):
			for _, p := range refused.Problems {
				add(profile, p)
			}
		case err != nil:
			add(profile, gate.Problem{Text: err.Error(), Fatal: true})
		default:
			for _, p := range policy.Advice() {
				add(profile, p)
			}
		}
	}
	slices.SortStableFunc(findings, func(a, b finding) int { return a.Line - b.Line })
	return findings, rules
}

// checkSections reads the other sections as the gateway does when it starts.
func checkSections(f *config.File) error {
	if len(f.Servers) > 0 {
		if _, err := f.GatewayServers(); err != nil {
			return err
		}
	}
	if _, err := f.GatewayPins(); err != nil {
		return err
	}
	if _, err := f.Approvals.Desk(); err != nil {
		return err
	}
	if _, err := f.UserKey(); err != nil {
		return err
	}
	if f.Audit != nil {
		if _, err := os.Stat(filepath.Dir(f.Audit.File)); err != nil {
			return fmt.Errorf("audit: the folder of the file: %w", err)
		}
	}
	_, err := screen.New(f.Screens.Options())
	return err
}

// checkProxy reads what the egress proxy reads, that of a sandbox too. A secret may be there only where the gateway runs.
func checkProxy(f *config.File) error {
	if _, err := f.ProxyOptions(); err != nil {
		return err
	}
	if f.Proxy == nil && len(f.Credentials) == 0 {
		return nil
	}
	_, _, err := f.ProxyClients()
	return err
}

func printFindings(w io.Writer, path string, findings []finding) {
	for _, n := range findings {
		kind := "note"
		if n.Fatal {
			kind = "error"
		}
		if n.Profile != "" {
			kind += " in profile " + n.Profile
		}
		fmt.Fprintf(w, "%s: %s: %s\n", path, kind, gate.Problem{Line: n.Line, Rule: n.Rule, Text: n.Text})
	}
}
