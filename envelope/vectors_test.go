package envelope

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// A vector is one case of a vector file: see SPEC.md.
type vector struct {
	Name       string      `json:"name"`
	Op         string      `json:"op"`
	Kind       string      `json:"kind,omitempty"`
	Attributes [][2]string `json:"attributes,omitempty"`
	Provenance string      `json:"provenance,omitempty"`
	Nonce      string      `json:"nonce,omitempty"`
	Lookalikes bool        `json:"lookalikes,omitempty"`
	Limit      *int        `json:"limit,omitempty"`
	Content    string      `json:"content"`
	Want       *string     `json:"want"`
}

func (v vector) envelope() Envelope {
	e := Envelope{Kind: v.Kind, Provenance: v.Provenance, Nonce: v.Nonce, Lookalikes: v.Lookalikes}
	for _, a := range v.Attributes {
		e.Attributes = append(e.Attributes, Attribute{a[0], a[1]})
	}
	return e
}

func readVectors(tb testing.TB, path string) []vector {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(data, &vectors); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	if len(vectors) == 0 {
		tb.Fatalf("%s: no vectors", path)
	}
	return vectors
}

func (v vector) run(tb testing.TB) *string {
	switch v.Op {
	case "wrap":
		got := v.envelope().Wrap(v.Content)
		if v.Limit != nil {
			got = v.envelope().WrapLimit(v.Content, *v.Limit)
		}
		return &got
	case "neutralize":
		got := defang(v.Content, v.Lookalikes)
		return &got
	case "body":
		if got, ok := Body(v.Content); ok {
			return &got
		}
		return nil
	}
	tb.Fatalf("unknown op %q", v.Op)
	return nil
}

func show(s *string) string {
	if s == nil {
		return "not a frame"
	}
	return *s
}

func checkVectors(t *testing.T, vectors []vector) {
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			got := v.run(t)
			if (got == nil) != (v.Want == nil) || show(got) != show(v.Want) {
				t.Errorf("got  %q\nwant %q", show(got), show(v.Want))
			}
		})
	}
}

func TestSharedVectors(t *testing.T) {
	shared := readVectors(t, repotest.Shared(t, "vectors/envelope.json"))
	eachWay(func() { checkVectors(t, shared) })
}

var update = flag.Bool("update", false, "write what is produced now into the vector files of this package")

// The files in testdata/vectors are this project's own, for the sections of SPEC.md that have a file named after them.
func TestOwnVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no vector files", err)
	}
	for _, file := range files {
		vectors := readVectors(t, file)
		if *update {
			for i := range vectors {
				vectors[i].Want = vectors[i].run(t)
			}
			data, err := json.MarshalIndent(vectors, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) { checkVectors(t, vectors) })
	}
}
