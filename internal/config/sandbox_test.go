package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

func TestSandboxSection(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	t.Setenv("API_KEY", "from the environment")
	f, err := Parse([]byte(`
sandbox:
  preset: project-rw
  project: ~/work
  state: /var/lib/x
  read: [/opt/tool, ~/.nvm]
  env: {MODE: fast}
  pass_env: [API_KEY, NOT_SET]
  memory: 512MiB
  processes: 100
  weaker: [no-landlock]
`))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := f.Sandbox.Spec()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(spec.Env)
	if spec.Preset != sandbox.ProjectRW || spec.Project != "/home/someone/work" || spec.State != "/var/lib/x" ||
		!slices.Equal(spec.Read, []string{"/opt/tool", "/home/someone/.nvm"}) ||
		!slices.Equal(spec.Env, []string{"API_KEY=from the environment", "MODE=fast"}) ||
		spec.Limits.Memory != 512<<20 || spec.Limits.Processes != 100 || !slices.Equal(spec.Weaker, []sandbox.Weaker{sandbox.NoLandlock}) {
		t.Errorf("the section became %+v", spec)
	}
	var none *Sandbox
	if spec, err := none.Spec(); err != nil || spec.Preset != sandbox.Server || len(spec.Read)+len(spec.Write)+len(spec.Env) != 0 {
		t.Errorf("an absent section became %+v, %v", spec, err)
	}
}

func TestSandboxOffIsADecision(t *testing.T) {
	for _, word := range []string{"off", `"off"`, "false"} {
		f, err := Parse([]byte("sandbox: " + word))
		if err != nil || !f.Sandbox.Off {
			t.Errorf("%s: off %v, error %v", word, f != nil && f.Sandbox != nil && f.Sandbox.Off, err)
			continue
		}
		if _, err := f.Sandbox.Spec(); err == nil {
			t.Errorf("%s: gave a Spec", word)
		}
	}
}

func TestSandboxSectionRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"sandbox: on":                             "the word off",
		"sandbox: true":                           "the word off",
		"sandbox: {presett: server}":              "unknown field",
		"sandbox: {preset: none}":                 "unknown preset",
		"sandbox: {read: [notes]}":                "relative",
		"sandbox: {read: ['']}":                   "empty path",
		"sandbox: {memory: lots}":                 "no size",
		"sandbox: {memory: 99999999999TiB}":       "no size",
		"sandbox: {weaker: [off]}":                "unknown weaker mode",
		"sandbox: {preset: server}\nsandbox: off": "already defined",
	} {
		f, err := Parse([]byte(text))
		if err == nil {
			_, err = f.Sandbox.Spec()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}
