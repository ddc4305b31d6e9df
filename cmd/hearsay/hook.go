package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

func newHook() *cobra.Command {
	return &cobra.Command{
		Use:   "hook",
		Short: "Hear what the user says, as a hook of the agent's host",
		Long: `Read a UserPromptSubmit event of Claude Code on standard input and keep the prompt as the user's words: what it names may be
acted on after untrusted content was read. The words reach the gateways that the same host process runs, and no others;
the session id in the event is not used. Nothing is printed, because a host may give the agent what a hook prints.

In settings.json:
  {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "hearsay hook"}]}]}}

What this does not stop: an agent that runs commands as the same user outside a sandbox can call this command too, and
then speak as the user. Run such an agent in hearsay run, or give its shell no rule.`,
		Example: `  hearsay hook < event.json`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			prompt, err := readPrompt(cmd.InOrStdin())
			if err != nil {
				return err
			}
			dir, err := config.StateDir()
			if err != nil {
				return err
			}
			return gateway.KeepWords(dir, os.Getpid(), prompt)
		},
	}
}

// readPrompt reads the event of a hook and gives what the user said.
func readPrompt(in io.Reader) (string, error) {
	const limit = 2 * gate.MaxWords // escapes may double the text; the rest of an event is small
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return "", fmt.Errorf("reading the hook's event: %w", err)
	}
	v, err := strictjson.Parse(data, strictjson.Limits{MaxBytes: limit})
	if err != nil {
		return "", fmt.Errorf("reading the hook's event: %w", err)
	}
	if v.Get("hook_event_name").Str() != "UserPromptSubmit" {
		return "", errors.New("hearsay hook hears UserPromptSubmit only; register it for that event")
	}
	prompt := v.Get("prompt")
	if prompt.Kind() != strictjson.KindString {
		return "", errors.New("reading the hook's event: it has no prompt")
	}
	return strings.TrimSpace(prompt.Str()), nil
}
