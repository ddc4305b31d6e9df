package main

import (
	"slices"
	"testing"
)

func TestTransparentPorts(t *testing.T) {
	got := transparentPorts([]string{"a.test", "a.test:8443", "*.b.test:22", "[2001:db8::1]:993", "2001:db8::1", "10.0.0.0/8:5432", "c.test:*", "c.test:0", "c.test:99999",
		"GET http://d.test:8080/x", "e.test:8443", "f.test:3128", ":25"})
	if want := []uint16{22, 993, 5432, 8443}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
