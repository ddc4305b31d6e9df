package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/internal/approve"
)

func newAudit() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Check and read the record of decisions",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditVerify(), newAuditShow())
	return cmd
}

func newAuditVerify() *cobra.Command {
	var heads []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Check that a log is whole and unchanged",
		Long: `Check offline that no line of a log was changed, cut, moved, put in or taken out, and say where one was.

Several files are read as one log, in the order given (a rotated log: FILE.000000000123 before FILE). The head file
beside the last one (FILE.head) is used where it exists. It lies beside the log, so who can change one can change both:
to be certain of everything up to a point, note the printed head elsewhere and pass it with --head.

Exit code 4: something was changed or cut, or there is no line at all to vouch for. The beginning of one more line at
the end, as a process that was killed leaves it, is only noted.`,
		Example: `  hearsay audit verify audit.jsonl
  hearsay audit verify --head 1042:9c1f… audit.jsonl.000000000900 audit.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("name the log to check, for example: hearsay audit verify audit.jsonl")
			}
			var anchors []audit.Anchor
			for _, h := range heads {
				a, err := parseAnchor(h)
				if err != nil {
					return err
				}
				anchors = append(anchors, a)
			}
			last := args[len(args)-1]
			head, found, err := audit.ReadHead(last)
			if err != nil {
				return withCode(exitVerify, fmt.Errorf("reading the head of %s: %w", last, err))
			}
			if found {
				anchors = append(anchors, head)
			}
			in, closeAll, err := openAll(args)
			if err != nil {
				return err
			}
			defer closeAll()
			report, err := audit.Verify(in, anchors...)
			if err != nil {
				return fmt.Errorf("reading %s: %w", strings.Join(args, ", "), err)
			}
			if err := printReport(cmd.OutOrStdout(), report, found, asJSON); err != nil {
				return err
			}
			if !report.OK() {
				return withCode(exitVerify, nil)
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&heads, "head", nil, "a head noted earlier, as `SEQ:HASH`, that must lie on the chain (repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as one JSON object")
	return cmd
}

func parseAnchor(s string) (audit.Anchor, error) {
	number, hash, ok := strings.Cut(s, ":")
	seq, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || seq == 0 || len(hash) != 64 {
		return audit.Anchor{}, usageError("--head %q is not SEQ:HASH, as hearsay audit verify prints it", s)
	}
	return audit.Anchor{Seq: seq, Hash: hash}, nil
}

func openAll(paths []string) (io.Reader, func(), error) {
	var readers []io.Reader
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
	}
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("opening the log: %w", err)
		}
		files = append(files, f)
		readers = append(readers, f)
	}
	return io.MultiReader(readers...), closeAll, nil
}

func printReport(w io.Writer, r audit.Report, head, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(struct {
			OK bool `json:"ok"`
			audit.Report
		}{r.OK(), r})
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "line %d (byte %d): %s\n", p.Line, p.Offset, p.What)
	}
	if len(r.Problems) == audit.MaxProblems {
		fmt.Fprintf(w, "more may follow: only the first %d are shown\n", audit.MaxProblems)
	}
	if r.Torn > 0 {
		fmt.Fprintf(w, "note: the last %d bytes are an unfinished line; a process was stopped while it wrote, and nothing waited for that line\n", r.Torn)
	}
	if r.Continues {
		fmt.Fprintf(w, "note: the log starts with line %d of its chain; give the file before it as well to check that\n", r.First.Seq)
	}
	if !head {
		fmt.Fprintln(w, "note: no head file beside the log: lines cut off its end would not show")
	}
	if r.Lines == 0 {
		_, err := fmt.Fprintln(w, "NOT WHOLE: 0 lines")
		return err
	}
	verdict := "ok"
	if !r.OK() {
		verdict = "NOT WHOLE"
	}
	_, err := fmt.Fprintf(w, "%s: %d lines, head %d:%s\n", verdict, r.Lines, r.Last.Seq, r.Last.Hash)
	return err
}

func newAuditShow() *cobra.Command {
	var session string
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use:     "show FILE",
		Short:   "Print a log for a person to read",
		Long:    "Print a log one event a line, control characters made visible. It shows what is there; audit verify says whether that is what was written.",
		Example: "  hearsay audit show --session 7f3a audit.jsonl\n  hearsay audit show --follow audit.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one log, for example: hearsay audit show audit.jsonl")
			}
			show := func(e audit.Entry, err error) bool {
				switch {
				case err != nil:
					fmt.Fprintf(cmd.ErrOrStderr(), "hearsay: %v\n", err)
				case session != "" && !strings.HasPrefix(e.Session, session):
				case asJSON:
					json.NewEncoder(cmd.OutOrStdout()).Encode(e)
				default:
					fmt.Fprintln(cmd.OutOrStdout(), entryLine(e))
				}
				return true
			}
			f, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("opening the log: %w", err)
			}
			defer f.Close()
			var in io.Reader = f
			if follow {
				in = &follower{ctx: cmd.Context(), path: args[0], file: f}
			}
			if err := audit.Entries(in, show); err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("reading %s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "only events of sessions whose `ID` begins so")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on as lines are added, also across a rotation")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each event as one JSON object")
	return cmd
}

// follower reads a file that grows; at its end it waits for more, and moves to the new file once the path names another.
type follower struct {
	ctx  context.Context
	path string
	file *os.File
}

const followEvery = 200 * time.Millisecond

func (f *follower) Read(p []byte) (int, error) {
	for {
		n, err := f.file.Read(p)
		if n > 0 || (err != nil && err != io.EOF) {
			return n, err
		}
		select {
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		case <-time.After(followEvery):
		}
		open, err := f.file.Stat()
		if err != nil {
			return 0, err
		}
		there, err := os.Stat(f.path)
		if err != nil || os.SameFile(open, there) {
			continue
		}
		if n, _ := f.file.Read(p); n > 0 { // written between the last read and the rotation
			return n, nil
		}
		next, err := os.Open(f.path)
		if err != nil {
			continue
		}
		f.file.Close()
		f.file = next
	}
}

// entryLine is one event on one line: time, kind, who, what, answer and why.
func entryLine(e audit.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6d %s %-8s", e.Seq, e.Time.Format(time.RFC3339), e.Kind)
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, " %s%s", name, approve.Visible(value))
		}
	}
	add("", strings.ToUpper(e.Answer))
	what := e.Tool
	if e.Server != "" && what != "" {
		what = e.Server + "__" + what
	} else if what == "" {
		what = e.Server
	}
	add("", what)
	add("", e.Target)
	add("addr=", e.Addr)
	add("class=", e.Class)
	add("reason=", e.Reason)
	add("rule=", e.Rule)
	add("session=", e.Session)
	add("principal=", e.Principal)
	for _, k := range slices.Sorted(maps.Keys(e.Detail)) {
		add(approve.Visible(k)+"=", e.Detail[k])
	}
	if e.Shape != nil {
		if shape, err := json.Marshal(e.Shape); err == nil {
			add("args=", string(shape))
		}
	}
	if e.Text != "" {
		fmt.Fprintf(&b, " (%s)", approve.Visible(e.Text))
	}
	return b.String()
}
