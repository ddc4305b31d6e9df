package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/envelope"
)

// maxFrame bounds what unwrap reads: a frame is checked whole before any of it is given out, so it has to fit into memory.
const maxFrame = 512 << 20

func newUnwrap() *cobra.Command {
	var exact, asJSON bool
	cmd := &cobra.Command{
		Use:   "unwrap",
		Short: "Give the content of one frame back",
		Long: `Read one frame from standard input and write its content to standard output, without the white space around it.
Anything but exactly one frame exits with code 4 and the reason, and writes nothing: it never guesses.

What comes out is untrusted as it was before. A frame proves nothing: whoever can write text can write one.`,
		Example: `  hearsay wrap --kind file < notes.txt | hearsay unwrap
  hearsay unwrap --exact < framed.txt | sha256sum
  hearsay unwrap --json < framed.txt`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if exact && asJSON {
				return usageError("--exact and --json do not go together: --json gives the body without the white space around it")
			}
			data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxFrame+1))
			if err != nil {
				return fmt.Errorf("reading standard input: %w", err)
			}
			if len(data) > maxFrame {
				return fmt.Errorf("the input is larger than %d bytes, more than unwrap reads", maxFrame)
			}
			text := string(data)
			label, body, reason := envelope.Parse(text)
			if asJSON {
				if reason != nil {
					return withCode(exitVerify, reason)
				}
				out := forPerson(cmd.OutOrStdout())
				if err := printFrame(out, label, body); err != nil {
					return fmt.Errorf("writing the frame's parts: %w", err)
				}
				return out.Flush()
			}
			read := envelope.Body
			if exact {
				read = envelope.Exact
			}
			body, ok := read(text)
			if !ok {
				if reason == nil {
					reason = fmt.Errorf("not a frame as wrap writes it: no line feed stands before the closing tag")
				}
				return withCode(exitVerify, reason)
			}
			out := forPerson(cmd.OutOrStdout())
			if _, err := io.WriteString(out, body); err != nil {
				return fmt.Errorf("writing the content: %w", err)
			}
			return out.Flush()
		},
	}
	cmd.Flags().BoolVar(&exact, "exact", false, "keep the white space around the content, byte for byte")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print label and body as one JSON object; the label must be as wrap writes it")
	return cmd
}

func printFrame(w io.Writer, label envelope.Envelope, body string) error {
	type attribute struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	out := struct {
		Kind       string      `json:"kind"`
		Attributes []attribute `json:"attributes"`
		Provenance string      `json:"provenance"`
		Nonce      string      `json:"nonce,omitempty"`
		Body       string      `json:"body"`
	}{label.Kind, []attribute{}, label.Provenance, label.Nonce, body}
	for _, a := range label.Attributes {
		out.Attributes = append(out.Attributes, attribute(a))
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}
