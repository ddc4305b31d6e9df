package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/screen"
)

// maxScreened bounds one text, or one line of JSON, that screen reads: what passes the gateway is not larger.
const maxScreened = 64 << 20

func newScreen() *cobra.Command {
	var s screening
	var file string
	cmd := &cobra.Command{
		Use:   "screen [FILE…]",
		Short: "Say what the screens find in a text, and what would be done",
		Long: `Run the screens over files, or over standard input: hidden text, credentials, phrases that try to override instructions.
Each finding has its screen and rule, the bytes it spans, and what would be done. With --field each line of a file is a
JSON object and the text is the string of that name.

Exit code 3 when a text would be refused, 0 otherwise. A text in which nothing is found may still be an attack: screens
see what is hidden, not what is meant.`,
		Example: `  hearsay screen page.html
  hearsay screen --json -c hearsay.yaml < result.txt
  hearsay screen --field text --summary corpora/*.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var options screen.Options
			if file != "" {
				cfg, err := config.Load(file)
				if err != nil {
					return err
				}
				options = cfg.Screens.Options()
			}
			set, err := screen.New(options)
			if err != nil {
				return err
			}
			out := forPerson(cmd.OutOrStdout())
			s.set, s.out = set, out
			return errors.Join(s.run(cmd, args), out.Flush())
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the configuration `FILE`, of which the section screens counts")
	cmd.Flags().StringVar(&s.field, "field", "", "read lines of JSON and screen the string of this `NAME`")
	cmd.Flags().BoolVar(&s.json, "json", false, "print one JSON object for each text")
	cmd.Flags().BoolVar(&s.summary, "summary", false, "print how many texts of each file each screen found something in")
	return cmd
}

// screening is one run of the command.
type screening struct {
	set           *screen.Set
	out           io.Writer
	field         string
	json, summary bool

	texts, found, refused int
	table                 *tabwriter.Writer
}

// summaryScreens are the columns of the summary. restates_request has none: here there is no request.
var summaryScreens = []string{"hidden_text", "secrets", "override_phrases"}

func (s *screening) run(cmd *cobra.Command, files []string) error {
	if s.json && s.summary {
		return usageError("--json and --summary do not go together")
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	if s.summary {
		s.table = tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(s.table, "file\ttexts\t%s\tany\n", strings.Join(summaryScreens, "\t"))
	}
	for _, file := range files {
		if err := s.file(cmd, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if s.summary {
		if err := s.table.Flush(); err != nil {
			return err
		}
	} else if !s.json {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s, %d with findings, %d would be refused\n", counted(s.texts, "text"), s.found, s.refused)
	}
	if s.refused > 0 {
		return withCode(exitRefused, nil)
	}
	return nil
}

func (s *screening) file(cmd *cobra.Command, name string) error {
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	counts := map[string]int{}
	texts := s.texts
	if s.field == "" {
		data, err := io.ReadAll(io.LimitReader(in, maxScreened+1))
		if err != nil {
			return err
		}
		if len(data) > maxScreened {
			return fmt.Errorf("larger than %d bytes", maxScreened)
		}
		if err := s.text(cmd, name, 0, string(data), counts); err != nil {
			return err
		}
	} else {
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxScreened)
		for number := 1; lines.Scan(); number++ {
			if strings.TrimSpace(lines.Text()) == "" {
				continue
			}
			var object map[string]json.RawMessage
			var text string
			if err := json.Unmarshal(lines.Bytes(), &object); err != nil {
				return fmt.Errorf("line %d is not a JSON object: %w", number, err)
			}
			if err := json.Unmarshal(object[s.field], &text); err != nil {
				return fmt.Errorf("line %d has no string named %q; --field names the one to screen", number, s.field)
			}
			if err := s.text(cmd, name, number, text, counts); err != nil {
				return err
			}
		}
		if errors.Is(lines.Err(), bufio.ErrTooLong) {
			return fmt.Errorf("a line is longer than %d bytes", maxScreened)
		}
		if lines.Err() != nil {
			return lines.Err()
		}
	}
	if s.summary {
		fmt.Fprintf(s.table, "%s\t%d", showControls(name), s.texts-texts)
		for _, column := range append(summaryScreens, "") {
			fmt.Fprintf(s.table, "\t%s", share(counts[column], s.texts-texts))
		}
		fmt.Fprintln(s.table)
	}
	return nil
}

// share is n of all, with the percentage.
func share(n, all int) string {
	if all == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.1f %%)", n, 100*float64(n)/float64(all))
}

func (s *screening) text(cmd *cobra.Command, name string, line int, text string, counts map[string]int) error {
	result := s.set.Check(cmd.Context(), screen.Input{Text: text})
	s.texts++
	if len(result.Findings) > 0 {
		s.found++
		counts[""]++
	}
	if result.Verdict == screen.Refuse || result.Verdict == screen.Halt {
		s.refused++
	}
	seen := map[string]bool{}
	for _, f := range result.Findings {
		if !seen[f.Screen] {
			counts[f.Screen]++
		}
		seen[f.Screen] = true
	}
	switch {
	case s.summary:
		return nil
	case s.json:
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		findings := result.Findings
		if findings == nil {
			findings = []screen.Finding{}
		}
		return enc.Encode(struct {
			File     string           `json:"file"`
			Line     int              `json:"line,omitempty"`
			Verdict  screen.Verdict   `json:"verdict"`
			Reason   string           `json:"reason,omitempty"`
			Findings []screen.Finding `json:"findings"`
			Omitted  int              `json:"omitted,omitempty"`
		}{name, line, result.Verdict, result.Reason, findings, result.Omitted})
	}
	where := name
	if line > 0 {
		where += ":" + strconv.Itoa(line)
	}
	for _, f := range result.Findings {
		fmt.Fprintf(s.out, "%s: %s/%s at %d-%d: %s", showControls(where), f.Screen, f.Rule, f.Start, f.End, f.Action)
		if f.Hidden.Len() > 0 {
			fmt.Fprintf(s.out, ", reads %s", quoted(f.Hidden.RawUntrustedText())) // for a person, with every control shown
		}
		fmt.Fprintln(s.out)
	}
	if result.Omitted > 0 {
		fmt.Fprintf(s.out, "%s: and %d findings more\n", showControls(where), result.Omitted)
	}
	if result.Reason != "" {
		fmt.Fprintf(s.out, "%s: would be refused: %s\n", showControls(where), result.Reason)
	}
	return nil
}

// quoted is text from outside on one line, cut to what a line has room for.
func quoted(text string) string {
	const room = 100
	if runes := []rune(text); len(runes) > room {
		text = string(runes[:room]) + "…"
	}
	return strconv.QuoteToGraphic(text)
}
