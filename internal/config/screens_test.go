package config

import (
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/screen"
)

func TestScreensSection(t *testing.T) {
	f, err := Parse([]byte("screens:\n  hidden_text: refuse\n  secrets: \"off\"\n  override_phrases: 'halt'\n  passthrough: [util__echo, lang__*]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := f.Screens.Options()
	if got.HiddenText != screen.Refusing || got.Secrets != screen.Off || got.OverridePhrases != screen.Halting || got.RestatesRequest != screen.Default ||
		strings.Join(got.Passthrough, " ") != "util__echo lang__*" {
		t.Errorf("%+v", got)
	}
	if _, err := screen.New(got); err != nil {
		t.Error(err)
	}
	if got := (*Screens)(nil).Options(); got.HiddenText != screen.Default || got.Passthrough != nil {
		t.Errorf("without the section: %+v", got)
	}
	for bad, want := range map[string]string{
		"screens:\n  hidden_text: remove\n":       "use off, flag, rewrite, refuse or halt",
		"screens:\n  hidden_txt: flag\n":          "hidden_txt",
		"screens:\n  secrets: true\n":             "use off, flag",
		"screens:\n  passthrough: [a*b]\n":        "with * behind",
		"screens:\n  override_phrases: rewrite\n": "nothing to rewrite",
	} {
		if _, err := Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
