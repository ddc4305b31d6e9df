package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/approve"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/screen"
)

// live is one session through a real gateway: this program is the client on one side and the server on the other, and all
// stages are between them.
type live struct {
	world   *world
	toward  io.WriteCloser
	answers *bufio.Reader
	ended   chan error
	next    int

	mu     sync.Mutex // guards what the other goroutines share
	result string     // what the server will answer the next call with
	data   any        // and its structuredContent
	ran    bool       // the server saw the call
	trust  bool       // the person says yes to the next question
	asked  int
}

const unlimited = 1 << 30

// open starts a session for a task. A nil policy lets every call through.
func (w *world) open(task *UserTask, policy *gate.Policy) (*live, error) {
	l := &live{world: w, ended: make(chan error, 1)}
	screens, err := screen.New(screen.Options{RestatesRequest: screen.Off}) // the suites' results do restate
	if err != nil {
		return nil, err
	}
	opt := gateway.Options{
		Servers: []gateway.Server{{Source: gateway.Source{Server: w.suite.server()}, Command: []string{"in-process"}}},
		Launch:  func(context.Context, gateway.Server) (*gateway.Process, error) { return l.launch(w.suite), nil },
		Policy:  policy,
		Pins:    gateway.Pins{AllowNew: true, AllowDrift: true},
		Screens: screens,
		Budget:  gate.Budget{Limit: unlimited}, // each attack is counted to its end; a real session halts before
		Ask: func(context.Context, approve.Question) approve.Answer {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.asked++
			if l.trust {
				return approve.Answer{Verdict: approve.Once}
			}
			return approve.Answer{Verdict: approve.Deny}
		},
	}
	if !w.policy.noStore {
		opt.Trusted = append(opt.Trusted, gate.Observation{Source: "store", Trust: gate.Store, Data: map[string]any(w.suite.KnownStore)})
	}
	if w.words {
		opt.Trusted = append(opt.Trusted, gate.Observation{Source: "user", Trust: gate.User, Text: task.Prompt})
	}
	g, err := gateway.NewGateway(opt)
	if err != nil {
		return nil, err
	}
	fromClient, toGateway := io.Pipe()
	fromGateway, toClient := io.Pipe()
	l.toward, l.answers = toGateway, bufio.NewReader(fromGateway)
	go func() {
		l.ended <- g.Serve(context.Background(), gateway.Client{Transport: jsonrpc.NewLines(fromClient, toClient, jsonrpc.LineOptions{})})
		toClient.Close()
	}()
	if _, err := l.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "replay", "version": "1"}}); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if err := l.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		return nil, errors.Join(err, l.close())
	}
	_, err = l.request("tools/list", map[string]any{})
	return l, err
}

// close ends the session and waits until nothing of it is left.
func (l *live) close() error {
	l.toward.Close()
	io.Copy(io.Discard, l.answers) // what is still to be said, so that nobody waits to say it
	return <-l.ended
}

func (l *live) send(message map[string]any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = l.toward.Write(append(line, '\n'))
	return err
}

// reply is an answer of the gateway as the client sees it.
type reply struct {
	ID     json.RawMessage
	Result struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	Error json.RawMessage
}

func (l *live) request(method string, params map[string]any) (reply, error) {
	l.next++
	id := fmt.Sprint(l.next)
	if err := l.send(map[string]any{"jsonrpc": "2.0", "id": l.next, "method": method, "params": params}); err != nil {
		return reply{}, err
	}
	for {
		line, err := l.answers.ReadBytes('\n')
		if err != nil {
			return reply{}, fmt.Errorf("the gateway ended in %s: %w", method, err)
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			return reply{}, err
		}
		if string(r.ID) == id {
			return r, nil
		}
	}
}

// call makes a call whose result is known, and reports whether the server got it, and what the agent got to read.
func (l *live) call(c Call, result string, trust bool) (ran bool, shown string, err error) {
	var data any
	if l.world.labels[c.Tool].Trusted { // of others the gateway would not use it
		data = l.world.data(result)
	}
	l.mu.Lock()
	l.result, l.data, l.ran, l.trust = result, data, false, trust
	l.mu.Unlock()
	args := c.Args
	if args == nil {
		args = map[string]any{}
	}
	r, err := l.request("tools/call", map[string]any{"name": c.Tool, "arguments": args})
	if err != nil {
		return false, "", err
	}
	for _, block := range r.Result.Content {
		shown += block.Text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ran, shown, nil
}

// launch plays the server: it offers the tools of the suite and answers each call with what was set.
func (l *live) launch(s *Suite) *gateway.Process {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	errs, errsOut := io.Pipe()
	ended := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { in.Close(); out.Close(); errsOut.Close(); close(ended) }) }
	go func() {
		defer end()
		lines := bufio.NewReader(in)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if json.Unmarshal(line, &m) != nil || m.ID == nil {
				continue
			}
			answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": l.serve(s, m.Method)})
			if err != nil {
				return
			}
			if _, err := out.Write(append(answer, '\n')); err != nil {
				return
			}
		}
	}()
	return &gateway.Process{Stdin: toServer, Stdout: fromServer, Stderr: errs, Terminate: end, Kill: end, Wait: func() string { <-ended; return "ended" }}
}

func (l *live) serve(s *Suite, method string) map[string]any {
	switch method {
	case "initialize":
		return map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "suite", "version": "1"}}
	case "tools/list":
		var tools []any
		for _, t := range s.Tools {
			schema := t.InputSchema
			if schema["type"] == nil {
				schema = map[string]any{"type": "object"}
			}
			tools = append(tools, map[string]any{"name": t.Name, "description": t.Description, "inputSchema": schema})
		}
		return map[string]any{"tools": tools}
	case "tools/call":
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ran = true
		result := map[string]any{"content": []any{map[string]any{"type": "text", "text": l.result}}}
		switch data := l.data.(type) {
		case map[string]any:
			result["structuredContent"] = data
		case []any: // the protocol wants an object
			result["structuredContent"] = map[string]any{"result": data}
		}
		return result
	}
	return map[string]any{}
}
