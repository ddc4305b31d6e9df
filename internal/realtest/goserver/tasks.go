package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tasks extension of 2026-07-28 on the Go SDK, which does not have it: "research" is a task and nothing else, which asks the person once
// it was looked at; all that happens to it happens by requests, not by the clock.

const extension = "io.modelcontextprotocol/tasks"

type task struct {
	mcp.ResultBase
	ResultType    string         `json:"resultType"`
	TaskID        string         `json:"taskId"`
	Status        string         `json:"status"`
	StatusMessage string         `json:"statusMessage"`
	CreatedAt     string         `json:"createdAt"`
	LastUpdatedAt string         `json:"lastUpdatedAt"`
	TTL           *int           `json:"ttlMs"`
	PollInterval  int            `json:"pollIntervalMs"`
	InputRequests map[string]any `json:"inputRequests,omitempty"`
	Result        map[string]any `json:"result,omitempty"`
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

// addTasks gives a server the extension.
func addTasks(server *mcp.Server) error {
	var mu sync.Mutex
	tasks := map[string]*task{}
	mcp.AddTool(server, &mcp.Tool{Name: "research"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("not as a task")
	})
	declares := func(meta mcp.Meta) error {
		caps, _ := meta["io.modelcontextprotocol/clientCapabilities"].(map[string]any)
		extensions, _ := caps["extensions"].(map[string]any)
		if _, ok := extensions[extension]; ok {
			return nil
		}
		data, _ := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{extension: struct{}{}}}})
		return &jsonrpc.Error{Code: -32021, Message: "this is a task only", Data: data}
	}
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			call, ok := r.GetParams().(*mcp.CallToolParamsRaw)
			if !ok || call.Name != "research" {
				return next(ctx, method, r)
			}
			if err := declares(call.Meta); err != nil {
				return nil, err
			}
			now := time.Now().UTC().Format(time.RFC3339)
			t := &task{ResultType: "task", TaskID: rand.Text(), Status: "working", StatusMessage: "reading", CreatedAt: now, LastUpdatedAt: now, PollInterval: 10}
			mu.Lock()
			defer mu.Unlock()
			tasks[t.TaskID] = t
			begun := *t
			return &begun, nil
		}
	})
	find := func(p *taskParams) (*task, error) {
		if err := declares(p.Meta); err != nil {
			return nil, err
		}
		if t := tasks[p.TaskID]; t != nil {
			return t, nil
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such task"}
	}
	get := func(_ context.Context, _ *mcp.ServerSession, p *taskParams) (*task, error) {
		mu.Lock()
		defer mu.Unlock()
		t, err := find(p)
		if err != nil {
			return nil, err
		}
		seen := *t
		seen.ResultType = "complete"
		if t.Status == "working" && t.Result == nil {
			t.Status, t.StatusMessage = "input_required", "which whales?"
			t.InputRequests = map[string]any{"which": map[string]any{"method": "elicitation/create", "params": map[string]any{
				"message": "Which whales?", "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}}}}
		}
		return &seen, nil
	}
	update := func(_ context.Context, _ *mcp.ServerSession, p *taskParams) (*acknowledged, error) {
		mu.Lock()
		defer mu.Unlock()
		t, err := find(p)
		if err != nil {
			return nil, err
		}
		if said := p.InputResponses["which"]; t.Status == "input_required" && said != nil {
			t.Status, t.StatusMessage, t.InputRequests = "completed", "done", nil
			t.Result = map[string]any{"resultType": "complete", "content": []any{map[string]any{"type": "text", "text": "whales; the person said " + string(said)}}}
		}
		return &acknowledged{ResultType: "complete"}, nil
	}
	cancel := func(_ context.Context, _ *mcp.ServerSession, p *taskParams) (*acknowledged, error) {
		mu.Lock()
		defer mu.Unlock()
		t, err := find(p)
		if err != nil {
			return nil, err
		}
		if t.Status != "completed" {
			t.Status, t.InputRequests = "cancelled", nil
		}
		return &acknowledged{ResultType: "complete"}, nil
	}
	if err := mcp.AddReceivingCustomMethod(server, "tasks/get", get); err != nil {
		return err
	}
	if err := mcp.AddReceivingCustomMethod(server, "tasks/update", update); err != nil {
		return err
	}
	return mcp.AddReceivingCustomMethod(server, "tasks/cancel", cancel)
}
