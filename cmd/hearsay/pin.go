package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/atomicfile"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
)

func newPin() *cobra.Command {
	var name, lockPath, file string
	var diff, asJSON bool
	var env, pass []string
	cmd := &cobra.Command{
		Use:   "pin [flags] [SERVER…] [-- COMMAND [ARG…]]",
		Short: "Approve what MCP servers offer, as they are now, into hearsay.lock",
		Long: `Start the servers of a file, all or those named, or the one given as a command; ask each for every tool, prompt and resource
template, and record them in a lock file: the text, for you to read, beside a digest. From then on the gateway shows and calls only
what is in the file; what differs by one byte is withheld until you run this command again. Look first: --diff shows what would
change and writes nothing. Servers of a file run in their sandboxes, and the lock file is the one the file names under pins.

A server that npx would fetch at each start is fetched first, once, with the network and without running any install script; in its
sandbox it then has no network but its own rules.

Hidden characters in a definition refuse the pin. Warnings (standard error) name tools of two servers that look alike and texts
that speak about another server's tools. Standard output gets draft lines for the tools section of hearsay.yaml, each with its
reason: effects and binding arguments as far as names and schemas tell them. Read them before you use them.`,
		Example: `  hearsay pin -c hearsay.yaml --diff
  hearsay pin -c hearsay.yaml files mail
  hearsay pin --diff -- npx -y @modelcontextprotocol/server-memory
  hearsay pin -- npx -y @modelcontextprotocol/server-memory
  hearsay pin --name files -- \
      npx -y @modelcontextprotocol/server-filesystem ~/notes > tools.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			defer tidily(cmd)()
			dash := cmd.ArgsLenAtDash()
			opt := pinOptions{lockPath, diff, asJSON, nil}
			if file != "" {
				if dash >= 0 || name != "" || len(env)+len(pass) > 0 {
					return usageError("-c FILE pins the servers of the file: name those, or leave -c away and give a command after --")
				}
				servers, err := pinFile(cmd, file, args, &opt)
				if err != nil {
					return err
				}
				return pin(cmd, servers, opt)
			}
			if dash != 0 || len(args) == 0 {
				return usageError("which server? name a file with -c, or give a command after --, such as: hearsay pin -- npx -y @modelcontextprotocol/server-memory")
			}
			server := gateway.Server{Command: args, Env: env, PassEnv: pass}
			if server.Server = name; name == "" {
				server.Server = nameOf(args)
			}
			return pin(cmd, []gateway.Server{server}, opt)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "the `NAME` of the server (default: from its command, as hearsay mcp does)")
	flags.StringVarP(&file, "config", "c", "", "pin the servers of this `FILE`")
	flags.StringVar(&lockPath, "lock", "", "the lock `FILE` (default: what the file names, otherwise hearsay.lock beside it, or here)")
	flags.BoolVar(&diff, "diff", false, "show what differs from the lock file and write nothing; exit code 4 if something is withheld")
	flags.BoolVar(&asJSON, "json", false, "print the differences as JSON")
	flags.StringArrayVar(&env, "env", nil, "give the server `NAME=VALUE` (repeatable)")
	flags.StringArrayVar(&pass, "pass-env", nil, "give the server this `VARIABLE` of the environment (repeatable)")
	return cmd
}

type pinOptions struct {
	path       string
	diff, json bool
	launch     func(context.Context, gateway.Server) (*gateway.Process, error)
}

// pinFile returns the servers of a file that are named, all where none is, and how they are started.
func pinFile(cmd *cobra.Command, path string, names []string, opt *pinOptions) ([]gateway.Server, error) {
	file, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	servers, err := file.GatewayServers()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if file.Servers[name] == nil {
			return nil, usageError("%s names no server %q; it has %s", path, name, strings.Join(file.ServerNames(), ", "))
		}
	}
	if len(names) > 0 {
		servers = slices.DeleteFunc(servers, func(s gateway.Server) bool { return !slices.Contains(names, s.Server) })
	}
	if opt.path == "" {
		if opt.path = file.LockPath(); opt.path == "" {
			opt.path = filepath.Join(filepath.Dir(path), "hearsay.lock")
		}
	}
	stateDir, err := config.StateDir()
	if err != nil {
		return nil, err
	}
	if err := reach(file, servers, stateDir, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	opt.launch = (&launcher{file: file, stateDir: stateDir, log: slog.New(slog.DiscardHandler)}).launch
	return servers, fetchPackages(cmd, file, servers, stateDir)
}

// fetchPackages fetches what npx would fetch at each start, for the servers that will have no network for it.
func fetchPackages(cmd *cobra.Command, file *config.File, servers []gateway.Server, stateDir string) error {
	for _, s := range servers {
		pkg, ok := npxPackage(s.Command)
		if !ok || !slices.Contains(file.Sandboxed(), s.Server) {
			continue
		}
		if _, _, err := installedPackage(stateDir, pkg); err == nil {
			continue
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "hearsay: fetching %s for server %s\n", pkg.spec, s.Server)
		if err := fetchPackage(cmd.Context(), stateDir, pkg, cmd.ErrOrStderr()); err != nil {
			return err
		}
	}
	return nil
}

// pin describes the servers, shows what differs from the lock and, unless only that was wanted, approves it.
func pin(cmd *cobra.Command, servers []gateway.Server, opt pinOptions) error {
	if opt.path == "" {
		opt.path = "hearsay.lock"
	}
	lock, err := config.ReadLock(opt.path)
	if errors.Is(err, fs.ErrNotExist) {
		lock, err = &gateway.Lock{}, nil
	}
	if err != nil {
		return err
	}
	approved := &gateway.Lock{Servers: map[string]*gateway.ServerPins{}}
	for name, pins := range lock.Servers {
		approved.Servers[name] = pins
	}
	var drifts []gateway.Drift
	var labels []gate.ToolLabels
	var refused error
	for _, server := range servers {
		offer, err := gateway.Describe(cmd.Context(), server, opt.launch)
		if err != nil {
			return err
		}
		drifts = append(drifts, lock.Compare(offer)...)
		labels = append(labels, offer.Draft()...)
		pins, err := offer.Approve()
		if err != nil {
			refused = errors.Join(refused, err)
			continue
		}
		approved.Servers[offer.Server] = pins
	}
	out := cmd.OutOrStdout()
	switch {
	case opt.json:
		if err := printDriftsJSON(out, drifts); err != nil {
			return err
		}
	case opt.diff:
		printDrifts(out, drifts)
	default:
		io.WriteString(out, config.DraftTools(labels))
	}
	for _, w := range approved.Warnings() {
		fmt.Fprintf(cmd.ErrOrStderr(), "hearsay: look at this: %s\n", w)
	}
	switch {
	case refused != nil:
		return withCode(exitRefused, fmt.Errorf("not pinned: %w", refused))
	case opt.diff:
		for _, d := range drifts {
			if d.Withholds() {
				return withCode(exitVerify, nil)
			}
		}
		return nil
	}
	// In one step: a gateway that starts meanwhile reads the old file or the new one.
	if err := atomicfile.Write(opt.path, approved.Encode(), 0o644); err != nil {
		return fmt.Errorf("writing the lock file: %w", err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "hearsay: %s now approves %s of %s; review it and keep it under version control\n", opt.path, summary(drifts), counted(len(servers), "server"))
	return nil
}

func summary(drifts []gateway.Drift) string {
	count := map[string]int{}
	for _, d := range drifts {
		count[d.Change]++
	}
	var parts []string
	for _, change := range []string{"new", "changed", "renamed", "gone"} {
		if count[change] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[change], change))
		}
	}
	if parts == nil {
		return "the same definitions"
	}
	noun := " definitions"
	if len(drifts) == 1 {
		noun = " definition"
	}
	return strings.Join(parts, ", ") + noun
}

func printDrifts(out io.Writer, drifts []gateway.Drift) {
	if len(drifts) == 0 {
		fmt.Fprintln(out, "nothing differs from what was approved")
	}
	for _, d := range drifts {
		what := "server " + d.Server + ": " + d.Change
		if d.Name != "" {
			what = fmt.Sprintf("server %s: %s %s %s", d.Server, d.Change, d.Kind, gateway.Quote(d.Name))
		}
		if d.From != "" {
			what += " (was " + gateway.Quote(d.From) + ")"
		}
		fmt.Fprintln(out, what)
		for _, line := range d.Lines {
			fmt.Fprintln(out, "    "+line)
		}
	}
}

func printDriftsJSON(out io.Writer, drifts []gateway.Drift) error {
	type line struct {
		Server    string   `json:"server"`
		Change    string   `json:"change"`
		Kind      string   `json:"kind,omitempty"`
		Name      string   `json:"name,omitempty"`
		From      string   `json:"from,omitempty"`
		Withholds bool     `json:"withholds"`
		Lines     []string `json:"lines"`
	}
	enc := json.NewEncoder(out)
	for _, d := range drifts {
		l := line{d.Server, d.Change, "", d.Name, d.From, d.Withholds(), d.Lines}
		if d.Name != "" {
			l.Kind = d.Kind.String()
		}
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}
