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
		Long: `Read an event of Claude Code on standard input. Of UserPromptSubmit the prompt is kept as the user's words: what it names may be
acted on after untrusted content was read. Of SessionStart it is noted when a conversation is taken up again: it may hold
untrusted content that this gateway has not seen, so it counts as read. Both reach the gateways that the same host process
runs, and no others; the session id in the event is not used. Nothing is printed, because a host may give the agent what a
hook prints.

In settings.json:
  {"hooks": {
    "UserPromptSubmit":
      [{"hooks": [{"type": "command", "command": "hearsay hook"}]}],
    "SessionStart":
      [{"hooks": [{"type": "command", "command": "hearsay hook"}]}]}}

What this does not stop: an agent that runs commands as the same user outside a sandbox can call this command too, and
then speak as the user. Run such an agent in hearsay run, or give its shell no rule.`,
		Example: `  hearsay hook < event.json`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			event, err := readHookEvent(cmd.InOrStdin())
			if err != nil {
				return err
			}
			dir, err := config.StateDir()
			if err != nil {
				return err
			}
			switch event.Get("hook_event_name").Str() {
			case "UserPromptSubmit":
				prompt := event.Get("prompt")
				if prompt.Kind() != strictjson.KindString {
					return errors.New("reading the hook's event: it has no prompt")
				}
				return gateway.KeepWords(dir, os.Getpid(), strings.TrimSpace(prompt.Str()))
			case "SessionStart":
				switch event.Get("source").Str() {
				case "startup", "clear", "compact": // nothing was said before, or the gateway was there when it was
					return nil
				}
				return gateway.KeepRead(dir, os.Getpid(), "a conversation taken up again")
			}
			return errors.New("hearsay hook hears UserPromptSubmit and SessionStart only; register it for these events")
		},
	}
}

func readHookEvent(in io.Reader) (strictjson.Value, error) {
	const limit = 2 * gate.MaxWords // escapes may double the text; the rest of an event is small
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return strictjson.Value{}, fmt.Errorf("reading the hook's event: %w", err)
	}
	event, err := strictjson.Parse(data, strictjson.Limits{MaxBytes: limit})
	if err != nil {
		return strictjson.Value{}, fmt.Errorf("reading the hook's event: %w", err)
	}
	return event, nil
}
