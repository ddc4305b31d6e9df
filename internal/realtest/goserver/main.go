// Command goserver is a server on the Go SDK, which speaks 2026-07-28 and, with -legacy, only what came before: a tool that
// asks the person, and one that changes the list of tools.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	legacy := flag.Bool("legacy", false, "speak at most 2025-11-25")
	flag.Parse()
	opt := &mcp.ServerOptions{}
	if *legacy {
		opt.SupportedProtocolVersions = []string{"2025-11-25", "2025-06-18"}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "goserver", Version: "1"}, opt)
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		question := &mcp.ElicitParams{Message: "Which colour?", RequestedSchema: &jsonschema.Schema{
			Type: "object", Properties: map[string]*jsonschema.Schema{"answer": {Type: "string"}}}}
		answer, answered := r.Params.InputResponses["q"].(*mcp.ElicitResult)
		if !answered && !*legacy {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": question}, RequestState: "state-1"}, nil, nil
		}
		if *legacy {
			var err error
			if answer, err = r.Session.Elicit(ctx, question); err != nil {
				return nil, nil, err
			}
		}
		return text("the person said " + answer.Content["answer"].(string)), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(server, &mcp.Tool{Name: "grown"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return text("grown"), nil, nil
		})
		return text("grew"), nil, nil
	})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Print(err)
	}
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
