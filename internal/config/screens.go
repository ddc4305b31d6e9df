package config

import (
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/seed-4e9f7b04/hearsay/screen"
)

// Screens says what the screens on results, prompts and resources lead to. What is not set is the preset's default.
type Screens struct {
	HiddenText      ScreenMode `yaml:"hidden_text"`      // default: rewrite
	Secrets         ScreenMode `yaml:"secrets"`          // default: rewrite
	OverridePhrases ScreenMode `yaml:"override_phrases"` // default: flag
	RestatesRequest ScreenMode `yaml:"restates_request"` // default: refuse

	// Passthrough names the tools whose results may equal their requests: a whole name, or the beginning of one with * behind.
	Passthrough []string `yaml:"passthrough"`
}

// ScreenMode is one of off, flag, rewrite, refuse, halt.
type ScreenMode screen.Mode

var screenModes = map[string]screen.Mode{
	"off": screen.Off, "flag": screen.Flag, "rewrite": screen.Rewriting, "refuse": screen.Refusing, "halt": screen.Halting,
}

// UnmarshalYAML reads a mode by its name.
func (m *ScreenMode) UnmarshalYAML(node ast.Node) error {
	var name string
	err := yaml.NodeToValue(node, &name)
	mode, ok := screenModes[name]
	if err != nil || !ok {
		return &yaml.SyntaxError{Message: fmt.Sprintf("%s is not a mode of a screen: use off, flag, rewrite, refuse or halt", node), Token: node.GetToken()}
	}
	*m = ScreenMode(mode)
	return nil
}

// UnmarshalYAML reads the section strictly and checks that the screens take it.
func (s *Screens) UnmarshalYAML(node ast.Node) error {
	type plain Screens
	if err := yaml.NodeToValue(node, (*plain)(s), yaml.Strict()); err != nil {
		return err
	}
	if _, err := screen.New(s.Options()); err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	return nil
}

// Options gives the options of the screens.
func (s *Screens) Options() screen.Options {
	if s == nil {
		return screen.Options{}
	}
	return screen.Options{
		HiddenText:      screen.Mode(s.HiddenText),
		Secrets:         screen.Mode(s.Secrets),
		OverridePhrases: screen.Mode(s.OverridePhrases),
		RestatesRequest: screen.Mode(s.RestatesRequest),
		Passthrough:     s.Passthrough,
	}
}
