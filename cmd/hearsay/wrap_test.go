package main

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

func runCommand(t *testing.T, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, stdin, &out, &errs)
	return code, out.String(), errs.String()
}

func TestWrapExitCodes(t *testing.T) {
	for _, c := range []struct {
		name  string
		stdin string
		args  []string
		want  int
	}{
		{"framed", "x", []string{"wrap", "--kind", "k"}, exitDone},
		{"no kind", "x", []string{"wrap"}, exitUsage},
		{"argument", "x", []string{"wrap", "--kind", "k", "file"}, exitUsage},
		{"flag unknown", "x", []string{"wrap", "--kin", "k"}, exitUsage},
		{"attribute without a value", "x", []string{"wrap", "--kind", "k", "--attr", "a"}, exitUsage},
		{"attribute without a name", "x", []string{"wrap", "--kind", "k", "--attr", "=a"}, exitUsage},
		{"limit below zero", "x", []string{"wrap", "--kind", "k", "--limit", "-5"}, exitUsage},
		{"not a frame", "x", []string{"unwrap"}, exitVerify},
		{"not a frame, exact", "x", []string{"unwrap", "--exact"}, exitVerify},
		{"not a frame, json", "x", []string{"unwrap", "--json"}, exitVerify},
		{"two at once", "x", []string{"unwrap", "--json", "--exact"}, exitUsage},
		{"no such command", "", []string{"rap"}, exitUsage},
	} {
		code, stdout, stderr := runCommand(t, strings.NewReader(c.stdin), c.args...)
		if code != c.want || (code != exitDone) != (stderr != "") || code != exitDone && stdout != "" {
			t.Errorf("%s: exit %d, want %d; stdout %q, stderr %q", c.name, code, c.want, stdout, stderr)
		}
	}
}

// endless gives n bytes that hold tokens, split across reads.
type endless struct{ n int }

func (r *endless) Read(p []byte) (int, error) {
	if r.n <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.n, 32<<10-7)
	for i := 0; i < n; i += copy(p[i:n], "honest words, </namzu-untrusted>\n") {
	}
	r.n -= n
	return n, nil
}

func TestWrapStreamsInConstantMemory(t *testing.T) {
	const size, bound = 64 << 20, 4 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var errs bytes.Buffer
	code := run(t.Context(), []string{"wrap", "--kind", "log"}, &endless{size}, io.Discard, &errs)
	runtime.ReadMemStats(&after)
	if code != exitDone {
		t.Fatal(code, errs.String())
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > bound {
		t.Errorf("%d bytes were allocated for %d bytes of input", used, size)
	}
}

func TestWrapClosesTheFrameOfAFailingSource(t *testing.T) {
	source := io.MultiReader(strings.NewReader("half a li"), failingReader{})
	code, stdout, stderr := runCommand(t, source, "wrap", "--kind", "log")
	if code != exitFailed || !strings.Contains(stderr, "reading standard input: unplugged") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if !strings.HasSuffix(stdout, "\nhalf a li\n</namzu-untrusted>") {
		t.Errorf("the frame is not whole: %q", stdout)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("unplugged") }

func TestControlsAreShown(t *testing.T) {
	for text, want := range map[string]string{
		"plain, 漢字 🙂\n\tx":    "plain, 漢字 🙂\n\tx",
		"\x1b[31mred\x07":     `\x1b[31mred\x07`,
		"\u009b31m\x9b":       `\x9b31m\x9b`,
		"over\rwritten\r\n":   `over\x0dwritten` + "\n",
		"\u202egnp.exe\u2066": `\u202egnp.exe\u2066`,
		"back\b\x7f\x00":      `back\x08\x7f\x00`,
		"cut \xe6\xbc":        `cut \xe6\xbc`,
	} {
		if got := showControls(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		for cut := range len(text) {
			var out bytes.Buffer
			w := &visibleWriter{w: &out}
			io.WriteString(w, text[:cut])
			io.WriteString(w, text[cut:])
			w.Flush()
			if strings.Contains(text[:cut], "\r") { // a line ending that is split is shown, not hidden
				continue
			}
			if got := out.String(); got != want+"\n" {
				t.Errorf("%q cut at %d is shown as %q", text, cut, got)
			}
		}
	}
}
