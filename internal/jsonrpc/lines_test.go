package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// transcript reads all of in and tells what came, one line each.
func transcript(t *testing.T, in string, opt LineOptions) (string, *Stats) {
	t.Helper()
	stats := new(Stats)
	opt.Stats = stats
	var got strings.Builder
	opt.Noise = func(line string) { fmt.Fprintf(&got, "noise %q\n", line) }
	l := NewLines(io.NopCloser(strings.NewReader(in)), nopCloser{io.Discard}, opt)
	defer l.Close()
	for {
		m, err := l.Read(t.Context())
		var bad *BadMessage
		switch {
		case err == io.EOF:
			return got.String(), stats
		case errors.As(err, &bad):
			var ids []string
			for _, id := range bad.IDs {
				ids = append(ids, id.Key())
			}
			fmt.Fprintf(&got, "bad id=%s request=%v\n", strings.Join(ids, ","), bad.Request)
		case err != nil:
			t.Fatal(err)
		default:
			fmt.Fprintf(&got, "%d %s %s\n", m.Kind, m.ID.Key(), m.Method)
		}
	}
}

func TestLinesRead(t *testing.T) {
	ping := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }
	tests := []struct {
		name, in, want string
		opt            LineOptions
	}{
		{"LF, CRLF, blank lines, white space", ping("1") + "\n" + ping("2") + "\r\n\r\n  \t" + ping("3") + " \n\n", "1 1 ping\n1 2 ping\n1 3 ping\n", LineOptions{}},
		{"a last line without end", ping("1") + "\n" + ping("2"), "1 1 ping\n1 2 ping\n", LineOptions{}},
		{"half a last line", ping("1") + "\n" + ping("2")[:24], "1 1 ping\n", LineOptions{}},
		{"noise", "Server \x1b[32mready\n\xEF\xBB\xBF" + ping("1") + "\n" + ping("2") + "\n", "noise \"Server \\x1b[32mready\"\nnoise \"\\ufeff{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"method\\\":\\\"ping\\\"}\"\n1 2 ping\n", LineOptions{}},
		{"two messages on a line", ping("1") + ping("2") + "\n" + ping("3") + "\n", "bad id=1,2 request=true\n1 3 ping\n", LineOptions{}},
		{"an answer behind a notification", `{"jsonrpc":"2.0","method":"n"}{"jsonrpc":"2.0","id":9,"result":{}}` + "\n", "bad id=9 request=false\n", LineOptions{}},
		{"a name twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}` + "\n" + ping("3") + "\n", "bad id=1 request=true\n1 3 ping\n", LineOptions{}},
		{"an id twice", `{"jsonrpc":"2.0","id":1,"id":2,"result":{}}` + "\n", "bad id=1,2 request=false\n", LineOptions{}},
		{"NaN in an answer", `{"jsonrpc":"2.0","id":7,"result":{"a":NaN}}` + "\n", "bad id=7 request=false\n", LineOptions{}},
		{"an inner id is not the id", `{"result":{"id":5,"a":NaN},"jsonrpc":"2.0","id":"x"}` + "\n", "bad id=\"x request=false\n", LineOptions{}},
		{"an inner id at the end is not the id", `{"jsonrpc":"2.0","result":[NaN,{"id":5}]}` + "\n", "bad id= request=false\n", LineOptions{}},
		{"no version", `{"id":4,"result":{}}` + "\n", "bad id= request=false\n", LineOptions{}},
		{"a batch", "[" + ping("1") + `,{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":2,"result":{}}]` + "\n", "1 1 ping\n2  n\n3 2 \n", LineOptions{}},
		{"an empty batch", "[]\n", "bad id= request=false\n", LineOptions{}},
		{"a batch with a bad message", "[" + ping("1") + ",{}]\n", "bad id= request=false\n", LineOptions{}},
		{"a batch in a batch", "[[" + ping("1") + "]]\n", "bad id= request=false\n", LineOptions{}},
		{"a batch too long", "[" + strings.Repeat(ping("1")+",", 100) + ping("1") + "]\n", "bad id= request=false\n", LineOptions{}},
		{"too long, id first", `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 200<<10) + "\"}\n" + ping("2") + "\n", "bad id=1 request=false\n1 2 ping\n", LineOptions{JSON: strictjson.Limits{MaxBytes: 100 << 10}}},
		{"too long, id last", `{"result":"` + strings.Repeat("x", 200<<10) + `","jsonrpc":"2.0","id":1}` + "\r\n" + ping("2") + "\n", "bad id=1 request=false\n1 2 ping\n", LineOptions{JSON: strictjson.Limits{MaxBytes: 100 << 10}}},
		{"too long and endless", strings.Repeat("[", 200<<10), "bad id= request=false\n", LineOptions{JSON: strictjson.Limits{MaxBytes: 100 << 10}}},
		{"just within the bound", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 100<<10-36) + "\"}\r\n", "1 1 " + strings.Repeat("x", 100<<10-36) + "\n", LineOptions{JSON: strictjson.Limits{MaxBytes: 100 << 10}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := transcript(t, tt.in, tt.opt)
			if got != tt.want {
				t.Errorf("got\n%.600s\nwant\n%.600s", got, tt.want)
			}
		})
	}
}

func TestLinesCount(t *testing.T) {
	_, stats := transcript(t, "noise\n{]\n{}\n"+strings.Repeat("{", 5000)+"\n", LineOptions{JSON: strictjson.Limits{MaxBytes: 4000}})
	if n, b, l := stats.Noise.Load(), stats.Bad.Load(), stats.TooLarge.Load(); n != 1 || b != 3 || l != 1 {
		t.Errorf("noise %d, bad %d, too large %d; want 1, 3, 1", n, b, l)
	}
}

func TestLinesWriteKeepsOrderAndWaitsForTheReader(t *testing.T) {
	r, w := io.Pipe()
	l := NewLines(io.NopCloser(strings.NewReader("")), w, LineOptions{})
	big := strictjson.String(strings.Repeat("x", maxQueueSize/4))
	wrote := make(chan int, 1)
	go func() {
		n := 0
		defer func() { wrote <- n }()
		for i := range 12 {
			if l.Write(t.Context(), Message{Kind: Notification, Method: fmt.Sprint("n", i), Params: strictjson.Array(big)}) == nil {
				n++
			}
		}
	}()
	other := NewLines(r, nopCloser{io.Discard}, LineOptions{})
	for i := range 12 {
		m, err := other.Read(t.Context())
		if err != nil || m.Method != fmt.Sprint("n", i) {
			t.Fatalf("message %d: %s, %v", i, m.Method, err)
		}
	}
	if n := <-wrote; n != 12 {
		t.Errorf("%d of 12 messages were taken", n)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Write(t.Context(), Message{Kind: Notification, Method: "late"}); !errors.Is(err, ErrClosed) {
		t.Errorf("writing after Close: %v", err)
	}
}

func TestLinesWriteEndsWithItsContext(t *testing.T) {
	r, w := io.Pipe() // nobody reads
	l := NewLines(io.NopCloser(strings.NewReader("")), w, LineOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var err error
	for range 3 * maxQueue { // one that is being written, with those taken beside it, and a full queue
		if err = l.Write(ctx, Message{Kind: Notification, Method: "n"}); err != nil {
			break
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a full queue gave %v", err)
	}
	r.Close()
	l.Close()
}

func TestLinesGiveUp(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	l := NewLines(in, w, LineOptions{GiveUp: 20 * time.Millisecond})
	defer l.Close()
	text := strictjson.Array(strictjson.String(strings.Repeat("x", 1<<20)))
	for err == nil { // the pipe takes some, nobody reads it
		err = l.Write(t.Context(), Message{Kind: Notification, Method: "n", Params: text})
	}
	if !errors.Is(err, ErrStuck) || !errors.Is(err, ErrClosed) {
		t.Errorf("writing: %v", err)
	}
	if _, err := l.Read(t.Context()); err == nil {
		t.Error("reading goes on after the other side was given up")
	}
}

func TestLinesManyWriters(t *testing.T) {
	r, w := io.Pipe()
	l := NewLines(io.NopCloser(strings.NewReader("")), w, LineOptions{})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for j := range 20 {
				if err := l.Write(t.Context(), Message{Kind: Notification, Method: fmt.Sprint(i, "/", j)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	other := NewLines(r, nopCloser{io.Discard}, LineOptions{})
	seen := map[string]bool{}
	for range 1000 {
		m, err := other.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen[m.Method] = true
	}
	all.Wait()
	if len(seen) != 1000 {
		t.Errorf("%d different messages of 1000", len(seen))
	}
	l.Close()
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n\n[{}]\nnoise\n{\"id\":\"\\"))
	f.Add([]byte(`{"result":{"id":5,"a":NaN},"jsonrpc":"2.0","id":"x"}`))
	f.Add([]byte(strings.Repeat("{\"a\":", 1000) + "\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := NewLines(io.NopCloser(strings.NewReader(string(data))), nopCloser{io.Discard}, LineOptions{JSON: strictjson.Limits{MaxBytes: 200}})
		defer l.Close()
		for range len(data) + 2 {
			m, err := l.Read(context.Background())
			if bad := (*BadMessage)(nil); errors.As(err, &bad) {
				continue
			}
			if err != nil { // the end, or what ends the connection
				return
			}
			again, err := Decode(parse(t, string(m.Append(nil))))
			if err != nil || again.Kind != m.Kind || again.ID.Key() != m.ID.Key() || again.Method != m.Method {
				t.Fatalf("%s read again as %v, %v", m.Append(nil), again, err)
			}
		}
		t.Fatal("reading does not end")
	})
}

// Whoever waits for an answer that is too long is told when that is known, not when the line ends.
func TestALineTooLongIsReportedBeforeItsEnd(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	go func() {
		io.WriteString(out, `{"jsonrpc":"2.0","id":2,"result":"`+strings.Repeat("x", 200<<10))
		<-t.Context().Done()
	}()
	l := NewLines(in, nopCloser{io.Discard}, LineOptions{JSON: strictjson.Limits{MaxBytes: 100 << 10}})
	defer l.Close()
	var bad *BadMessage
	if _, err := l.Read(t.Context()); !errors.As(err, &bad) || len(bad.IDs) != 1 || bad.IDs[0].Key() != "2" {
		t.Errorf("%v", err)
	}
	go io.WriteString(out, "yyy\"}\n"+`{"jsonrpc":"2.0","id":3,"result":{}}`+"\n")
	if m, err := l.Read(t.Context()); err != nil || m.ID.Key() != "3" {
		t.Errorf("%v, %v", m, err)
	}
}

func TestALineWithoutEndEndsTheConnection(t *testing.T) {
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	in := ping + `{"jsonrpc":"2.0","id":2,"result":"` + strings.Repeat("x", 500<<10) + "\"}\n" + ping
	l := NewLines(io.NopCloser(strings.NewReader(in)), nopCloser{io.Discard}, LineOptions{JSON: strictjson.Limits{MaxBytes: 100 << 10}})
	defer l.Close()
	if m, err := l.Read(t.Context()); err != nil || m.Method != "ping" {
		t.Fatal(m, err)
	}
	var bad *BadMessage
	if _, err := l.Read(t.Context()); !errors.As(err, &bad) || bad.IDs[0].Key() != "2" {
		t.Errorf("%v", err)
	}
	for range 2 {
		if m, err := l.Read(t.Context()); !errors.Is(err, ErrEndless) {
			t.Errorf("%v, %v", m, err)
		}
	}
}
