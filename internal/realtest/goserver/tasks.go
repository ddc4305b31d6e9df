package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tasks extension of 2026-07-28 on the Go SDK, which does not have it, with the tools that the conformance suite calls for it.

const extension = "io.modelcontextprotocol/tasks"

// task is one, as tasks/get gives it.
type task struct {
	mcp.ResultBase
	ResultType    string         `json:"resultType"`
	TaskID        string         `json:"taskId"`
	Status        string         `json:"status"`
	StatusMessage string         `json:"statusMessage"`
	CreatedAt     string         `json:"createdAt"`
	LastUpdatedAt string         `json:"lastUpdatedAt"`
	TTL           int            `json:"ttlMs"`
	PollInterval  int            `json:"pollIntervalMs"`
	InputRequests map[string]any `json:"inputRequests,omitempty"`
	Result        any            `json:"result,omitempty"`
	Error         any            `json:"error,omitempty"`

	needs  map[string]any // asked for once it was looked at
	said   string
	ends   time.Time
	result any // what it leads to then, or
	fault  any
}

func finished(text string, isError bool) any {
	return map[string]any{"resultType": "complete", "content": []any{map[string]any{"type": "text", "text": text}}, "isError": isError}
}

// look brings a task up to date, and gives it as it is.
func (t *task) look() *task {
	if t.Status == "working" && t.needs == nil && !time.Now().Before(t.ends) {
		t.Status, t.StatusMessage, t.Result, t.Error = "completed", "done", t.result, t.fault
		if t.fault != nil {
			t.Status = "failed"
		}
	}
	seen := *t
	seen.ResultType = "complete"
	if t.Status == "working" && t.needs != nil {
		t.Status, t.StatusMessage, t.InputRequests, t.needs = "input_required", "asking", t.needs, nil
	}
	return &seen
}

// answer takes what the client says to its questions.
func (t *task) answer(responses map[string]json.RawMessage) {
	for key, said := range responses {
		if t.InputRequests[key] != nil {
			delete(t.InputRequests, key)
			t.said += string(said)
		}
	}
	if t.Status == "input_required" && len(t.InputRequests) == 0 {
		t.Status, t.result = "working", finished("the person said "+t.said, false)
	}
}

func question(name string) map[string]any {
	return map[string]any{"method": "elicitation/create", "params": map[string]any{
		"message": name + "?", "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}}}
}

type taskParams struct {
	mcp.ParamsBase
	TaskID         string                     `json:"taskId"`
	InputResponses map[string]json.RawMessage `json:"inputResponses"`
}

type acknowledged struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

type taskServer struct {
	mu    sync.Mutex
	tasks map[string]*task
}

// begin makes a task of a call, or not: nil.
func (s *taskServer) begin(call *mcp.CallToolParamsRaw) (*task, error) {
	t := &task{ResultType: "task", TaskID: rand.Text(), Status: "working", StatusMessage: "at work", TTL: 300_000, PollInterval: 10}
	wait := time.Duration(0)
	switch call.Name {
	case "slow_compute":
		if declares(call.Meta) != nil {
			return nil, nil
		}
		var in struct{ Seconds float64 }
		if err := json.Unmarshal(call.Arguments, &in); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no seconds"}
		}
		wait, t.result = time.Duration(in.Seconds*float64(time.Second)), finished("computed", false)
	case "failing_job":
		t.result = finished("it went wrong", true)
	case "protocol_error_job":
		t.fault = map[string]any{"code": jsonrpc.CodeInternalError, "message": "broken"}
	case "confirm_delete":
		t.needs = map[string]any{"confirm": question("confirm")}
	case "multi_input":
		t.needs = map[string]any{"one": question("one"), "two": question("two")}
	case "test_tool_with_task":
		said, ok := call.InputResponses["user_name"].(*mcp.ElicitResult)
		if !ok {
			return nil, nil // the tool asks
		}
		name, _ := json.Marshal(said.Content)
		t.result = finished("for "+string(name), false)
	default:
		return nil, nil
	}
	if err := declares(call.Meta); err != nil {
		return nil, err
	}
	t.CreatedAt, t.ends = time.Now().UTC().Format(time.RFC3339), time.Now().Add(wait)
	t.LastUpdatedAt = t.CreatedAt
	s.tasks[t.TaskID] = t
	begun := *t
	return &begun, nil
}

// declares says whether a request declares the extension; otherwise it gives the refusal.
func declares(meta mcp.Meta) error {
	caps, _ := meta["io.modelcontextprotocol/clientCapabilities"].(map[string]any)
	extensions, _ := caps["extensions"].(map[string]any)
	if _, ok := extensions[extension]; ok {
		return nil
	}
	data, _ := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{extension: struct{}{}}}})
	return &jsonrpc.Error{Code: -32021, Message: "only for clients that take tasks", Data: data}
}

// on makes a method of what happens to a task.
func on[R mcp.Result](s *taskServer, server *mcp.Server, method string, do func(*task, *taskParams) R) error {
	return mcp.AddReceivingCustomMethod(server, method, func(_ context.Context, _ *mcp.ServerSession, p *taskParams) (none R, err error) {
		if err := declares(p.Meta); err != nil {
			return none, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if t := s.tasks[p.TaskID]; t != nil {
			return do(t, p), nil
		}
		return none, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such task"}
	})
}

// addTasks gives a server the extension.
func addTasks(server *mcp.Server) error {
	s := &taskServer{tasks: map[string]*task{}}
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Name string `json:"name"`
	}) (*mcp.CallToolResult, any, error) {
		return text("Hello, " + in.Name + "!"), nil, nil
	})
	for _, name := range strings.Fields("slow_compute failing_job protocol_error_job confirm_delete multi_input test_tool_with_task") {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
			if name == "test_tool_with_task" {
				return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{
					"user_name": &mcp.ElicitParams{Message: "user_name?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}}}, nil, nil
			}
			return text("computed at once"), nil, nil
		})
	}
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if call, ok := r.GetParams().(*mcp.CallToolParamsRaw); ok {
				s.mu.Lock()
				t, err := s.begin(call)
				s.mu.Unlock()
				if t != nil || err != nil {
					return t, err
				}
			}
			return next(ctx, method, r)
		}
	})
	if err := on(s, server, "tasks/get", func(t *task, _ *taskParams) *task { return t.look() }); err != nil {
		return err
	}
	if err := on(s, server, "tasks/update", func(t *task, p *taskParams) *acknowledged {
		t.answer(p.InputResponses)
		return &acknowledged{ResultType: "complete"}
	}); err != nil {
		return err
	}
	return on(s, server, "tasks/cancel", func(t *task, _ *taskParams) *acknowledged {
		if t.Status == "working" || t.Status == "input_required" {
			t.Status, t.InputRequests, t.needs = "cancelled", nil, nil
		}
		return &acknowledged{ResultType: "complete"}
	})
}
