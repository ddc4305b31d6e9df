package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/approve"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
)

func newSession() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Show what sessions have read, and forgive it",
		Long: `List the sessions whose state is kept: whose they are, what they read, how many calls were refused. A session on standard
input and output ends with the process that started its gateway; one over HTTP belongs to its client for good, until it is reset.`,
		Example: "  hearsay session\n  hearsay session reset 3f2a… -c team.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := config.StateDir()
			if err != nil {
				return err
			}
			kept, err := gateway.ListStates(dir)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				list := make([]map[string]any, 0, len(kept))
				for _, k := range kept {
					list = append(list, map[string]any{"name": k.Name, "principal": k.Principal, "pid": k.Host.PID, "tainted": k.State.Tainted(), "reads": k.State.Reads(), "refused": k.Budget.Used, "halted": k.Budget.Halted()})
				}
				return json.NewEncoder(out).Encode(list)
			}
			for _, k := range kept {
				fmt.Fprintln(out, describeSession(k))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the sessions as JSON")
	cmd.AddCommand(newSessionReset())
	return cmd
}

func newSessionReset() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "reset NAME",
		Short: "Forgive what a session has read",
		Long: `Take back what a session has read, so that its client may do what the rules allow again. Look first at what it read: whatever
told the agent to do something is still in the agent's conversation. The reset is recorded in the audit log of the file, with
what it forgives. It asks for the first letters of the name again; a session that a gateway serves right now cannot be reset.

What this does not stop: an agent that runs commands as the same user outside a sandbox can call this command too.`,
		Example: "  hearsay session reset 3f2a… -c team.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one session; hearsay session lists them")
			}
			f, err := loadFile(file)
			if err != nil {
				return err
			}
			dir, err := config.StateDir()
			if err != nil {
				return err
			}
			kept, err := gateway.ListStates(dir)
			if err != nil {
				return err
			}
			matches := slices.DeleteFunc(kept, func(k gateway.KeptState) bool { return !strings.HasPrefix(k.Name, args[0]) })
			if len(matches) != 1 {
				return usageError("%d sessions have a name that starts with %q; hearsay session lists them", len(matches), args[0])
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s\nType the first 6 letters of its name to forgive this: ", describeSession(matches[0]))
			typed, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
			if strings.TrimSpace(typed) != matches[0].Name[:6] {
				return errors.New("nothing was reset")
			}
			log, err := f.Audit.Open()
			if err != nil {
				return err
			}
			return gateway.ForgetState(dir, matches[0].Name, func(k gateway.KeptState) error {
				if log == nil {
					return nil
				}
				err := log.Append(audit.Event{Kind: audit.Change, Principal: k.Principal, Detail: map[string]string{
					"what": "session reset", "session": k.Name, "forgiven": strings.Join(k.State.Reads(), ", "), "refused": strconv.Itoa(k.Budget.Used),
				}})
				return errors.Join(err, log.Close())
			})
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the `FILE` whose audit log records it (default: hearsay/hearsay.yaml in your configuration folder)")
	return cmd
}

func describeSession(k gateway.KeptState) string {
	whose := "process " + strconv.Itoa(k.Host.PID)
	if k.Principal != "" {
		whose = "client " + approve.Visible(k.Principal)
	}
	read := "nothing untrusted"
	if k.State.Tainted() {
		read = approve.Visible(strings.Join(k.State.Reads(), ", "))
	}
	halted := ""
	if k.Budget.Halted() {
		halted = ", halted"
	}
	return fmt.Sprintf("%s  %s  read: %s  refused: %d%s", k.Name, whose, read, k.Budget.Used, halted)
}
