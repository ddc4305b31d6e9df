package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
	"github.com/seed-4e9f7b04/hearsay/internal/streamhttp"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// httpStep is one answer of a hostile server over HTTP. $ID stands for the id of the request that is answered.
type httpStep struct {
	Status  int
	Headers map[string]string
	Body    string
}

// TestHostileHTTP plays the transcripts that only exist over HTTP: each answer takes the place of one tool call's. The client gets
// an answer or an error in our own words to each, nobody is led elsewhere, and the session lives.
func TestHostileHTTP(t *testing.T) {
	files, err := filepath.Glob("testdata/hostile-http/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("own transcripts: %v, %v", files, err)
	}
	for _, path := range files {
		playHTTP(t, path)
	}
}

func TestSharedHostileHTTP(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repotest.Shared(t, "mcp-hostile"), "e1*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("shared transcripts: %v, %v", files, err)
	}
	for _, path := range files {
		playHTTP(t, path)
	}
}

func playHTTP(t *testing.T, path string) {
	h, steps, err := readTranscript(path)
	if err != nil {
		t.Fatal(err)
	}
	var played []httpStep
	for _, s := range steps {
		if s["http"] != nil {
			var step httpStep
			if err := json.Unmarshal(s["http"], &step); err != nil {
				t.Fatal(err)
			}
			played = append(played, step)
		}
	}
	if len(played) == 0 {
		return // a transcript for standard input and output
	}
	for i, step := range played {
		t.Run(fmt.Sprintf("%s/%d", h.Case, i), func(t *testing.T) {
			var led atomic.Int64
			elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				led.Add(1)
				fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"from elsewhere"}]}}`)
			}))
			t.Cleanup(elsewhere.Close)
			var done, cookies atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Cookie") != "" {
					cookies.Add(1)
				}
				if r.Method != http.MethodPost {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				var m message
				if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == nil {
					w.WriteHeader(http.StatusAccepted)
					return
				}
				if m.Method == "tools/call" && done.Add(1) == 1 {
					for name, value := range step.Headers {
						w.Header().Set(name, strings.NewReplacer("http://169.254.169.254", elsewhere.URL, "$ELSEWHERE", elsewhere.URL).Replace(value))
					}
					w.WriteHeader(step.Status)
					fmt.Fprint(w, strings.ReplaceAll(step.Body, "$ID", string(m.ID)))
					return
				}
				w.Header().Set("Content-Type", "application/json")
				p := player{out: w, header: h}
				p.harmless(m)
			}))
			t.Cleanup(server.Close)
			peer := clientOf(t, Options{Servers: []Server{{Source: Source{Server: "srv"}, URL: server.URL, Connect: func(context.Context) (jsonrpc.Transport, error) {
				return streamhttp.NewClient(streamhttp.ClientOptions{URL: server.URL})
			}}}})
			call, err := peer.Open(nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := call.Do(t.Context(), "tools/call", parse(t, `{"name":"t"}`))
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			whole := strictjson.Object(strictjson.Member{Name: "result", Value: m.Result}, strictjson.Member{Name: "error", Value: m.Error})
			if live := liveTokens(whole); len(live) > 0 {
				t.Errorf("live token: %q", live)
			}
			text := string(whole.Append(nil))
			t.Logf("%.300s", text)
			for _, word := range append(h.Forbid, "obey", "169.254", elsewhere.URL, "from elsewhere") {
				if strings.Contains(text, word) {
					t.Errorf("the client got %q: %s", word, text)
				}
			}
			if again := callTool(t, peer, "t"); !strings.Contains(again, "default") {
				t.Errorf("the call after it: %q", again)
			}
			if led.Load() > 0 || cookies.Load() > 0 {
				t.Errorf("led elsewhere %d times, cookies sent back %d times", led.Load(), cookies.Load())
			}
		})
	}
}
