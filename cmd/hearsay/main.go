// Command hearsay keeps content an agent did not author from becoming instructions it follows.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes. A wrapped command's own code passes through.
const (
	exitDone    = 0
	exitFailed  = 1 // also: a file, lock or rule that keeps a command from starting
	exitUsage   = 2
	exitRefused = 3   // refused by policy
	exitVerify  = 4   // verification failed
	exitSandbox = 125 // the sandbox could not be made
)

// exitError carries the exit code of a failure. A nil err exits without a message: the command has said all there is to say.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func withCode(code int, err error) error { return &exitError{code, err} }

// usageError marks a wrong use of the command line: exit code 2, and a message that says what to do.
func usageError(format string, args ...any) error {
	return withCode(exitUsage, fmt.Errorf(format, args...))
}

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main without the process around it, for tests.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	var coded *exitError
	if !errors.As(err, &coded) {
		coded = &exitError{exitFailed, err}
	}
	if coded.err != nil {
		fmt.Fprintf(stderr, "hearsay: %s\n", showControls(coded.err.Error())) // it may quote the outside world
	}
	return coded.code
}

// commands lists the subcommands, one file each, in the order help shows them.
var commands = []func() *cobra.Command{
	newApprove,
	newAudit,
	newCheck,
	newConnect,
	newDemo,
	newDemoServer,
	newEgress,
	newExplain,
	newHook,
	newDoctor,
	newLogin,
	newLogout,
	newMCP,
	newPin,
	newReplay,
	newRun,
	newScreen,
	newServe,
	newSession,
	newTask,
	newUnwrap,
	newVersion,
	newWrap,
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "hearsay",
		Short:         "Frame what an agent reads, and bound what it can do when a label was not enough",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("unknown command %q; hearsay --help lists the commands", args[0])
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%w; see %s --help", err, cmd.CommandPath())
	})
	root.SetHelpFunc(printHelp)
	root.Version = version()
	root.SetVersionTemplate(versionLine())
	for _, c := range commands {
		root.AddCommand(c())
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() { // cobra's own take a wrong word for none
		case "help":
			c.Run, c.RunE = nil, helpFor
		case "completion":
			c.Args, c.RunE = noArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range c.Commands() {
				shell.Args = noArgs
			}
		}
	}
	return root
}

// tidily ends a command's context when it is interrupted, so that it stops what it has started and removes what it has made.
func tidily(cmd *cobra.Command) (stop context.CancelFunc) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	cmd.SetContext(ctx)
	return stop
}

func helpFor(cmd *cobra.Command, words []string) error {
	of, rest, err := cmd.Root().Find(words)
	if err != nil || len(rest) > 0 {
		return usageError("unknown command %q; hearsay --help lists the commands", strings.Join(words, " "))
	}
	return of.Help()
}
