package streamhttp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

// A caller that will not wait gives a context that has ended: what there is room for must go out all the same.
func TestWhatNeedNotWaitIsSent(t *testing.T) {
	const notes = 200
	got := make(chan string, notes)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer srv.Close()
	c, err := NewClient(ClientOptions{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range notes {
		if err := c.Write(ended, jsonrpc.Message{Kind: jsonrpc.Notification, Method: "notifications/roots/list_changed"}); err != nil {
			t.Fatal(err)
		}
	}
	for range notes {
		if body := <-got; !strings.Contains(body, "roots") {
			t.Errorf("the server got %s", body)
		}
	}
}
