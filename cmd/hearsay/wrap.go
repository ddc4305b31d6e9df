package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/envelope"
)

func newWrap() *cobra.Command {
	var label envelope.Envelope
	var attributes []string
	var seal bool
	var limit int
	cmd := &cobra.Command{
		Use:   "wrap --kind KIND",
		Short: "Frame standard input as untrusted content",
		Long: `Write standard input to standard output in a frame that tells a model whose words it is, and that it is material, not
instructions. What could end the frame early is defanged. The input is streamed: its size does not matter.

A frame is a label. It raises an attacker's cost and stops nobody who adapts; what the agent may do has to be bounded
elsewhere (hearsay mcp, hearsay run).`,
		Example: `  curl -s https://example.com | hearsay wrap --kind web-page \
      --attr url=https://example.com \
      --provenance "A web page; this agent did not write it."
  hearsay wrap --kind log --limit 20000 < build.log
  hearsay wrap --kind mail --seal --lookalikes < mail.txt`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if label.Kind == "" {
				return usageError("say what the content is: hearsay wrap --kind web-page (or mail, file, log, tool-result, …)")
			}
			for _, a := range attributes {
				name, value, ok := strings.Cut(a, "=")
				if !ok || name == "" {
					return usageError("--attr %q is not NAME=VALUE, for example: --attr url=https://example.com", a)
				}
				label.Attributes = append(label.Attributes, envelope.Attribute{Name: name, Value: value})
			}
			limited := cmd.Flags().Changed("limit")
			if limited && limit < 0 {
				return usageError("--limit %d is below 0: give the number of bytes of content to keep", limit)
			}
			if seal {
				label.Nonce = envelope.NewNonce()
			}
			out := forPerson(cmd.OutOrStdout())
			frame := label.NewWriter(out)
			if limited {
				frame = label.NewWriterLimit(out, limit)
			}
			_, err := io.Copy(frame, cmd.InOrStdin())
			if closing := frame.Close(); closing != nil {
				return fmt.Errorf("writing the frame: %w", closing)
			}
			if err != nil { // the frame is whole all the same, and ends where the input failed
				return fmt.Errorf("reading standard input: %w", err)
			}
			return out.Flush()
		},
	}
	cmd.Flags().StringVar(&label.Kind, "kind", "", "`KIND` of the content, such as web-page")
	cmd.Flags().StringArrayVar(&attributes, "attr", nil, "an attribute of the opening tag, `NAME=VALUE`; may be repeated")
	cmd.Flags().StringVar(&label.Provenance, "provenance", "", "one `SENTENCE` that says whose words these are")
	cmd.Flags().BoolVar(&seal, "seal", false, "put a random nonce into both tags")
	cmd.Flags().BoolVar(&label.Lookalikes, "lookalikes", false, "also defang what only looks like a tag")
	cmd.Flags().IntVar(&limit, "limit", 0, "keep at most this many `BYTES` of content, and say how many were left out")
	return cmd
}
