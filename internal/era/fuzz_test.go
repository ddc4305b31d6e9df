package era

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Whatever both sides write, in any order: no panic, no deadlock, everything bounded, and the client gets no answer to what it did not
// ask, but for those that the server makes up.
func FuzzBridge(f *testing.F) {
	for _, seed := range []string{
		"> {`id`:`d`,`method`:`server/discover`,`params`:{M}}\n< {`id`:`d`,`error`:{`code`:-32601,`message`:`no`}}\n< {`id`:$0,`result`:{`protocolVersion`:`2025-11-25`,`capabilities`:{`tools`:{`listChanged`:true},`resources`:{`subscribe`:true},`logging`:{}}}}\n> {`id`:1,`method`:`tools/call`,`params`:{`name`:`t`,M}}\n< {`id`:5,`method`:`roots/list`}\n> {`id`:2,`method`:`tools/call`,`params`:{`name`:`t`,`requestState`:`@`,`inputResponses`:{`input-1`:{`roots`:[]}},M}}\n< {`id`:1,`result`:{}}\n> {`id`:3,`method`:`subscriptions/listen`,`params`:{`notifications`:{`toolsListChanged`:true,`resourceSubscriptions`:[`a://b`]},M}}\n< {`id`:$0,`result`:{}}\n< {`method`:`notifications/tools/list_changed`}\n> {`method`:`notifications/cancelled`,`params`:{`requestId`:3}}",
		"> {`id`:1,`method`:`initialize`,`params`:{`protocolVersion`:`2025-11-25`,`capabilities`:{},`clientInfo`:{}}}\n< {`id`:1,`error`:{`code`:-32601,`message`:`no`}}\n< {`id`:$0,`result`:{`supportedVersions`:[`2026-07-28`],`capabilities`:{`tools`:{`listChanged`:true},`resources`:{`subscribe`:true}}}}\n> {`method`:`notifications/initialized`}\n> {`id`:2,`method`:`tools/call`,`params`:{`name`:`t`}}\n< {`id`:2,`result`:{`resultType`:`input_required`,`requestState`:`s`,`inputRequests`:{`k`:{`method`:`roots/list`}}}}\n> {`id`:#,`result`:{`roots`:[]}}\n< {`id`:$0,`result`:{}}\n> {`id`:3,`method`:`resources/subscribe`,`params`:{`uri`:`a://b`}}\n< {`method`:`notifications/subscriptions/acknowledged`,`params`:{`_meta`:{`io.modelcontextprotocol/subscriptionId`:$0}}}",
		"> {`id`:1,`method`:`tools/list`,`params`:{M}}\n<! 1\n< {`id`:1,`result`:{}}",
		"> {`id`:`d`,`method`:`server/discover`,`params`:{T}}\n< {`id`:`d`,`error`:{`code`:-32601,`message`:`no`}}\n< {`id`:$0,`result`:{`protocolVersion`:`2025-11-25`,`capabilities`:{`tools`:{},`tasks`:{`cancel`:{},`requests`:{`tools`:{`call`:{}}}}}}}\n> {`id`:1,`method`:`tools/call`,`params`:{`name`:`t`,T}}\n< {`id`:$0,`result`:{`tools`:[{`name`:`t`,`execution`:{`taskSupport`:`required`}}]}}\n< {`id`:1,`result`:{`task`:{`taskId`:`x`,`status`:`working`,`ttl`:5}}}\n> {`id`:2,`method`:`subscriptions/listen`,`params`:{`notifications`:{`taskIds`:[`x`]},T}}\n> {`id`:3,`method`:`tasks/get`,`params`:{`taskId`:`x`,T}}\n< {`id`:3,`result`:{`taskId`:`x`,`status`:`input_required`}}\n< {`id`:7,`method`:`roots/list`,`params`:{`_meta`:{`io.modelcontextprotocol/related-task`:{`taskId`:`x`}}}}\n> {`id`:4,`method`:`tasks/update`,`params`:{`taskId`:`x`,`inputResponses`:{`input-1`:{}},T}}\n> {`id`:5,`method`:`tasks/get`,`params`:{`taskId`:`x`,T}}\n< {`id`:5,`result`:{`taskId`:`x`,`status`:`completed`}}\n< {`id`:$0,`result`:{`content`:[]}}\n> {`id`:6,`method`:`tools/call`,`params`:{`name`:`t`,M}}\n< {`id`:6,`result`:{`task`:{`taskId`:`y`}}}\n> {`id`:8,`method`:`tasks/cancel`,`params`:{`taskId`:`x`,T}}\n< {`id`:8,`result`:{}}",
		"> {`id`:1,`method`:`initialize`,`params`:{`protocolVersion`:`2025-11-25`,`capabilities`:{},`clientInfo`:{}}}\n< {`id`:1,`error`:{`code`:-32601,`message`:`no`}}\n< {`id`:$0,`result`:{`supportedVersions`:[`2026-07-28`],`capabilities`:{`extensions`:{`io.modelcontextprotocol/tasks`:{}}}}}\n> {`id`:2,`method`:`tools/call`,`params`:{`name`:`t`,`task`:{`ttl`:5}}}\n< {`id`:2,`result`:{`resultType`:`task`,`taskId`:`x`,`status`:`working`,`ttlMs`:5}}\n> {`id`:3,`method`:`tasks/result`,`params`:{`taskId`:`x`}}\n< {`id`:$0,`result`:{`taskId`:`x`,`status`:`input_required`,`inputRequests`:{`k`:{`method`:`roots/list`}}}}\n> {`id`:#,`result`:{`roots`:[]}}\n> {`id`:4,`method`:`tasks/get`,`params`:{`taskId`:`x`}}\n< {`id`:4,`result`:{`status`:`completed`,`result`:{}}}\n> {`id`:5,`method`:`tasks/cancel`,`params`:{`taskId`:`x`}}\n< {`id`:5,`result`:{}}\n> {`id`:6,`method`:`tools/call`,`params`:{`name`:`t`,`task`:{}}}\n< {`id`:6,`result`:{`content`:[]}}\n> {`id`:7,`method`:`tools/call`,`params`:{`name`:`t`}}\n< {`id`:7,`error`:{`code`:-32021,`data`:{`requiredCapabilities`:{`extensions`:{`io.modelcontextprotocol/tasks`:{}}}}}}\n< {`id`:$0,`result`:{`resultType`:`task`,`taskId`:`y`}}",
	} {
		f.Add(strings.ReplaceAll(seed, "`", `"`))
	}
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 1<<14 {
			return
		}
		near := &scripted{toBridge: make(chan queued), sent: make(chan jsonrpc.Message, 1<<12)}
		b := New(near, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		got := make(chan jsonrpc.Message, 1<<12)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				m, err := b.Read(ctx)
				if bad := (*jsonrpc.BadMessage)(nil); err != nil && !errors.As(err, &bad) {
					return
				}
				if err == nil {
					got <- m
				}
			}
		}()
		var asked, question, state string // what the bridge said last
		answers, requests, served := map[string]int{}, map[string]int{}, map[string]bool{}
		learn := func() {
			for more := true; more; {
				select {
				case m := <-near.sent:
					asked = string(m.ID.Value().Append(nil))
				case m := <-got:
					if m.Kind == jsonrpc.Request {
						question = string(m.ID.Value().Append(nil))
					}
					if m.Kind == jsonrpc.Response {
						answers[m.ID.Key()]++
						if s := m.Result.Get("requestState").Str(); s != "" {
							state = s
						}
					}
				default:
					more = false
				}
			}
		}
		for _, line := range strings.SplitN(script, "\n", 64) {
			side, text, _ := strings.Cut(line, " ")
			learn()
			text = strings.NewReplacer("{M}", "{"+meta+"}", ",M}", ","+meta+"}", "{T}", "{"+taskMeta+"}", ",T}", ","+taskMeta+"}", "#", question, "$0", asked, "@", state).Replace(text)
			if side == "<!" {
				id, _ := jsonrpc.NewID(strictjson.Number(text))
				near.feed(ctx, queued{err: &jsonrpc.BadMessage{Err: io.ErrUnexpectedEOF, IDs: []jsonrpc.ID{id}}})
				continue
			}
			v, err := strictjson.ParseString(text, strictjson.Limits{})
			if err != nil || v.Kind() != strictjson.KindObject {
				continue
			}
			m, err := jsonrpc.Decode(v.With("jsonrpc", str("2.0")))
			if err != nil {
				continue
			}
			if side == "<" {
				served[m.ID.Key()] = served[m.ID.Key()] || m.Kind == jsonrpc.Response
				near.feed(ctx, queued{m: m})
				continue
			}
			if m.Kind == jsonrpc.Request {
				requests[m.ID.Key()]++
			}
			quick, stop := context.WithTimeout(ctx, time.Millisecond)
			b.Write(quick, m)
			stop()
		}
		close(near.toBridge)
		select {
		case <-ended:
		case <-ctx.Done():
			t.Fatal("the end of the server does not reach the client")
		}
		learn()
		b.mu.Lock()
		defer b.mu.Unlock()
		if a, ok := b.tr.(*toLegacy); ok && (len(a.wanted) > maxWanted || len(a.suspended) > maxSuspended || len(a.own) > maxErrands) {
			t.Errorf("%d questions, %d calls", len(a.wanted), len(a.suspended))
		}
		if l := lineOf(b.tr); l != nil && l.owed == 0 && len(l.calls) > 0 {
			t.Errorf("%d calls wait for nothing", len(l.calls))
		}
		for id, n := range answers {
			if n > requests[id] && !served[id] {
				t.Errorf("%d answers to %d requests with the id %s", n, requests[id], id)
			}
		}
	})
}

func lineOf(tr translator) *line {
	switch tr := tr.(type) {
	case *toLegacy:
		return &tr.line
	case *toModern:
		return &tr.line
	}
	return nil
}

type scripted struct {
	toBridge chan queued
	sent     chan jsonrpc.Message
}

func (s *scripted) feed(ctx context.Context, q queued) {
	select {
	case s.toBridge <- q:
	case <-ctx.Done():
	}
}

func (s *scripted) Read(ctx context.Context) (jsonrpc.Message, error) {
	q, ok := <-s.toBridge
	if !ok {
		return jsonrpc.Message{}, io.EOF
	}
	return q.m, q.err
}

func (s *scripted) Write(_ context.Context, m jsonrpc.Message) error {
	select {
	case s.sent <- m:
	default:
	}
	return nil
}

func (s *scripted) Close() error { return nil }
