package main

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/replay"
)

func newReplay() *cobra.Command {
	var suites, policies []string
	var asJSON, asBench, pairs bool
	cmd := &cobra.Command{
		Use:   "replay [--suite FILE|DIR]... [--json|--bench|--pairs]",
		Short: "Play attack suites against the boundaries, and count what gets through",
		Long: `Play attack suites against the boundaries with an agent that obeys the attacker, and count what gets through.

No language model runs. Right after the first result that carries the attacker's text the agent makes all the
attacker's calls; the gate alone decides what happens. Without --suite the suites that come with the program are
played. docs/replay.md has the form of a suite, the method, and what the figures do not say.`,
		Example: `  hearsay replay                            # the program's own suites: tables
  hearsay replay --suite suites/ --suite my.json   # a folder of suites, and one
  hearsay replay --json | jq 'select(.figure=="asr")'
  hearsay replay --pairs --policy grounded  # attacks that got a call through`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON && asBench || asJSON && pairs || asBench && pairs {
				return usageError("--json, --bench and --pairs exclude each other")
			}
			var o replay.Options
			for _, name := range policies {
				p, err := replay.PolicyByName(name)
				if err != nil {
					return usageError("--policy: %w", err)
				}
				o.Policies = append(o.Policies, p)
			}
			load := replay.Own
			if len(suites) > 0 {
				load = func() ([]replay.Suite, error) { return replay.Load(suites...) }
			}
			loaded, err := load()
			if err != nil {
				return err
			}
			report, err := replay.Run(loaded, o)
			if err != nil {
				return err
			}
			for _, d := range report.Differ {
				fmt.Fprintf(cmd.ErrOrStderr(), "hearsay: the gateway and the gate differ: %s\n", d)
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			switch {
			case asJSON:
				err = report.JSON(out)
			case asBench:
				err = report.Bench(out, loaded)
			case pairs:
				err = report.WritePairs(out)
			default:
				err = report.Table(out)
			}
			if err == nil {
				err = out.Flush()
			}
			if err != nil {
				return fmt.Errorf("writing the figures: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&suites, "suite", nil, "a suite (`PATH`), or a folder of suites; may be given several times")
	f.StringArrayVar(&policies, "policy", nil, "count under this `POLICY` only; may be given several times")
	f.BoolVar(&asJSON, "json", false, "print one figure a line as JSON")
	f.BoolVar(&asBench, "bench", false, "print the figures in the format of benchstat, and the time of a decision")
	f.BoolVar(&pairs, "pairs", false, "list each attack of which a call got through, and the calls")
	return cmd
}
