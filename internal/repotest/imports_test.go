package repotest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/seed-4e9f7b04/hearsay"

// imports is the table of DESIGN.md section 1: what each package of the product may import of ours. A package that is not
// here fails the test, as does an import that is not listed. Changing it is a decision: change DESIGN.md in the same commit.
var imports = map[string][]string{
	"envelope":            {},
	"screen":              {"envelope"},
	"gate":                {},
	"egress":              {},
	"audit":               {"internal/atomicfile"},
	"internal/strictjson": {},
	"internal/atomicfile": {},
	"internal/connect":    {"internal/atomicfile"},
	"internal/repotest":   {},
	"sandbox":             {},
	"internal/approve":    {"audit", "internal/atomicfile"},
	"internal/broker":     {"egress"},
	"internal/oauth":      {"egress", "internal/atomicfile", "internal/broker", "internal/strictjson"},
	"egress/proxy":        {"egress", "audit", "internal/broker"},
	"internal/jsonrpc":    {"internal/strictjson"},
	"internal/streamhttp": {"internal/strictjson", "internal/jsonrpc"},
	"internal/era":        {"internal/strictjson", "internal/jsonrpc"},
	"gateway":             {"envelope", "screen", "gate", "audit", "internal/atomicfile", "internal/strictjson", "internal/approve", "internal/jsonrpc", "internal/era"},
	"replay":              {"envelope", "screen", "gate", "gateway", "internal/approve", "internal/jsonrpc"},
	"internal/config":     {"*"}, // all but replay and cmd
	"cmd/hearsay":         {"*"},
}

// pure packages touch no network, start no process and use no unsafe memory.
var pure = []string{"envelope", "screen", "gate", "audit", "internal/strictjson"}

var impure = []string{"net", "net/http", "os/exec", "unsafe", "C"}

func TestImportsPointDown(t *testing.T) {
	root := Root(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if strings.HasPrefix(pkg, "examples/") || strings.HasPrefix(pkg, "tools/") || strings.HasPrefix(pkg, "internal/realtest") {
			return nil
		}
		allowed, known := imports[pkg]
		if !known {
			t.Errorf("%s: package %s is not in the import table", rel, pkg)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if slices.Contains(pure, pkg) && slices.Contains(impure, imp) {
				t.Errorf("%s: %s is pure and must not import %s", rel, pkg, imp)
			}
			ours, ok := strings.CutPrefix(imp, module+"/")
			if !ok {
				continue
			}
			switch {
			case ours == "cmd/hearsay", ours == "internal/repotest":
				t.Errorf("%s: imports %s", rel, ours)
			case pkg == "internal/config" && ours == "replay":
				t.Errorf("%s: config must not import replay", rel)
			case !slices.Contains(allowed, "*") && !slices.Contains(allowed, ours):
				t.Errorf("%s: package %s must not import %s", rel, pkg, ours)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
