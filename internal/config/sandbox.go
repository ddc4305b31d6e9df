package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// Sandbox says what a command or a server sees and may use. The zero value is the strictest: the system read-only, an empty
// home, nothing kept. `sandbox: off` runs without one.
type Sandbox struct {
	// Off is the operator's decision to run without a sandbox: the whole section is the word off.
	Off bool `yaml:"-"`

	Preset  string            `yaml:"preset"` // server (default), project-ro, project-rw
	Project string            `yaml:"project"`
	State   string            `yaml:"state"`
	Read    []string          `yaml:"read"`
	Write   []string          `yaml:"write"`
	Hide    []string          `yaml:"hide"`
	Env     map[string]string `yaml:"env"`
	PassEnv []string          `yaml:"pass_env"` // names of variables to take from the environment of hearsay

	Memory    string   `yaml:"memory"` // such as 512MiB
	Scratch   string   `yaml:"scratch"`
	Processes uint64   `yaml:"processes"`
	Files     uint64   `yaml:"files"`
	Weaker    []string `yaml:"weaker"`
}

// UnmarshalYAML also reads the word off, which YAML may take for a boolean.
func (s *Sandbox) UnmarshalYAML(unmarshal func(any) error) error {
	var word any
	if err := unmarshal(&word); err == nil {
		switch word {
		case "off", false:
			*s = Sandbox{Off: true}
			return nil
		}
		if _, isMap := word.(map[string]any); !isMap && word != nil {
			return errors.New("sandbox is the word off, or a section with preset, project, state, read, write, hide, env, pass_env, memory, scratch, processes, files, weaker")
		}
	}
	type plain Sandbox
	return unmarshal((*plain)(s))
}

// Spec turns the section of a file that was parsed into a Spec without a command. A nil section is the default.
func (s *Sandbox) Spec() (sandbox.Spec, error) {
	var spec sandbox.Spec
	if s == nil {
		return spec, nil
	}
	if s.Off {
		return spec, errors.New("sandbox: off, and a sandbox was asked for")
	}
	var err error
	fail := func(what string, err error) (sandbox.Spec, error) {
		return sandbox.Spec{}, fmt.Errorf("sandbox: %s: %w", what, err)
	}
	if s.Preset != "" {
		if spec.Preset, err = sandbox.ParsePreset(s.Preset); err != nil {
			return fail("preset", err)
		}
	}
	spec.Project, spec.State = s.Project, s.State
	for _, l := range []struct {
		name string
		from []string
		to   *[]string
	}{{"read", s.Read, &spec.Read}, {"write", s.Write, &spec.Write}, {"hide", s.Hide, &spec.Hide}} {
		if slices.Contains(l.from, "") {
			return fail(l.name, errors.New("an empty path"))
		}
		*l.to = slices.Clone(l.from)
	}
	for _, name := range s.PassEnv {
		if value, ok := os.LookupEnv(name); ok {
			spec.Env = append(spec.Env, name+"="+value)
		}
	}
	for name, value := range s.Env {
		spec.Env = append(spec.Env, name+"="+value)
	}
	if spec.Limits.Memory, err = ParseSize(s.Memory); err != nil {
		return fail("memory", err)
	}
	if spec.Limits.Scratch, err = ParseSize(s.Scratch); err != nil {
		return fail("scratch", err)
	}
	spec.Limits.Processes, spec.Limits.Files = s.Processes, s.Files
	for _, name := range s.Weaker {
		w, err := sandbox.ParseWeaker(name)
		if err != nil {
			return fail("weaker", err)
		}
		spec.Weaker = append(spec.Weaker, w)
	}
	return spec, nil
}

// ParseSize reads a number of bytes such as 1048576, 512MiB or 2GiB; "" is 0.
func ParseSize(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	digits, shift := s, 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if d, ok := strings.CutSuffix(s, unit); ok {
			digits, shift = strings.TrimSpace(d), 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n == 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q is no size; write bytes or a number with KiB, MiB, GiB or TiB", s)
	}
	return n << shift, nil
}
