package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	var weaker []string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Start a real sandbox, try to get out of it, and say what holds on this machine",
		Long: `Start a sandbox on this machine with this program in it, try fourteen ways out and four things that every program needs, and
print what came of each. The exit code is 0 only when all hold; 125 says that no sandbox could be made, and why.

It says what holds here and now, for the user who asks. The full suite of attempts is the project's test TestEscapes.`,
		Example: `  hearsay doctor
  hearsay doctor --json
  hearsay doctor --weaker ` + string(sandbox.FilesByLandlockNoNetwork),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var modes []sandbox.Weaker
			for _, name := range weaker {
				w, err := sandbox.ParseWeaker(name)
				if err != nil {
					return usageError("--weaker: %w", err)
				}
				modes = append(modes, w)
			}
			defer tidily(cmd)()
			found, err := sandbox.Examine(cmd.Context(), modes...)
			if err != nil {
				return withCode(exitSandbox, err)
			}
			if asJSON {
				out := json.NewEncoder(cmd.OutOrStdout())
				out.SetIndent("", "  ")
				err = out.Encode(struct {
					OK bool `json:"ok"`
					sandbox.Checkup
				}{found.OK(), found})
			} else {
				err = printCheckup(cmd.OutOrStdout(), found)
			}
			if err != nil {
				return err
			}
			if !found.OK() {
				return withCode(exitFailed, nil)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringArrayVar(&weaker, "weaker", nil, "examine a weaker `MODE` (repeatable)")
	return cmd
}

func printCheckup(out io.Writer, c sandbox.Checkup) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tmust\tattempt\tanswer")
	bad := 0
	for _, k := range c.Checks {
		mark := "ok"
		if !k.OK {
			mark = "FAILED"
			bad++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", mark, k.Must, k.Name, k.Answer)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	verdict := "Everything holds."
	if bad > 0 {
		verdict = fmt.Sprintf("%d of %d do not hold: do not run what you do not trust here.", bad, len(c.Checks))
	}
	_, err := fmt.Fprintf(out, "\nkernel %s, Landlock ABI %d\n%s\n%s\n", c.Report.Kernel, c.Report.LandlockABI, c.Report, verdict)
	return err
}
