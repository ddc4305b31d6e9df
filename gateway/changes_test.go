package gateway

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// What a server says of changes is bounded in bytes too, and what was told frees its place.
func TestLargeChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &changes{told: map[string]*change{}}
		told := 0
		tell := func(key string, size int) bool { return c.tell(key, size, func() { told++ }) }
		if !tell("a", maxChanged) || !tell("b", 1) || told != 2 {
			t.Errorf("what is told at once needs no place: %d", told)
		}
		if !tell("a", maxChanged-2) || tell("b", 1) || tell(strings.Repeat("c", 2), 1) {
			t.Error("the bound of what waits")
		}
		if !tell("a", 1) || !tell("b", 1) {
			t.Error("a smaller one in its place")
		}
		time.Sleep(3 * changeGap)
		synctest.Wait()
		if told != 4 || c.kept != 0 || len(c.told) != 0 {
			t.Errorf("afterwards: %d told, %d bytes of %d kept", told, c.kept, len(c.told))
		}
	})
}

func TestLargeChangesBeforeTheAcknowledgement(t *testing.T) {
	n := newListen(strictjson.Object())
	m := jsonrpc.Message{Method: "notifications/tasks", Params: strictjson.Object(strictjson.Member{Name: "x", Value: strictjson.String(strings.Repeat("x", maxChanged/4))})}
	for range 8 {
		n.deliver(m, func() {})
	}
	if len(n.held) != 3 {
		t.Errorf("%d messages of a quarter of the bound are held", len(n.held))
	}
}
