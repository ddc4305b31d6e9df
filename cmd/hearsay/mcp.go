package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

// Memory of a gateway process: below the soft bound the collector runs seldom, since most of what it finds is one message
// after the other; above it, as often as it must.
const (
	mcpMemory  = 160 << 20
	mcpGarbage = 400 // percent of what lives
)

func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(mcpGarbage)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(mcpMemory)
	}
}

func newMCP() *cobra.Command {
	var name, structured, lock string
	var trusted, instructions, allowNew, verbose bool
	var env, pass []string
	var file, profile string
	cmd := &cobra.Command{
		Use:   "mcp [flags] [-- COMMAND [ARG…]]",
		Short: "Stand in front of MCP servers, on standard input and output",
		Long: `Stand in front of MCP servers: the client talks to hearsay on standard input and output, hearsay to the servers of a file, with
the file's rules, pins, screens, sandboxes, approvals and audit log. Questions go to the page whose address is printed on standard
error, and to hearsay approve.

With a command and a file, that one server takes the place of the file's servers; it runs in the sandbox and with the egress rules
of the file's own sections. With a command alone, hearsay stands in front of that server and frames what it says; it judges no call
and makes no sandbox.
Every text of the server that a model or a person may read arrives framed or cleaned; everything else passes unchanged.
The server gets PATH, HOME, the locale and what --env and --pass-env name, and nothing else of this environment.
Standard error tells what was dropped, and what the server writes to its own.`,
		Example: `  hearsay mcp -c hearsay.yaml
  hearsay mcp -c hearsay.yaml --profile careful
  hearsay mcp -c rules.yaml --name files -- \
      npx -y @modelcontextprotocol/server-filesystem ~/notes
  hearsay mcp -- npx -y @modelcontextprotocol/server-everything
  hearsay mcp --name files -- \
      npx -y @modelcontextprotocol/server-filesystem ~/notes
  hearsay mcp --env API_KEY=… --structured defang -- ./my-server`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, flag := range []string{"name", "structured", "frame-instructions", "lock", "allow-new", "first-party", "env", "pass-env"} {
					if cmd.Flags().Changed(flag) {
						return usageError("--%s is for a server given on the command line; in a file it is a key of the server", flag)
					}
				}
				return mcpHouse(cmd, file, profile, verbose, nil)
			}
			if file != "" {
				if lock != "" || allowNew {
					return usageError("--lock and --allow-new stand in the file, as pins")
				}
				one := &config.Server{Command: args, PassEnv: pass, Env: map[string]string{}, Structured: structured}
				for _, e := range env {
					key, value, ok := strings.Cut(e, "=")
					if !ok || key == "" {
						return usageError("--env wants NAME=value")
					}
					one.Env[key] = value
				}
				if trusted {
					one.Trust = "first-party"
				}
				if instructions {
					one.Instructions = "frame"
				}
				if name == "" {
					name = nameOf(args)
				}
				return mcpHouse(cmd, file, profile, verbose, map[string]*config.Server{name: one})
			}
			if profile != "" {
				return usageError("--profile needs the file it stands in: -c FILE")
			}
			server := gateway.Server{Command: args, Env: env, PassEnv: pass}
			server.Server, server.FrameInstructions = name, instructions
			if name == "" {
				server.Server = nameOf(args)
			}
			switch structured {
			case "fold":
			case "defang":
				server.Structured = gateway.Defang
			case "pass":
				server.Structured = gateway.PassOnward
			default:
				return usageError("--structured %q: it is fold, defang or pass", structured)
			}
			if trusted {
				server.Trust = gateway.FirstParty
			}
			for _, e := range env {
				if i := strings.IndexByte(e, '='); i <= 0 {
					return usageError("--env wants NAME=value")
				}
			}
			pins := gateway.Pins{AllowNew: allowNew}
			if lock != "" {
				var err error
				if pins.Lock, err = config.ReadLock(lock); err != nil {
					return err
				}
			}
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			g, err := gateway.NewGateway(gateway.Options{
				Servers: []gateway.Server{server},
				Pins:    pins,
				Log:     slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level})),
			})
			if err != nil {
				return usageError("%w", err)
			}
			tuneMemory()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return serveStdio(ctx, g, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&file, "config", "c", "", "the `FILE` with the servers and their rules (default: hearsay/hearsay.yaml in your configuration folder)")
	flags.StringVar(&profile, "profile", "", "the `PROFILE` of the file that holds")
	flags.StringVar(&name, "name", "", "the `NAME` of the server in frames and logs (default: from its command)")
	flags.StringVar(&structured, "structured", "fold", "`MODE` of structuredContent: fold it into the framed text, defang it in place, or pass it")
	flags.BoolVar(&instructions, "frame-instructions", false, "pass the server's instructions on, framed (default: dropped; hosts put them into the system prompt)")
	flags.StringVar(&lock, "lock", "", "show and call only what this `FILE` approves; hearsay pin writes it")
	flags.BoolVar(&allowNew, "allow-new", false, "with --lock: also show what the server did not offer when it was approved")
	flags.BoolVar(&trusted, "first-party", false, "you vouch for this server: pass its messages as they are, unframed")
	flags.StringArrayVar(&env, "env", nil, "give the server `NAME=VALUE` (repeatable)")
	flags.StringArrayVar(&pass, "pass-env", nil, "give the server this `VARIABLE` of the environment (repeatable)")
	flags.BoolVarP(&verbose, "verbose", "v", false, "also log what was treated")
	return cmd
}

// mcpHouse serves the one client on the standard streams with all that a file says.
// only, if not nil, takes the place of its servers: it runs in the file's own sandbox section, with its egress section.
func mcpHouse(cmd *cobra.Command, path, profile string, verbose bool, only map[string]*config.Server) error {
	file, err := loadFile(path)
	if err != nil {
		return err
	}
	if only != nil {
		file.Servers = only
		for _, s := range only {
			s.Sandbox, s.Egress = file.Sandbox, file.Egress
		}
	}
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	h, err := openHouse(ctx, file, profile, log, func() (gateway.Host, error) { return gateway.HostOf(os.Getppid()) })
	if err != nil {
		return err
	}
	if err := h.servePage(cmd.ErrOrStderr()); err != nil {
		h.close("failed to start")
		return err
	}
	tuneMemory()
	err = serveStdio(ctx, h.gateway, cmd.InOrStdin(), cmd.OutOrStdout())
	h.close("the client ended")
	return err
}

// serveStdio serves the one client on the standard streams until it ends or ctx does.
func serveStdio(ctx context.Context, g *gateway.Gateway, in io.Reader, out io.Writer) error {
	client := gateway.Client{}
	r, w := io.NopCloser(in), io.WriteCloser(noClose{out})
	if f, ok := in.(*os.File); ok {
		f, restore := pollable(f)
		defer restore()
		r = f
	}
	if f, ok := out.(*os.File); ok {
		f, restore := pollable(f)
		defer restore()
		w, client.Gone = f, readerGone(f)
	}
	client.Transport = jsonrpc.NewLines(r, w, jsonrpc.LineOptions{})
	return g.Serve(ctx, client)
}

type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }

// notName is what a server's name cannot hold.
var notName = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// nameOf makes a name from a command: the package that npx runs, otherwise the program.
func nameOf(command []string) string {
	word := command[0]
	switch strings.TrimSuffix(filepath.Base(word), ".cmd") {
	case "npx", "uvx", "bunx", "pnpx":
		for _, arg := range command[1:] {
			if !strings.HasPrefix(arg, "-") {
				word = arg
				break
			}
		}
	case "node", "python", "python3", "bun", "deno", "uv", "go":
		for _, arg := range command[1:] {
			if !strings.HasPrefix(arg, "-") && arg != "run" {
				word = arg
				break
			}
		}
	}
	word = strings.TrimSuffix(word, "/dist/index.js") // how npm packages are run without npx
	word = filepath.Base(word)
	if i := strings.IndexByte(word, '@'); i > 0 {
		word = word[:i]
	}
	word = strings.TrimSuffix(word, filepath.Ext(word))
	word = strings.Trim(notName.ReplaceAllString(word, "-"), "-_")
	if word == "" {
		return "server"
	}
	return word[:min(len(word), 32)]
}
