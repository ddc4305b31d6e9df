// Command goserver is a server on the Go SDK, which speaks 2026-07-28 and what came before; with -legacy only that, with -modern only
// 2026-07-28: a tool that asks the person, one that changes the list of tools, one that echoes, and one that tells a variable of its environment; with
// -tasks the tasks extension. With -http it serves streamable HTTP on a free port of loopback and prints its address.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	legacy := flag.Bool("legacy", false, "speak at most 2025-11-25")
	modern := flag.Bool("modern", false, "speak at least 2026-07-28")
	tasks := flag.Bool("tasks", false, "have the tasks extension")
	onHTTP := flag.Bool("http", false, "serve streamable HTTP instead of standard input and output")
	flag.Parse()
	opt := &mcp.ServerOptions{}
	if *legacy {
		opt.SupportedProtocolVersions = []string{"2025-11-25", "2025-06-18"}
	}
	if *modern {
		opt.SupportedProtocolVersions = []string{"2026-07-28"}
	}
	if *tasks {
		opt.Capabilities = &mcp.ServerCapabilities{Extensions: map[string]any{extension: struct{}{}}}
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
		return text(fmt.Sprint("the person said ", answer.Content["answer"])), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(server, &mcp.Tool{Name: "grown"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return text("grown"), nil, nil
		})
		return text("grew"), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct{ Message string }) (*mcp.CallToolResult, any, error) {
		return text(in.Message), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "env"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct{ Name string }) (*mcp.CallToolResult, any, error) {
		return text(in.Name + "=" + os.Getenv(in.Name)), nil, nil
	})
	if *tasks {
		if err := addTasks(server); err != nil {
			log.Fatal(err)
		}
	}
	if *modern { // the SDK would answer with an older version all the same
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
				if method == "initialize" {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "use server/discover"}
				}
				return next(ctx, method, r)
			}
		})
	}
	if *onHTTP {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("http://%s/mcp\n", ln.Addr())
		log.Fatal(http.Serve(ln, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: !*modern, Stateless: *modern})))
	}
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Print(err)
	}
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
