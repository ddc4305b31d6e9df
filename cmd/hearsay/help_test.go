package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// What a person reads first fits the terminal they read it in.
func TestHelpFitsATerminal(t *testing.T) {
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	seen := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		var out strings.Builder
		cmd.SetOut(&out)
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		seen++
		for line := range strings.SplitSeq(out.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > helpWidth {
				t.Errorf("%s --help has a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
	if seen < len(commands) {
		t.Errorf("looked at %d commands of %d", seen, len(commands))
	}
}

func TestFoldText(t *testing.T) {
	got := foldText("one two\nthree four\n\n  code stays as it is, however long\nfive", 9)
	if want := "one two\nthree\nfour\n\n  code stays as it is, however long\nfive"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
