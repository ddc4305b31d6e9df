package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPins(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "hearsay.lock")
	file := func(section string) *File {
		f, err := Parse([]byte(section))
		if err != nil {
			t.Fatal(err)
		}
		f.Path = filepath.Join(dir, "hearsay.yaml")
		return f
	}
	if p, err := file("mode: grounded").GatewayPins(); err != nil || p.Lock != nil || p.AllowNew || p.AllowDrift {
		t.Errorf("no section: %+v, %v", p, err)
	}
	if _, err := file("pins: {lock: hearsay.lock}").GatewayPins(); err == nil || !strings.Contains(err.Error(), "hearsay pin writes") {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(lock, []byte(`{"hearsay.lock":1,"servers":{"a":{"launch":["x"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := file("pins: {lock: hearsay.lock, new: show, drift: show}").GatewayPins(); err != nil || p.Lock.Servers["a"] == nil || !p.AllowNew || !p.AllowDrift {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := file("pins: {new: maybe}").GatewayPins(); err == nil {
		t.Error("an unknown choice")
	}
	if err := os.WriteFile(lock, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := file("pins: {lock: hearsay.lock}").GatewayPins(); err == nil {
		t.Error("a broken file")
	}
}
