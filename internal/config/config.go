// Package config reads hearsay.yaml strictly and turns it into each room's own options.
//
// [Load] reads a file; the methods of its sections give the options of a room. An unknown or duplicate key is an error
// that shows the line. Nothing is read from the working tree unless it is named on the command line.
//
// # Limits
//
// The file is the operator's word: config checks its form and that each room accepts it, not whether it is wise.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxFile bounds the size of a configuration file: far above any real one, far below what could hurt.
const MaxFile = 4 << 20

// File is hearsay.yaml as written. The zero value is the strict default: no servers, no outward host, everything asks.
type File struct {
	// Path is where the file was read from, for messages; "" for the embedded defaults.
	Path string `yaml:"-"`

	Servers   map[string]*Server `yaml:"servers"`
	Serve     *Serve             `yaml:"serve"`
	Approvals *Approvals         `yaml:"approvals"`
	Audit     *Audit             `yaml:"audit"`
	Egress    *Egress            `yaml:"egress"`
	Pins      *Pins              `yaml:"pins"`
	Sandbox   *Sandbox           `yaml:"sandbox"`
	Screens   *Screens           `yaml:"screens"`

	Credentials []Credential `yaml:"credentials"`
	Proxy       *Proxy       `yaml:"proxy"`

	Permissions *Permissions `yaml:"permissions"`
	Rules       []Rule       `yaml:"rules"`
	Tools       Tools        `yaml:"tools"`
	Store       *Store       `yaml:"store"`
	UserKeyFile string       `yaml:"user_key_file"`
	Profile     `yaml:",inline"`
	Profiles    map[string]Profile `yaml:"profiles"`
}

// Load reads and checks the file at path.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, MaxFile)
	}
	file, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file.Path = path
	return file, nil
}

// Parse reads a configuration from memory. Its errors show the line that is wrong.
func Parse(data []byte) (*File, error) {
	var file File
	err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict())
	if err != nil && !errors.Is(err, io.EOF) { // an empty file is the default
		return nil, errors.New(yaml.FormatError(err, false, true))
	}
	if !oneDocument(data) {
		return nil, errors.New("a second document follows after --- or ..., which would not be read; the file is one document")
	}
	for _, name := range file.ServerNames() {
		if file.Servers[name] == nil {
			return nil, fmt.Errorf("servers: %s: nothing stands below it; a server needs a command or a url", name)
		}
	}
	if err := nothingEmpty(data); err != nil {
		return nil, err
	}
	if file.Audit != nil && file.Audit.File == "" {
		return nil, errors.New("audit: it names no file, so nothing would be recorded")
	}
	if err := file.resolve(); err != nil {
		return nil, err
	}
	return &file, nil
}

// mayNotBeEmpty are the keys that protect less when nothing stands behind them: no record, nothing withheld, an allow rule that
// always holds; and oauth, where {} says yes. An empty key elsewhere is an absent one, which is the strict choice.
var mayNotBeEmpty = []string{"audit", "pins", "lock", "when", "oauth"}

// nothingEmpty refuses such a key, and an item of a list, with nothing behind it.
func nothingEmpty(data []byte) error {
	tree, err := parser.ParseBytes(data, 0)
	if err != nil || len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return err
	}
	return filled(tree.Docs[0].Body, "")
}

func filled(node ast.Node, key string) error {
	switch n := node.(type) {
	case *ast.NullNode:
		if !strings.HasPrefix(key, "an item of ") && !slices.Contains(mayNotBeEmpty, key) {
			return nil
		}
		return fmt.Errorf("line %d: %s is empty; fill it in or leave it out", n.GetToken().Position.Line, key)
	case *ast.MappingNode:
		for _, m := range n.Values {
			if err := filled(m, key); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		if name := n.Key.String(); name != "args" { // the arguments of a test are values of a tool, null among them
			return filled(n.Value, name)
		}
	case *ast.SequenceNode:
		for _, item := range n.Values {
			if err := filled(item, "an item of "+key); err != nil {
				return err
			}
		}
	case *ast.AnchorNode:
		return filled(n.Value, key)
	case *ast.TagNode:
		return filled(n.Value, key)
	}
	return nil
}

// oneDocument reports whether data is a single YAML document. Of several only the first is read, without a word: what another one
// denies would not hold. The tokens are asked because the parser drops a document behind an empty one.
func oneDocument(data []byte) bool {
	begun, ended := false, false
	for _, t := range lexer.Tokenize(string(data)) {
		switch {
		case t.Type == token.CommentType:
		case ended, t.Type == token.DocumentHeaderType && begun:
			return false
		case t.Type == token.DocumentEndType:
			ended = true
		default:
			begun = true
		}
	}
	return true
}
