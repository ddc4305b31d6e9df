package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/internal/connect"
)

func newConnect() *cobra.Command {
	var o connectFlags
	cmd := &cobra.Command{
		Use:   "connect [flags] CLIENT",
		Short: "Put the gateway into the configuration of an MCP client, or take it out",
		Long: `Rewrite the entries of a client's configuration: each server that is started by a command is started by hearsay mcp instead, with
that command behind it. With -c, add one entry instead that serves the servers of a hearsay.yaml, with its rules, and leave the
others: they are listed, since they stay beside it and unguarded. CLIENT is ` + strings.Join(connect.ClientNames(), ", ") + `; any
other is reached with --file and --format.

The file of the user is meant; --project names that of a project. Only the changed words of a file are written: comments, order and
layout stay. Values in an entry's env stay there and are passed on by name. A copy of the file is kept beside it, and --undo
puts back each entry as it was, also if the rest of the file was changed since.

Servers with an address are listed and stay as they are: give them to a hearsay.yaml as servers: NAME: url:, use -c, and take
them out of the client. Clients take further servers from extensions, plugins and projects: those are not seen here.`,
		Example: `  hearsay connect claude-code --dry-run
  hearsay connect cursor --server files --server mail
  hearsay connect codex -c hearsay.yaml
  hearsay connect vscode --project .
  hearsay connect --file ~/.other/mcp.json --format mcpServers
  hearsay connect claude-code --undo`,
		ValidArgs: connect.ClientNames(),
		Args:      cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := o.target(args)
			if err != nil {
				return err
			}
			return o.run(cmd, target)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.config, "config", "c", "", "add one entry that serves this `FILE`, a hearsay.yaml, and rewrite no other")
	flags.StringVar(&o.project, "project", "", "edit the file of the project in this `DIR`")
	flags.StringVar(&o.file, "file", "", "edit this `FILE`")
	flags.StringVar(&o.format, "format", "", "the `FORM` of --file: mcpServers or servers (JSON), or mcp_servers (TOML)")
	flags.StringArrayVar(&o.servers, "server", nil, "rewrite only the entry of this `NAME` (repeatable)")
	flags.StringArrayVar(&o.pass, "pass-env", nil, "also give the servers this `VARIABLE` of the client's environment (repeatable)")
	flags.BoolVar(&o.undo, "undo", false, "take hearsay out of the entries that connect changed")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would change and write nothing")
	flags.BoolVar(&o.json, "json", false, "print what changes as JSON")
	return cmd
}

type connectFlags struct {
	config, project, file, format string
	servers, pass                 []string
	undo, dryRun, json            bool
}

// connectTarget is the file that is meant.
type connectTarget struct {
	client connect.Client // without a name: the file was named
	path   string
	format connect.Format
}

func (o *connectFlags) target(args []string) (t connectTarget, err error) {
	switch {
	case len(args) > 1:
		return t, usageError("one client at a time: %s", strings.Join(connect.ClientNames(), ", "))
	case len(args) == 0 && o.file == "":
		return t, usageError("which client? %s; or name a file with --file and --format", strings.Join(connect.ClientNames(), ", "))
	case o.file != "" && o.project != "":
		return t, usageError("--file names the file; --project is for a client's own place in a project")
	case o.format != "" && (o.file == "" || len(args) > 0):
		return t, usageError("--format is for --file without a CLIENT")
	case o.config != "" && len(o.servers)+len(o.pass) > 0:
		return t, usageError("-c adds one entry and rewrites no other; what its servers get stands in the file, as pass_env")
	case o.undo && (o.config != "" || len(o.pass) > 0):
		return t, usageError("--undo takes out what is there: it needs no -c and no --pass-env")
	}
	if len(args) == 0 {
		var ok bool
		if t.format, ok = connect.Formats[o.format]; !ok {
			return t, usageError("--format says how the servers stand in the file: %s", strings.Join(slices.Sorted(maps.Keys(connect.Formats)), ", "))
		}
		t.path = o.file
		return t, nil
	}
	if t.client, err = connect.ClientNamed(args[0]); err != nil {
		return t, usageError("%w", err)
	}
	t.format = t.client.Format
	switch {
	case o.file != "":
		t.path = o.file
	case o.project != "":
		t.path, err = t.client.ProjectFile(o.project)
	default:
		t.path, err = t.client.UserFile(connect.Here(runtime.GOOS))
	}
	if err != nil {
		return t, usageError("%w", err)
	}
	return t, nil
}

func (o *connectFlags) run(cmd *cobra.Command, t connectTarget) error {
	file, err := connect.Open(t.path)
	if err != nil {
		return err
	}
	if o.project != "" {
		if err := file.Within(o.project); err != nil {
			return err
		}
	}
	opt := connect.Options{Format: t.format, Servers: o.servers, PassEnv: o.pass, Label: entryLabel}
	if opt.Binary, err = ownPath(); err != nil {
		return err
	}
	report := connectReport{File: file.Path, Client: t.client.Name}
	var plan connect.Plan
	var kept [][]byte
	var keptPaths []string
	switch {
	case o.undo:
		if kept, keptPaths, err = file.Kept(); err != nil {
			return err
		}
		if file.Data == nil {
			return fmt.Errorf("%s is not there", file.Path)
		}
		plan, err = connect.Undo(file.Data, kept, opt)
	case o.config != "":
		if opt.Config, err = servable(o.config); err != nil {
			return err
		}
		if dir := filepath.Dir(file.Path); file.Data == nil {
			if _, err := os.Stat(dir); err != nil {
				return fmt.Errorf("there is no folder %s for the client's file: start the client once, or make it", dir)
			}
		}
		plan, err = connect.Connect(file.Data, opt)
	case file.Data == nil:
		return fmt.Errorf("%s is not there, so it names no server to stand in front of; -c FILE makes it, with the servers of a hearsay.yaml", file.Path)
	default:
		plan, err = connect.Connect(file.Data, opt)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	report.Servers = append([]connect.Server{}, plan.Servers...)
	report.Changed = plan.Changes()
	if report.Changed && !o.dryRun {
		if !o.undo {
			if report.Copy, err = file.Keep(); err != nil {
				return err
			}
		}
		if err := file.Write(plan.Data); err != nil {
			return fmt.Errorf("%s: %w", file.Path, err)
		}
		report.Written = true
		if o.undo && len(kept) > 0 && string(plan.Data) == string(kept[0]) {
			for _, path := range keptPaths { // the file is what the first copy says, the others are of what lay between
				if err := os.Remove(path); err != nil {
					return err
				}
			}
			report.Dropped = keptPaths
		}
	}
	if o.json {
		if err := json.NewEncoder(cmd.OutOrStdout()).Encode(report); err != nil {
			return err
		}
	} else {
		report.print(cmd.OutOrStdout())
		o.advise(cmd.ErrOrStderr(), t, report)
	}
	return o.verdict(report)
}

// verdict is an error where something that was asked for was not done.
func (o *connectFlags) verdict(r connectReport) error {
	var not []string
	for _, s := range r.Servers {
		switch {
		case o.undo && s.State == connect.Edited, slices.Contains(o.servers, s.Name) && (s.State == connect.Unknown || s.State == connect.Remote):
			not = append(not, strconv.Quote(s.Name))
		}
	}
	if not == nil {
		return nil
	}
	return withCode(exitFailed, fmt.Errorf("left as they are: %s", strings.Join(not, ", ")))
}

// servable is the absolute path of a hearsay.yaml that the gateway starts with.
func servable(path string) (string, error) {
	f, err := config.Load(path)
	if err != nil {
		return "", err
	}
	if _, err := f.GatewayServers(); err != nil {
		return "", err
	}
	if err := checkSections(f); err != nil {
		return "", fmt.Errorf("%s: %w (hearsay check says more)", path, err)
	}
	return filepath.Abs(path)
}

// ownPath is the path of this program as it was called, so that a link that outlives an upgrade stays one.
func ownPath() (string, error) {
	real, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := real
	if called, err := exec.LookPath(os.Args[0]); err == nil {
		if called, err = filepath.Abs(called); err == nil && sameFile(called, real) {
			path = called
		}
	}
	if strings.Contains(path, string(filepath.Separator)+"go-build") {
		return "", errors.New("this program is one that go run made and will remove: go install it, and call that")
	}
	return path, nil
}

func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

var underscores = regexp.MustCompile(`__+`)

// entryLabel makes the name a server has in frames and logs from that of its entry.
func entryLabel(name string) string {
	word := underscores.ReplaceAllString(notName.ReplaceAllString(name, "-"), "_")
	word = strings.Trim(word[:min(len(word), 32)], "-_")
	if word == "" || envelope.NeutralizeLookalikes(word) != word {
		return "server"
	}
	return word
}

// connectReport is what connect did, for programs and people.
type connectReport struct {
	File    string           `json:"file"`
	Client  string           `json:"client,omitempty"`
	Changed bool             `json:"changed"`
	Written bool             `json:"written"`
	Copy    string           `json:"copy,omitempty"`
	Dropped []string         `json:"copies_removed,omitempty"`
	Servers []connect.Server `json:"servers"`
}

// stateText says what a state means.
var stateText = map[connect.State]string{
	connect.Wrapped:  "goes through hearsay mcp now",
	connect.Added:    "added",
	connect.Replaced: "serves another file",
	connect.Guarded:  "goes through hearsay",
	connect.Remote:   "NOT GUARDED: it has an address, so hearsay is not between",
	connect.Beside:   "not guarded",
	connect.Unknown:  "NOT GUARDED",
	connect.Restored: "as it was before",
	connect.Removed:  "taken out",
	connect.Edited:   "left",
}

// print shows what changes as a diff of words. Those that stay are counted, not shown, since they may hold secrets; values of
// variables are not even read. What the file says is quoted, so that it cannot steer a terminal.
func (r connectReport) print(w io.Writer) {
	head := showControls(r.File)
	if r.Changed && !r.Written {
		head += ", not written:"
	}
	fmt.Fprintln(w, head)
	if len(r.Servers) == 0 {
		fmt.Fprintln(w, "  it names no servers")
	}
	for _, s := range r.Servers {
		fmt.Fprintf(w, "  %s", visible(s.Name))
		if s.Project != "" {
			fmt.Fprintf(w, " of %s", visible(s.Project))
		}
		if s.Line > 0 {
			fmt.Fprintf(w, ", line %d", s.Line)
		}
		fmt.Fprintf(w, ": %s", stateText[s.State])
		if s.Why != "" {
			fmt.Fprintf(w, ": %s", showControls(s.Why))
		}
		fmt.Fprintln(w)
		for _, side := range []struct {
			sign  string
			words []string
		}{{"-", s.Before}, {"+", s.After}} {
			if len(side.words) == 0 {
				continue
			}
			fmt.Fprintf(w, "    %s command %s\n", side.sign, strconv.Quote(side.words[0]))
			if len(side.words) == 1 {
				continue
			}
			fmt.Fprintf(w, "    %s args   ", side.sign)
			for _, word := range side.words[1:] {
				fmt.Fprintf(w, " %s", visible(word))
			}
			if s.Kept > 0 {
				fmt.Fprintf(w, " and the %s as before", counted(s.Kept, "argument"))
			}
			fmt.Fprintln(w)
		}
		if len(s.Env) > 0 {
			var names []string
			for _, name := range s.Env {
				names = append(names, visible(name))
			}
			fmt.Fprintf(w, "      env     %s: the values stay where they are\n", strings.Join(names, ", "))
		}
	}
}

// visible is a word as it is where it is plain, otherwise quoted.
func visible(word string) string {
	if quoted := strconv.Quote(word); quoted != `"`+word+`"` || strings.ContainsAny(word, " ") || word == "" {
		return quoted
	}
	return word
}

// advise tells the person what comes next, and what this does not do.
func (o *connectFlags) advise(w io.Writer, t connectTarget, r connectReport) {
	say := func(format string, args ...any) {
		fmt.Fprintln(w, "hearsay: "+showControls(fmt.Sprintf(format, args...)))
	}
	states := map[connect.State]int{}
	for _, s := range r.Servers {
		states[s.State]++
	}
	if !r.Changed {
		say("nothing to change")
	}
	if r.Changed && !r.Written {
		say("leave --dry-run away to write it")
	}
	if r.Written && t.client.After != "" {
		say("%s", t.client.After)
	}
	if r.Copy != "" {
		say("the file as it was is kept at %s, with what secrets it holds; hearsay connect --undo puts its entries back", r.Copy)
	}
	if o.undo {
		if r.Written && r.Dropped == nil {
			say("the copies of the file stay beside it: %s.hearsay-backup", r.File)
		}
		return
	}
	if o.project != "" && r.Written {
		say("others who use this project get the path of hearsay on this machine too")
	}
	if states[connect.Wrapped] > 0 {
		say("what these servers say is framed now; no call is judged and no sandbox made. For that, write a hearsay.yaml and use -c")
	}
	if states[connect.Remote] > 0 {
		say("servers with an address: name them in a hearsay.yaml as servers: NAME: url:, use -c, and take them out of the client")
	}
	if o.config != "" {
		switch n := states[connect.Beside] + states[connect.Remote] + states[connect.Unknown]; n {
		case 0:
		case 1:
			say("one other entry stays: the client still reaches its server around the rules of %s", o.config)
		default:
			say("%d other entries stay: the client still reaches their servers around the rules of %s", n, o.config)
		}
	}
}
