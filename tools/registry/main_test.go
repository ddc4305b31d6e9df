package main

import (
	"bytes"
	"os"
	"testing"
)

func TestTableIsCurrent(t *testing.T) {
	made, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	stands, err := os.ReadFile("../../egress/registry.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, stands) {
		t.Error("egress/registry.go is stale: run go generate ./egress")
	}
}
