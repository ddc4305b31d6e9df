package era

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// wire is the bridge's end of a connection whose other end the test plays.
type wire struct {
	mu   sync.Mutex
	sent []jsonrpc.Message // by the bridge
	in   chan queued
	full chan struct{} // the other side reads nothing while this is open; nil = it reads
}

func (w *wire) Read(context.Context) (jsonrpc.Message, error) {
	q, ok := <-w.in
	if !ok {
		return jsonrpc.Message{}, io.EOF
	}
	return q.m, q.err
}

func (w *wire) Write(ctx context.Context, m jsonrpc.Message) error {
	if w.full != nil {
		select {
		case <-w.full: // what is written although ctx has ended need not wait
		default:
			select {
			case <-w.full:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, m)
	return nil
}

func (w *wire) Close() error { return nil }

// rig is a bridge between a client and a server that the test plays. It runs in a bubble, so that nothing waits for real time.
type rig struct {
	t testing.TB
	b *Bridge
	w *wire

	mu   sync.Mutex
	hold chan struct{}     // the client reads nothing more while this is open; nil = it reads
	got  []jsonrpc.Message // by the client
	bad  []*jsonrpc.BadMessage
}

// inBubble runs a test with a bridge.
func inBubble(t *testing.T, mem *Memory, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, mem)
		defer synctest.Wait()
		defer close(r.w.in)
		test(r)
	})
}

func newRig(t testing.TB, mem *Memory) *rig {
	w := &wire{in: make(chan queued, 100)}
	r := &rig{t: t, w: w, b: New(w, mem)}
	go func() {
		for {
			m, err := r.b.Read(context.Background())
			r.mu.Lock()
			if hold := r.hold; hold != nil {
				r.mu.Unlock()
				<-hold
				r.mu.Lock()
			}
			switch bad := unread(err); {
			case bad != nil:
				r.bad = append(r.bad, bad)
			case err != nil:
				r.mu.Unlock()
				return
			default:
				r.got = append(r.got, m)
			}
			r.mu.Unlock()
		}
	}()
	return r
}

func message(t testing.TB, text string) jsonrpc.Message {
	t.Helper()
	v, err := strictjson.ParseString(strings.Replace(text, "{", `{"jsonrpc":"2.0",`, 1), strictjson.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	m, err := jsonrpc.Decode(v)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// client writes messages of the client, without waiting for each.
func (r *rig) client(messages ...string) {
	r.t.Helper()
	for _, text := range messages {
		m := message(r.t, text)
		go r.b.Write(context.Background(), m)
		synctest.Wait()
	}
}

// server writes messages of the server.
func (r *rig) server(messages ...string) {
	r.t.Helper()
	for _, text := range messages {
		r.w.in <- queued{m: message(r.t, text)}
		synctest.Wait()
	}
}

// on is [rig.server] for a message that came on the stream of a request.
func (r *rig) on(id, text string) {
	r.t.Helper()
	m := message(r.t, text)
	m.On, _ = jsonrpc.NewID(parsed(r.t, id))
	r.w.in <- queued{m: m}
	synctest.Wait()
}

func parsed(t testing.TB, text string) strictjson.Value {
	t.Helper()
	v, err := strictjson.ParseString(text, strictjson.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// atServer takes what the server got since the last time.
func (r *rig) atServer() []jsonrpc.Message {
	synctest.Wait()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	sent := r.w.sent
	r.w.sent = nil
	return sent
}

// atClient takes what the client got since the last time.
func (r *rig) atClient() []jsonrpc.Message {
	time.Sleep(gatherFor)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// one checks that exactly one message came, and how it is written; ID stands for an id of the bridge's own.
func one(t testing.TB, messages []jsonrpc.Message, want string) jsonrpc.Message {
	t.Helper()
	if len(messages) != 1 {
		t.Fatalf("%d messages instead of one: %s\nwant %s", len(messages), written(messages), want)
	}
	return same(t, messages[0], want)
}

func same(t testing.TB, m jsonrpc.Message, want string) jsonrpc.Message {
	t.Helper()
	got := string(m.Append(nil))
	if id := string(m.ID.Value().Append(nil)); strings.Contains(want, "ID") {
		want = strings.ReplaceAll(want, "ID", id)
	}
	if want = strings.Replace(want, "{", `{"jsonrpc":"2.0",`, 1); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	return m
}

func written(messages []jsonrpc.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.Write(m.Append(nil))
		b.WriteByte('\n')
	}
	return b.String()
}

// id writes the id of a message.
func id(m jsonrpc.Message) string { return string(m.ID.Value().Append(nil)) }

// none checks that nothing came.
func none(t testing.TB, where string, messages []jsonrpc.Message) {
	t.Helper()
	if len(messages) > 0 {
		t.Fatalf("%s got %s", where, written(messages))
	}
}

const (
	meta   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}}`
	notNew = `"error":{"code":-32601,"message":"no"}}`
	oldCan = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{},"tasks":{}}`
	newCan = oldCan
)

// modernClient is a rig whose modern client has found an older server.
func (r *rig) modernClient() {
	r.t.Helper()
	r.client(`{"id":"d","method":"server/discover","params":{` + meta + `}}`)
	one(r.t, r.atServer(), `{"id":"d","method":"server/discover","params":{`+meta+`}}`)
	r.server(`{"id":"d",` + notNew)
	hello := one(r.t, r.atServer(), `{"id":ID,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	r.server(`{"id":` + id(hello) + `,"result":{"protocolVersion":"2025-11-25","capabilities":` + oldCan + `,"serverInfo":{"name":"s","version":"2"},"instructions":"i"}}`)
	one(r.t, r.atServer(), `{"method":"notifications/initialized"}`)
	one(r.t, r.atClient(), `{"id":"d","result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}},"instructions":"i","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}},"ttlMs":0,"cacheScope":"private"}}`)
}

const (
	oldHello = `"params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{},"elicitation":{},"roots":{"listChanged":true},"tasks":{}},"clientInfo":{"name":"c","version":"1"}}`
	newMeta  = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{},"elicitation":{},"roots":{}}}`
)

// legacyClient is a rig whose older client has found a modern server.
func (r *rig) legacyClient() {
	r.t.Helper()
	r.client(`{"id":1,"method":"initialize",` + oldHello + `}`)
	one(r.t, r.atServer(), `{"id":1,"method":"initialize",`+oldHello+`}`)
	r.server(`{"id":1,` + notNew)
	found := one(r.t, r.atServer(), `{"id":ID,"method":"server/discover","params":{`+newMeta+`}}`)
	r.server(`{"id":` + id(found) + `,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + newCan + `,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}},"instructions":"i","ttlMs":5,"cacheScope":"public"}}`)
	one(r.t, r.atClient(), `{"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}},"serverInfo":{"name":"s","version":"2"},"instructions":"i"}}`)
}
