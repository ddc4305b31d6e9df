package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/internal/approve"
)

func newApprove() *cobra.Command {
	var asJSON, wait bool
	var verdict, digest string
	cmd := &cobra.Command{
		Use:   "approve [ID]",
		Short: "Answer, on the terminal, what agents wait for",
		Long: `Show the calls that wait for a person, each whole, and take an answer.

Without an ID every waiting call is shown in turn: o allows it this once, s allows it and its values for the session,
d denies it, an empty line leaves it waiting. With an ID and --answer one call is answered. A call without an answer in
time is denied.`,
		Example: "  hearsay approve\n  hearsay approve --wait\n  hearsay approve --json\n  hearsay approve 4KQ… --answer deny",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := approve.SocketDir()
			if err != nil {
				return err
			}
			list, err := approve.List(cmd.Context(), dir)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				if list == nil {
					list = []approve.Waiting{}
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(list)
			case len(args) == 1:
				return answerOne(cmd, list, args[0], digest, verdict)
			case verdict != "" || digest != "":
				return usageError("--answer and --digest need the ID of the call they are for")
			}
			in := bufio.NewReader(cmd.InOrStdin())
			for {
				if err := answerAll(cmd, list, in); err != nil {
					return err
				}
				if !wait {
					return nil
				}
				for list = nil; len(list) == 0; {
					select {
					case <-cmd.Context().Done():
						return nil
					case <-time.After(time.Second):
					}
					if list, err = approve.List(cmd.Context(), dir); err != nil {
						return err
					}
				}
			}
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what waits as a JSON array")
	cmd.Flags().BoolVar(&wait, "wait", false, "go on with what comes later")
	cmd.Flags().StringVar(&verdict, "answer", "", "`ANSWER`: once, session or deny, for the call with the given ID")
	cmd.Flags().StringVar(&digest, "digest", "", "with --answer: the `DIGEST` of the call as it was shown, so that no other can be meant")
	return cmd
}

func answerOne(cmd *cobra.Command, list []approve.Waiting, id, digest, verdict string) error {
	for _, w := range list {
		if w.ID != id {
			continue
		}
		if verdict == "" {
			_, err := io.WriteString(cmd.OutOrStdout(), w.Text)
			return err
		}
		v, err := approve.ParseVerdict(verdict)
		if err != nil {
			return usageError("%w", err)
		}
		if digest != "" {
			w.Digest = digest
		}
		return approve.Reply(cmd.Context(), w, v)
	}
	return fmt.Errorf("no call %q is waiting; hearsay approve --json lists what is", approve.Visible(id))
}

func answerAll(cmd *cobra.Command, list []approve.Waiting, in *bufio.Reader) error {
	if len(list) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "Nothing waits.")
	}
	letters := map[string]approve.Verdict{"o": approve.Once, "s": approve.Session, "d": approve.Deny}
	for i, w := range list {
		fmt.Fprintf(cmd.OutOrStdout(), "[%d of %d, denied at %s]\n%s", i+1, len(list), w.Expires.Local().Format(time.TimeOnly), w.Text)
		for {
			fmt.Fprint(cmd.OutOrStdout(), "[d]eny, allow [o]nce, allow its values for the [s]ession, or enter to leave it: ")
			line, err := in.ReadString('\n')
			if err != nil {
				if errors.Is(err, io.EOF) {
					return nil // what was not answered goes on waiting
				}
				return fmt.Errorf("reading the answer: %w", err)
			}
			line = strings.TrimSpace(line)
			if line == "" {
				break
			}
			v, ok := letters[line]
			if !ok {
				continue
			}
			if err := approve.Reply(cmd.Context(), w, v); err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "hearsay: %v\n", err)
			}
			break
		}
	}
	return nil
}
