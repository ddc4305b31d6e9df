package proxy

import (
	"fmt"
	"testing"
)

// TestNamesGiveWay: a sandbox that asks for more names than there are addresses gets them all, the oldest losing theirs.
func TestNamesGiveWay(t *testing.T) {
	var n Names
	first := n.address("first.test")
	for i := range maxNames - 2 {
		n.address(fmt.Sprintf("n%d.test", i))
	}
	if got := n.name(first); got != "first.test" {
		t.Errorf("%s stands for %q", first, got)
	}
	if got := n.address("one-more.test"); got != first || n.name(first) != "one-more.test" {
		t.Errorf("the next is %s for %q", got, n.name(first))
	}
	if n.address("first.test") == first || len(n.byName) > maxNames || len(n.byAddr) > maxNames {
		t.Errorf("%d names, %d addresses", len(n.byName), len(n.byAddr))
	}
}
