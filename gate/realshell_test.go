package gate

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// Pieces of command lines, so that random ones come near the corners of the grammar. The programs do not exist.
var shellPieces = []string{
	"p1", "p2", "p3", " ", " ", " ", "a", "b", "'", "'", "\"", "\"", "\\", "$", "`", "(", ")", "{", "}", ";", "&&", "||", "|", "&", "\n", "#", "<", ">",
	"*", "?", "~", "!", "=", "[", "]", "x=1", "$(", "${", "<(", "\t", "-p", "eval", "time", "if", "then", "fi", "for", "in", "do", "done", "case", "esac", "2>&1", ">/dev/null",
	"''", "\r", "é", ",", "..", "$'", "$\"", "%", "^", "@", "+=", "<<E", "E", "function", "command", "\\\n", "&>", ">&2", "|&", "coproc", "((", "))", "[[", "]]",
}

// What the parser resolves, a real shell runs: each command that bash runs of a resolved line is one of its parts. The lines
// that are not resolved are not run here. Each byte of the input is a piece; without -fuzz some hundred fixed lines are run.
func FuzzARealShellRunsNothingElse(f *testing.F) {
	bash, err := exec.LookPath("bash")
	repotest.Need(f, "bash", err == nil)
	dir := f.TempDir()
	for _, found := range [][]string{ // once read differently
		{"p1", "\\"}, {"2>&1", " ", "{"}, {"$", "\\\n", "x=1"}, {"p1", "|&", "time"}, {"p1", "|", "!", " ", "p2"}, {"p1", ">", "\\\n", "(", "p2", ")"},
	} {
		var line []byte
		for _, piece := range found {
			if i := slices.Index(shellPieces, piece); i >= 0 {
				line = append(line, byte(i))
			}
		}
		f.Add(line)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		line := make([]byte, 1+random.IntN(10))
		for i := range line {
			line[i] = byte(random.IntN(len(shellPieces)))
		}
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, pieces []byte) {
		var b strings.Builder
		for _, i := range pieces[:min(len(pieces), 40)] {
			b.WriteString(shellPieces[int(i)%len(shellPieces)])
		}
		line := b.String()
		s := parseScript(line)
		if s.unresolved != "" {
			return
		}
		var parts []string
		for _, pt := range s.parts {
			parts = append(parts, pt.text)
		}
		for _, words := range bashRuns(t, bash, dir, line) {
			var w []word
			for _, text := range words {
				w = append(w, word{text: text, known: true})
			}
			if got := newPart(w).text; !slices.Contains(parts, got) {
				t.Fatalf("%q: bash runs %q, the parser found %q", line, got, parts)
			}
		}
	})
}

// bashRuns gives the words of each command that bash would run for the line.
func bashRuns(t *testing.T, bash, dir, line string) [][]string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.CommandContext(ctx, bash, "--norc", "-c", `command_not_found_handle() { printf '%s\0' "$#" "$@" >&3; }; eval "$1"`, "bash", line)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = dir, []string{"PATH=/nowhere"}, []*os.File{w}
	if err := cmd.Start(); err != nil {
		w.Close()
		t.Fatal(err)
	}
	w.Close()
	out, err := io.ReadAll(r) // to the end of every process that holds the other side
	cmd.Wait()                // a syntax error is no matter
	if err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	fields := strings.Split(string(bytes.TrimSuffix(out, []byte{0})), "\x00")
	var runs [][]string
	for i := 0; i < len(fields) && len(out) > 0; {
		n, err := strconv.Atoi(fields[i])
		if err != nil || i+1+n > len(fields) {
			t.Fatalf("%q: bash wrote %q", line, out)
		}
		runs = append(runs, fields[i+1:i+1+n])
		i += 1 + n
	}
	return runs
}
