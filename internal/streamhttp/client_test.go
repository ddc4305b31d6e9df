package streamhttp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
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

// Many a server routes POST only, and says 404 to the GET for the stream it does not have.
func TestAServerWithoutAListeningStream(t *testing.T) {
	asked := make(chan bool, 8)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			asked <- true
		case strings.Contains(string(body), `"id"`):
			w.Header().Set(headerSession, "s")
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer srv.Close()
	c, err := NewClient(ClientOptions{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(method string) {
		t.Helper()
		m, err := jsonrpc.DecodeText(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{}}`, strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if answer, err := c.Read(t.Context()); err != nil || answer.Error.Kind() != strictjson.KindAbsent {
			t.Errorf("%s: %v %v", method, answer, err)
		}
	}
	ask("initialize")
	if err := c.Write(t.Context(), jsonrpc.Message{Kind: jsonrpc.Notification, Method: "notifications/initialized"}); err != nil {
		t.Fatal(err)
	}
	<-asked
	for range 20 {
		ask("tools/list")
	}
}
