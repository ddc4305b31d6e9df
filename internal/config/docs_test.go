package config

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every configuration that the documents show is one that hearsay reads, and its rules compile.
func TestTheDocumentsShowFilesThatLoad(t *testing.T) {
	root := repotest.Root(t)
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, path := range append(docs, filepath.Join(root, "README.md")) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range yamlBlock.FindAllSubmatch(data, -1) {
			shown++
			file, err := Parse(block[1])
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(path), err)
				continue
			}
			if len(file.Servers) > 0 {
				if _, err := file.GatewayServers(); err != nil {
					t.Errorf("%s: %v", filepath.Base(path), err)
				}
			}
			in := GateInput{Sandboxed: file.Sandboxed()}
			if len(file.Servers) > 0 {
				in.Servers = file.ServerNames()
			}
			spec, _, err := file.Gate("", in)
			if err == nil {
				_, err = gate.Compile(spec)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", filepath.Base(path), err, block[1])
			}
		}
	}
	if shown < 3 {
		t.Errorf("only %d configurations are shown", shown)
	}
}
