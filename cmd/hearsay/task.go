package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/atomicfile"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
)

func newTask() *cobra.Command {
	var clear bool
	cmd := &cobra.Command{
		Use:   "task [SERVER.TOOL…]",
		Short: "Name the tools of a task before it starts; other tools are denied",
		Long: `Name the tools that the next sessions may use. A gateway reads the list when it starts and says so; a session that runs
keeps the list it started with. In the mode filter no tool outside the list may be used; in the other modes a list that was
named counts as well. Without arguments the list is printed.`,
		Example: "  hearsay task mail.search mail.send 'calendar.*'\n  hearsay task\n  hearsay task --clear",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := config.StateDir()
			if err != nil {
				return err
			}
			path := filepath.Join(dir, config.TaskFile)
			switch {
			case clear && len(args) > 0:
				return usageError("--clear takes no tools")
			case clear:
				if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("clearing the task: %w", err)
				}
				return nil
			case len(args) == 0:
				tools, err := config.NamedTask(dir)
				if err != nil {
					return err
				}
				if len(tools) == 0 {
					fmt.Fprintln(cmd.ErrOrStderr(), "hearsay: no task is named")
				}
				for _, t := range tools {
					fmt.Fprintln(cmd.OutOrStdout(), t)
				}
				return nil
			}
			var none gate.Policy
			if _, err := none.ForTask(args...); err != nil {
				return usageError("%w", err)
			}
			if err := atomicfile.Write(path, []byte(strings.Join(args, "\n")+"\n"), 0o600); err != nil {
				return fmt.Errorf("naming the task: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&clear, "clear", false, "forget the list: every tool may be used as the rules say")
	return cmd
}
