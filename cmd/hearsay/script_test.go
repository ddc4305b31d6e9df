package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hearsay": main, "mcp-list": mcpList})
}

// The scripts in testdata/script run the real command, one file for each thing a user does.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("ESC", "\x1b]0;title\a")
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
