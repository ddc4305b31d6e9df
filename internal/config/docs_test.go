package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
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

// Every key that is read is documented: in docs/configuration.md, or in the page of its room.
func TestTheDocumentsNameEveryKey(t *testing.T) {
	var text string
	for _, name := range []string{"configuration.md", "egress.md", "proxy.md", "sandbox.md"} {
		data, err := os.ReadFile(filepath.Join(repotest.Root(t), "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			for i := range typ.NumField() {
				f := typ.Field(i)
				key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
				if key == "-" || !f.IsExported() {
					continue
				}
				// as code, or as the key of an example
				if key != "" && !strings.Contains(text, "`"+key+"`") && !regexp.MustCompile(`\b`+key+`:`).MatchString(text) && !regexp.MustCompile("`\\{[^`]*\\b"+key+"\\b").MatchString(text) {
					t.Errorf("no document names the key %s of %s", key, typ)
				}
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[File]())
	if len(seen) < 10 {
		t.Errorf("looked at %d types only", len(seen))
	}
}
