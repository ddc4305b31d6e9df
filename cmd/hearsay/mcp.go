package main

import (
	"context"
	"fmt"
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
	cmd := &cobra.Command{
		Use:   "mcp [flags] -- COMMAND [ARG…]",
		Short: "Stand in front of an MCP server on standard input and output, and frame what it says",
		Long: `Stand in front of an MCP server: the client talks to hearsay on standard input and output, hearsay to the server.
Every text of the server that a model or a person may read arrives framed or cleaned; everything else passes unchanged.
The server gets PATH, HOME, the locale and what --env and --pass-env name, and nothing else of this environment.
Standard error tells what was dropped, and what the server writes to its own.`,
		Example: `  hearsay mcp -- npx -y @modelcontextprotocol/server-everything
  hearsay mcp --name files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  hearsay mcp --env API_KEY=… --structured defang -- ./my-server`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("which server? give its command after --, such as: hearsay mcp -- npx -y @modelcontextprotocol/server-everything")
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
					return withCode(exitRefused, fmt.Errorf("%w (hearsay pin writes it)", err))
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
	flags.StringVar(&name, "name", "", "what to call the server in frames and logs (default: from its command)")
	flags.StringVar(&structured, "structured", "fold", "structuredContent: fold it into the framed text, defang it in place, or pass it")
	flags.BoolVar(&instructions, "frame-instructions", false, "pass the server's instructions on, framed (default: dropped; hosts put them into the system prompt)")
	flags.StringVar(&lock, "lock", "", "show and call only what this file approves; hearsay pin writes it")
	flags.BoolVar(&allowNew, "allow-new", false, "with --lock: also show what the server did not offer when it was approved")
	flags.BoolVar(&trusted, "first-party", false, "you vouch for this server: pass its messages as they are, unframed")
	flags.StringArrayVar(&env, "env", nil, "give the server NAME=value (repeatable)")
	flags.StringArrayVar(&pass, "pass-env", nil, "give the server this variable of the environment (repeatable)")
	flags.BoolVarP(&verbose, "verbose", "v", false, "also log what was treated")
	return cmd
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
