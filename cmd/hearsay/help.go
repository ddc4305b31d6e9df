package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is the width help is folded to: that of the terminals nobody has resized.
const helpWidth = 80

// printHelp writes what --help shows: what the command does, how it is called, examples, commands below it and flags. Cobra's own
// help folds nothing, and a terminal breaks its long lines in the middle of words.
func printHelp(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	b.WriteString(foldText(text, helpWidth) + "\n\nUsage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nAvailable Commands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				indent := 2 + c.NamePadding() + 1
				short := wrapAt(c.Short, helpWidth-indent, "\n"+strings.Repeat(" ", indent))
				fmt.Fprintf(&b, "  %-*s %s\n", c.NamePadding(), c.Name(), short)
			}
		}
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s\n", strings.TrimRight(cmd.LocalFlags().FlagUsagesWrapped(helpWidth), "\n"))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s\n", foldText(fmt.Sprintf("Use %q for more information about a command.", cmd.CommandPath()+" [command] --help"), helpWidth))
	}
	_, _ = io.WriteString(cmd.OutOrStdout(), b.String())
}

// foldText fills the paragraphs of text to width. Lines that begin with a space (code, tables) stay as they are and end a paragraph.
func foldText(text string, width int) string {
	var out, paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			out = append(out, wrapAt(strings.Join(paragraph, " "), width, "\n"))
			paragraph = nil
		}
	}
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		if line == "" || line[0] == ' ' {
			flush()
			out = append(out, line)
			continue
		}
		paragraph = append(paragraph, line)
	}
	flush()
	return strings.Join(out, "\n")
}
