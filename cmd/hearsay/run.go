package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// runFlags are the command line of run.
type runFlags struct {
	file, preset, project, state, dir, memory string
	read, write, hide, allow, env, weaker     []string
	verbose                                   bool
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG…]",
		Short: "Run a command in a sandbox whose only network is the egress proxy",
		Long: `Run a command that sees the system read-only, an empty home and what the flags list, and nothing else: no file of yours, no
other process, no network but the hosts that --allow names. What it leaves behind ends with it. Its exit code passes through
(128 and the number for a signal); 125 says that the sandbox could not be made and nothing was run, and why.

Presets: server (the default) sees no project; project-ro sees the working folder read-only; project-rw may change it, except for
git's hooks and configuration, the configuration of agents and editors, and what shells run at their start.`,
		Example: `  hearsay run -- sh
  hearsay run --preset project-rw --allow modules.example.com -- go test ./...
  hearsay run --preset project-ro -- npm test
  hearsay run --read ~/notes --allow api.example.com:8443 -- ./my-server`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("which command? give it after --, such as: hearsay run -- sh")
			}
			return f.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "config", "c", "", "the `FILE` whose sandbox and egress sections hold; the flags add to them")
	flags.StringVar(&f.preset, "preset", "", "the `PRESET`: server (the default), project-ro or project-rw")
	flags.StringVar(&f.project, "project", "", "the `FOLDER` of a project preset (default: the working folder)")
	flags.StringVar(&f.state, "state", "", "a `FOLDER` kept between runs, writable at "+sandbox.StateDir+" inside")
	flags.StringVar(&f.dir, "dir", "", "the working `FOLDER` inside")
	flags.StringArrayVar(&f.read, "read", nil, "show it `PATH`, read-only (repeatable)")
	flags.StringArrayVar(&f.write, "write", nil, "show it `PATH`, and let it write there (repeatable)")
	flags.StringArrayVar(&f.hide, "hide", nil, "do not show it `PATH`, inside what is shown (repeatable)")
	flags.StringArrayVar(&f.allow, "allow", nil, "let it reach `HOST[:PORT]`; without a port: 443 and 80 (repeatable)")
	flags.StringArrayVar(&f.env, "env", nil, "give the command `NAME=VALUE`, or NAME with the value it has here (repeatable)")
	flags.StringVar(&f.memory, "memory", "", "at most this `SIZE` of memory, such as 512MiB; needs a delegated cgroup")
	flags.StringArrayVar(&f.weaker, "weaker", nil, "give up a layer; `MODE` is "+joined(sandbox.WeakerModes, ", ")+" (repeatable)")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print what is enforced, and every connection")
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, args []string) error {
	file := &config.File{}
	if f.file != "" {
		var err error
		if file, err = config.Load(f.file); err != nil {
			return err
		}
	}
	spec, err := f.spec(file)
	if err != nil {
		return err
	}
	spec.Args = args
	if err := guardOwn(&spec, file); err != nil {
		return err
	}
	policy, err := f.policy(file, &spec)
	if err != nil {
		return err
	}
	resolver, err := file.Egress.Resolver()
	if err != nil {
		return err
	}
	log, err := file.Audit.Open()
	if err != nil {
		return err
	}
	if log != nil {
		defer log.Close()
	}
	r := &runner{spec: spec, log: log, verbose: f.verbose, stdin: cmd.InOrStdin(), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(),
		dialer: &egress.Dialer{Policy: policy, Resolver: resolver}}
	return r.run(cmd.Context())
}

// spec joins the file's section and the flags.
func (f *runFlags) spec(file *config.File) (sandbox.Spec, error) {
	if file.Sandbox != nil && file.Sandbox.Off {
		return sandbox.Spec{}, usageError("%s says sandbox: off; hearsay run is the sandbox: start the command itself", file.Path)
	}
	spec, err := file.Sandbox.Spec()
	if err != nil {
		return spec, err
	}
	if f.preset != "" {
		if spec.Preset, err = sandbox.ParsePreset(f.preset); err != nil {
			return spec, usageError("--preset: %w", err)
		}
		if spec.Preset == sandbox.Server {
			spec.Project = ""
		}
	}
	for _, p := range []struct {
		flag string
		from []string
		to   *[]string
	}{{"--read", f.read, &spec.Read}, {"--write", f.write, &spec.Write}, {"--hide", f.hide, &spec.Hide}} {
		for _, path := range p.from {
			abs, err := absolute(path)
			if err != nil {
				return spec, usageError("%s: %w", p.flag, err)
			}
			*p.to = append(*p.to, abs)
		}
	}
	for _, p := range []struct {
		flag, from string
		to         *string
	}{{"--project", f.project, &spec.Project}, {"--state", f.state, &spec.State}} {
		if p.from == "" {
			continue
		}
		if *p.to, err = absolute(p.from); err != nil {
			return spec, usageError("%s: %w", p.flag, err)
		}
	}
	if f.dir != "" {
		spec.Dir = f.dir
	}
	if spec.Preset != sandbox.Server && spec.Project == "" {
		if spec.Project, err = os.Getwd(); err != nil {
			return spec, err
		}
	}
	if spec.Preset == sandbox.Server && spec.Project != "" {
		return spec, usageError("--project needs --preset project-ro or --preset project-rw")
	}
	for _, e := range f.env {
		name, _, given := strings.Cut(e, "=")
		if name == "" {
			return spec, usageError("--env wants NAME=value or NAME")
		}
		if !given {
			value, ok := os.LookupEnv(name)
			if !ok {
				return spec, usageError("--env %s: there is no such variable here", name)
			}
			e = name + "=" + value
		}
		spec.Env = append(spec.Env, e)
	}
	if f.memory != "" {
		if spec.Limits.Memory, err = config.ParseSize(f.memory); err != nil {
			return spec, usageError("--memory: %w", err)
		}
	}
	for _, name := range f.weaker {
		w, err := sandbox.ParseWeaker(name)
		if err != nil {
			return spec, usageError("--weaker: %w", err)
		}
		spec.Weaker = append(spec.Weaker, w)
	}
	return spec, nil
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", errors.New("an empty path")
	}
	return filepath.Abs(path)
}

// policy joins the file's rules and --allow. The sandbox has a network when something may be reached.
func (f *runFlags) policy(file *config.File, spec *sandbox.Spec) (*egress.Policy, error) {
	rules := config.Egress{}
	if file.Egress != nil {
		rules = *file.Egress
	}
	rules.Allow = append(append([]string(nil), rules.Allow...), f.allow...)
	policy, err := rules.Policy()
	if err != nil {
		return nil, usageError("%w", err)
	}
	if len(rules.Allow) > 0 || rules.ReportOnly {
		spec.Network, spec.Ports = sandbox.Egress, transparentPorts(rules.Allow)
	}
	return policy, nil
}

// runner runs one command.
type runner struct {
	spec           sandbox.Spec
	dialer         *egress.Dialer
	log            *audit.Log
	verbose        bool
	stdin          io.Reader
	stdout, stderr io.Writer
}

// runName is what the sandbox is called in logs.
const runName = "run"

func (r *runner) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams := newStreams(r.stdin, r.stdout, r.stderr)
	streams.fill(&r.spec)
	// Signals from here on are the command's. Caught before it starts, so that none is lost in between.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedSignals...)
	defer signal.Stop(signals)

	proc, err := sandbox.Start(ctx, r.spec)
	if err != nil {
		return sandboxError(err)
	}
	end := func(err error) error {
		_ = proc.Kill()
		_, _ = proc.Wait()
		return withCode(exitSandbox, err)
	}
	if err := auditSandbox(r.log, runName, &r.spec, proc.Report()); err != nil {
		return end(fmt.Errorf("nothing was run: %w", err))
	}
	if r.verbose {
		fmt.Fprint(r.stderr, proc.Report())
	}
	level := slog.LevelError
	if r.verbose {
		level = slog.LevelDebug
	}
	out, err := serveWayOut(ctx, proc, proxy.Client{Name: runName, Dialer: r.dialer}, proxy.Options{
		Record: recordConnections(r.log, streams.tell()),
		Logger: slog.New(slog.NewTextHandler(streams.tell(), &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		return end(err)
	}
	defer out.close()
	streams.resized(resizeSignal, proc) // before the command can ask
	if err := proc.Go(); err != nil {
		proc.Wait()
		return sandboxError(err)
	}
	stop, err := streams.relay(proc)
	if err != nil {
		return end(err)
	}
	ended := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			select {
			case s := <-signals:
				if sig, ok := s.(syscall.Signal); ok && !streams.resized(sig, proc) {
					_ = proc.Signal(sig) // an error says that the command is gone
				}
			case <-ended:
				return
			}
		}
	})
	exit, err := proc.Wait()
	close(ended)
	passing.Wait()
	stop()
	if err != nil {
		return withCode(exitFailed, err)
	}
	if code := exit.Status(); code != 0 {
		return withCode(code, nil)
	}
	return nil
}

// streams are the standard streams of run. No descriptor of a terminal or of a file of the host goes inside: through one, a
// process can reach what is behind it. Pipes go as they are, a terminal is relayed to one of the sandbox's own, and
// everything else is copied.
type streams struct {
	in       io.Reader
	out, err io.Writer
	terminal *os.File // standard input, when the command is interactive
}

func newStreams(in io.Reader, out, errOut io.Writer) *streams {
	s := &streams{in: in, out: out, err: errOut}
	inFile, ok1 := in.(*os.File)
	outFile, ok2 := out.(*os.File)
	if ok1 && ok2 && term.IsTerminal(int(inFile.Fd())) && term.IsTerminal(int(outFile.Fd())) {
		s.terminal = inFile
	}
	return s
}

func (s *streams) fill(spec *sandbox.Spec) {
	if slices.Contains(spec.Weaker, sandbox.FilesByLandlockNoNetwork) {
		s.terminal = nil // that mode has none
	}
	if s.terminal != nil {
		spec.Terminal = true
		return
	}
	spec.Stdin, spec.Stdout, spec.Stderr = asPipe(s.in), asPipe(s.out), asPipe(s.err)
}

// tell is where lines for the person go while the command runs: a terminal whose relay is on does not return the carriage by itself.
func (s *streams) tell() io.Writer {
	if s.terminal != nil {
		return rawLines{s.err}
	}
	return s.err
}

type rawLines struct{ w io.Writer }

func (r rawLines) Write(p []byte) (int, error) {
	if _, err := r.w.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// asPipe is the stream when it is a pipe, which opens nothing but itself.
func asPipe(stream any) *os.File {
	f, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	return f
}

// relay copies what did not go inside as it is. The function it returns waits for the output and restores the terminal.
func (s *streams) relay(p *sandbox.Process) (stop func(), err error) {
	var output sync.WaitGroup
	if s.terminal != nil {
		fd := int(s.terminal.Fd())
		saved, err := term.MakeRaw(fd)
		if err != nil {
			return nil, fmt.Errorf("preparing the terminal: %w", err)
		}
		go io.Copy(p.Terminal, s.in) // ends with the process: a read of a terminal cannot be called back
		output.Go(func() { io.Copy(s.out, p.Terminal) })
		return func() {
			output.Wait() // the terminal inside is gone with the last process
			p.Terminal.Close()
			_ = term.Restore(fd, saved)
		}, nil
	}
	if p.Stdin != nil {
		go func() {
			io.Copy(p.Stdin, s.in)
			p.Stdin.Close()
		}()
	}
	if p.Stdout != nil {
		output.Go(func() { io.Copy(s.out, p.Stdout) })
	}
	if p.Stderr != nil {
		output.Go(func() { io.Copy(s.err, p.Stderr) })
	}
	return func() {
		output.Wait()
		for _, c := range []io.Closer{p.Stdout, p.Stderr} {
			if c != nil {
				c.Close()
			}
		}
	}, nil
}
