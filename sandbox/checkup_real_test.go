//go:build real && linux && (amd64 || arm64)

package sandbox

import "testing"

func TestExamine(t *testing.T) {
	c, err := Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range c.Checks {
		if !k.OK {
			t.Errorf("must %s: %s: %s", k.Must, k.Name, k.Answer)
		}
	}
	if !c.OK() || len(c.Checks) != 18 {
		t.Errorf("%d checks, OK %v", len(c.Checks), c.OK())
	}
	if (Checkup{}).OK() {
		t.Error("a checkup without checks is fine")
	}
}
