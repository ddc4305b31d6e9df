package connect

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is produced now into the files of testdata/golden")

const binary, config = "/usr/local/bin/hearsay", "/home/ann/hearsay.yaml"

func options(f Format) Options {
	return Options{Format: f, Binary: binary, Label: func(name string) string { return strings.ReplaceAll(name, " ", "-") }}
}

func served(f Format) Options {
	opt := options(f)
	opt.Config = config
	return opt
}

// Each folder is a client's file: before, with hearsay in front of each server, and with one entry that serves a hearsay.yaml.
// Taking hearsay out gives the first again, byte for byte.
func TestGolden(t *testing.T) {
	for _, c := range Clients {
		t.Run(c.Name, func(t *testing.T) {
			dir := filepath.Join("testdata", "golden", c.Name)
			before, err := os.ReadFile(filepath.Join(dir, "before"))
			if err != nil {
				t.Fatal(err)
			}
			for name, opt := range map[string]Options{"wrapped": options(c.Format), "served": served(c.Format)} {
				plan, err := Connect(before, opt)
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, name)
				if *update {
					if err := os.WriteFile(path, plan.Data, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(plan.Data, want) {
					t.Errorf("%s: got\n%s\nwant\n%s", name, plan.Data, want)
				}
				undone, err := Undo(plan.Data, [][]byte{before}, options(c.Format))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(undone.Data, before) {
					t.Errorf("%s, taken out again: got\n%s\nwant\n%s", name, undone.Data, before)
				}
			}
		})
	}
}
