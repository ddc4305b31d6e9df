package realtest

//lint:file-ignore SA1019 what the newest protocol deprecates still has to pass

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// One test for each feature of MCP, between the Go SDK's client and server, in every way: docs/gateway.md has the table.

func noOptions() *mcp.ClientOptions { return &mcp.ClientOptions{} }

type nothing = struct{}

func tool(s *mcp.Server, name string, f func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		result, err := f(ctx, r)
		return result, nil, err
	})
}

func TestFeatureProgress(t *testing.T) {
	came := make(chan *mcp.ProgressNotificationParams, 100)
	eachWay(t, mcp.ServerOptions{}, func() *mcp.ClientOptions {
		return &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { came <- r.Params }}
	}, func(s *mcp.Server, _ way) {
		tool(s, "work", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range 3 {
				p := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Total: 3, Message: fmt.Sprintf("step %d", i)}
				if err := r.Session.NotifyProgress(ctx, p); err != nil {
					return nil, err
				}
			}
			return say("worked"), nil
		})
	}, func(p *peers) {
		if got := p.call("work", mcp.Meta{"progressToken": "mine"}); got != "worked" {
			p.t.Errorf("%q", got)
		}
		for i := range 3 {
			n := got(p, "progress", came)
			if n.ProgressToken != "mine" || n.Progress != float64(i) || n.Total != 3 || unframed(p.t, n.Message) != fmt.Sprintf("step %d", i) {
				p.t.Errorf("progress %d: %+v", i, n)
			}
		}
		none(p, "more progress", came)
	})
}

func TestFeatureCancellation(t *testing.T) {
	started, cancelled := make(chan bool, 1), make(chan bool, 1)
	eachWay(t, mcp.ServerOptions{}, noOptions, func(s *mcp.Server, _ way) {
		tool(s, "hang", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			started <- true
			<-ctx.Done()
			cancelled <- true
			return nil, ctx.Err()
		})
		tool(s, "echo", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("here"), nil })
	}, func(p *peers) {
		ctx, cancel := context.WithCancel(p.ctx)
		failed := make(chan error, 1)
		go func() {
			_, err := p.CallTool(ctx, &mcp.CallToolParams{Name: p.called("hang")})
			failed <- err
		}()
		got(p, "the call", started)
		cancel()
		if err := got(p, "the end of the call", failed); err == nil {
			p.t.Error("a cancelled call came back")
		}
		got(p, "the cancellation at the server", cancelled)
		if said := p.call("echo", nil); said != "here" {
			p.t.Errorf("the next call: %q", said)
		}
	})
}

func TestFeatureLoggingLevels(t *testing.T) {
	came := make(chan *mcp.LoggingMessageParams, 100)
	eachWay(t, mcp.ServerOptions{}, func() *mcp.ClientOptions {
		return &mcp.ClientOptions{LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { came <- r.Params }}
	}, func(s *mcp.Server, _ way) {
		tool(s, "log", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, level := range []mcp.LoggingLevel{"debug", "info", "error"} {
				if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "work", Data: "at " + string(level)}); err != nil {
					return nil, err
				}
			}
			return say("logged"), nil
		})
	}, func(p *peers) {
		for _, level := range []string{"warning", "info"} {
			meta := mcp.Meta{}
			if p.modern() {
				meta[mcp.MetaKeyLogLevel] = level
			} else if err := p.SetLoggingLevel(p.ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)}); err != nil {
				p.t.Fatal(err)
			}
			p.call("log", meta)
			want := []string{"error"}
			if level == "info" {
				want = []string{"info", "error"}
			}
			for _, w := range want {
				n := got(p, "a message of "+w, came)
				if string(n.Level) != w || n.Logger != "work" || unframed(p.t, n.Data.(string)) != "at "+w {
					p.t.Errorf("level %s: %+v", level, n)
				}
			}
		}
	})
}

func TestFeatureSampling(t *testing.T) {
	eachWay(t, mcp.ServerOptions{}, func() *mcp.ClientOptions {
		return &mcp.ClientOptions{CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			asked := unframed(t, r.Params.Messages[len(r.Params.Messages)-1].Content.(*mcp.TextContent).Text)
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "sampled for " + asked}}, nil
		}}
	}, func(s *mcp.Server, _ way) {
		tool(s, "sample", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			switch answer := r.Params.InputResponses["q"].(type) {
			case *mcp.CreateMessageWithToolsResult:
				return say(answer.Content[0].(*mcp.TextContent).Text), nil
			case *mcp.CreateMessageResult:
				return say(answer.Content.(*mcp.TextContent).Text), nil
			}
			return &mcp.CallToolResult{RequestState: "s", InputRequests: mcp.InputRequestMap{"q": &mcp.CreateMessageParams{
				MaxTokens: 10, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "a word"}}}}}}, nil
		})
	}, func(p *peers) {
		if said := p.call("sample", nil); said != "sampled for a word" {
			p.t.Errorf("%q", said)
		}
	})
}

func TestFeatureSamplingWithTools(t *testing.T) {
	eachWay(t, mcp.ServerOptions{}, func() *mcp.ClientOptions {
		return &mcp.ClientOptions{CreateMessageWithToolsHandler: func(_ context.Context, r *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			if len(r.Params.Tools) != 1 || r.Params.Tools[0].Name != "add" || r.Params.ToolChoice == nil || r.Params.ToolChoice.Mode != "required" {
				return nil, fmt.Errorf("asked with %+v", r.Params)
			}
			return &mcp.CreateMessageWithToolsResult{Model: "m", Role: "assistant", StopReason: "toolUse",
				Content: []mcp.Content{&mcp.ToolUseContent{ID: "u", Name: "add", Input: map[string]any{"a": 2.0}}}}, nil
		}}
	}, func(s *mcp.Server, _ way) {
		tool(s, "sample", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if answer, ok := r.Params.InputResponses["q"].(*mcp.CreateMessageWithToolsResult); ok {
				use := answer.Content[0].(*mcp.ToolUseContent)
				return say(fmt.Sprint(answer.StopReason, " ", use.Name, " ", use.Input["a"])), nil
			}
			return &mcp.CallToolResult{RequestState: "s", InputRequests: mcp.InputRequestMap{"q": &mcp.CreateMessageWithToolsParams{
				MaxTokens: 10, Messages: []*mcp.SamplingMessageV2{{Role: "user", Content: []mcp.Content{&mcp.TextContent{Text: "add"}}}},
				Tools: []*mcp.Tool{{Name: "add", InputSchema: &jsonschema.Schema{Type: "object"}}}, ToolChoice: &mcp.ToolChoice{Mode: "required"}}}}, nil
		})
	}, func(p *peers) {
		if said := p.call("sample", nil); said != "toolUse add 2" {
			p.t.Errorf("%q", said)
		}
	})
}

func TestFeatureElicitationForm(t *testing.T) {
	eachWay(t, mcp.ServerOptions{}, func() *mcp.ClientOptions {
		return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "blue, asked " + unframed(t, r.Params.Message)}}, nil
		}}
	}, func(s *mcp.Server, _ way) {
		tool(s, "ask", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if answer, ok := r.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
				return say(fmt.Sprint(answer.Action, " ", answer.Content["answer"], " ", r.Params.RequestState)), nil
			}
			return &mcp.CallToolResult{RequestState: "state", InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "Which colour?",
				RequestedSchema: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"answer": {Type: "string"}}}}}}, nil
		})
	}, func(p *peers) {
		if said := p.call("ask", nil); said != "accept blue, asked Which colour? state" {
			p.t.Errorf("%q", said)
		}
	})
}

func TestFeatureElicitationURL(t *testing.T) {
	eachWay(t, mcp.ServerOptions{}, func() *mcp.ClientOptions {
		return &mcp.ClientOptions{
			Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
			ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if r.Params.Mode != "url" || r.Params.URL != "https://login.example/x" || !strings.Contains(r.Params.Message, "login.example") {
					return nil, fmt.Errorf("asked %+v", r.Params)
				}
				return &mcp.ElicitResult{Action: "accept"}, nil
			}}
	}, func(s *mcp.Server, _ way) {
		tool(s, "login", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if answer, ok := r.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
				return say(answer.Action), nil
			}
			return &mcp.CallToolResult{RequestState: "state", InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{
				Mode: "url", Message: "Sign in.", URL: "https://login.example/x", ElicitationID: "e1"}}}, nil
		})
	}, func(p *peers) {
		if said := p.call("login", nil); said != "accept" {
			p.t.Errorf("%q", said)
		}
	})
}

func TestFeatureRoots(t *testing.T) {
	changed := make(chan bool, 10)
	eachWay(t, mcp.ServerOptions{RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) { changed <- true }}, noOptions, func(s *mcp.Server, _ way) {
		tool(s, "roots", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if answer, ok := r.Params.InputResponses["q"].(*mcp.ListRootsResult); ok {
				var all []string
				for _, root := range answer.Roots {
					all = append(all, root.URI)
				}
				return say(strings.Join(all, " ")), nil
			}
			return &mcp.CallToolResult{RequestState: "s", InputRequests: mcp.InputRequestMap{"q": &mcp.ListRootsParams{}}}, nil
		})
	}, func(p *peers) {
		if said := p.call("roots", nil); said != "file:///a" {
			p.t.Errorf("%q", said)
		}
		p.client.AddRoots(&mcp.Root{URI: "file:///b"})
		if !p.modern() { // later versions tell nobody
			got(p, "the change of roots", changed)
		}
		if said := p.call("roots", nil); said != "file:///a file:///b" {
			p.t.Errorf("after a change: %q", said)
		}
	})
}

func resource(s *mcp.Server, uri string) {
	s.AddResource(&mcp.Resource{URI: uri, Name: "r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, Text: "text of " + uri}}}, nil
	})
}

func TestFeatureResourceSubscriptions(t *testing.T) {
	came, over := make(chan string, 1000), make(chan string, 100)
	eachWay(t, mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error { over <- r.Params.URI; return nil },
	}, func() *mcp.ClientOptions {
		came = make(chan string, 1000) // what comes late is another way's
		into := came
		return &mcp.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { into <- r.Params.URI }}
	}, func(s *mcp.Server, _ way) {
		resource(s, "mem://a")
		resource(s, "mem://b")
		for _, uri := range []string{"mem://a", "mem://b"} {
			tool(s, "touch-"+uri[len(uri)-1:], func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return say("touched"), s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
			})
		}
	}, func(p *peers) {
		if err := p.Subscribe(p.ctx, &mcp.SubscribeParams{URI: "mem://a"}); err != nil {
			p.t.Fatal(err)
		}
		// This client does not wait until a server of 2026-07-28 acknowledges its subscription.
		for uri := ""; uri == ""; {
			p.call("touch-b", nil)
			p.call("touch-a", nil)
			select {
			case uri = <-came:
			case <-time.After(20 * time.Millisecond):
			case <-p.ctx.Done():
				p.t.Fatal("the update: nothing came")
			}
			if uri != "" && uri != "mem://a" {
				p.t.Errorf("updated: %s", uri)
			}
		}
		read, err := p.ReadResource(p.ctx, &mcp.ReadResourceParams{URI: "mem://a"})
		if err != nil || unframed(p.t, read.Contents[0].Text) != "text of mem://a" {
			p.t.Errorf("read %+v, %v", read, err)
		}
		if err := p.Unsubscribe(p.ctx, &mcp.UnsubscribeParams{URI: "mem://a"}); err != nil {
			p.t.Fatal(err)
		}
		if uri := got(p, "the end of the subscription at the server", over); uri != "mem://a" {
			p.t.Errorf("ended: %s", uri)
		}
	})
}

func TestFeatureCompletions(t *testing.T) {
	eachWay(t, mcp.ServerOptions{CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		value := r.Params.Ref.Name + r.Params.Ref.URI + " " + r.Params.Argument.Name + " " + r.Params.Argument.Value
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{value}, Total: 1}}, nil
	}}, noOptions, func(s *mcp.Server, _ way) {
		s.AddPrompt(&mcp.Prompt{Name: "p", Arguments: []*mcp.PromptArgument{{Name: "a"}}}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem://{id}", Name: "t"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
	}, func(p *peers) {
		for want, ref := range map[string]*mcp.CompleteReference{
			"p a x": {Type: "ref/prompt", Name: p.called("p")}, "mem://{id} a x": {Type: "ref/resource", URI: "mem://{id}"},
		} {
			r, err := p.Complete(p.ctx, &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "a", Value: "x"}})
			if err != nil || !slices.Equal(r.Completion.Values, []string{want}) || r.Completion.Total != 1 {
				p.t.Errorf("%s: %+v, %v", want, r, err)
			}
		}
	})
}

func TestFeatureListChanged(t *testing.T) {
	var tools, prompts, resources chan bool
	eachWay(t, mcp.ServerOptions{}, func() *mcp.ClientOptions {
		t, p, r := make(chan bool, 1000), make(chan bool, 1000), make(chan bool, 1000)
		tools, prompts, resources = t, p, r // what comes late is another way's
		return &mcp.ClientOptions{
			ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { t <- true },
			PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { p <- true },
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { r <- true },
		}
	}, func(s *mcp.Server, _ way) {
		prompt := func(name string) {
			s.AddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{}, nil
			})
		}
		prompt("old")
		resource(s, "mem://old")
		tool(s, "grow", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			tool(s, "grown", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("grown"), nil })
			prompt("grown")
			resource(s, "mem://grown")
			return say("grew"), nil
		})
	}, func(p *peers) {
		// Nor does it wait for this one, which it opens when it connects.
		for seen := 0; seen != 7; {
			p.call("grow", nil)
			select {
			case <-tools:
				seen |= 1
			case <-prompts:
				seen |= 2
			case <-resources:
				seen |= 4
			case <-time.After(20 * time.Millisecond):
			case <-p.ctx.Done():
				p.t.Fatalf("the changes: only %b came", seen)
			}
		}
		var have []string
		for tool, err := range p.Tools(p.ctx, nil) {
			if err != nil {
				p.t.Fatal(err)
			}
			have = append(have, tool.Name)
		}
		for prompt, err := range p.Prompts(p.ctx, nil) {
			if err != nil {
				p.t.Fatal(err)
			}
			have = append(have, prompt.Name+" prompt")
		}
		for resource, err := range p.Resources(p.ctx, nil) {
			if err != nil {
				p.t.Fatal(err)
			}
			have = append(have, resource.URI)
		}
		for _, want := range []string{p.called("grown"), p.called("grown") + " prompt", "mem://grown"} {
			if !slices.Contains(have, want) {
				p.t.Errorf("%s is not in %q", want, have)
			}
		}
		if said := p.call("grown", nil); said != "grown" {
			p.t.Errorf("%q", said)
		}
	})
}

func TestFeaturePagination(t *testing.T) {
	eachWay(t, mcp.ServerOptions{PageSize: 2}, noOptions, func(s *mcp.Server, _ way) {
		for i := range 7 {
			tool(s, fmt.Sprintf("t%d", i), func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("x"), nil })
			resource(s, fmt.Sprintf("mem://%d", i))
		}
	}, func(p *peers) {
		first, err := p.ListTools(p.ctx, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		// One server's pages pass as they are; those of several are read and shown as one.
		if pages := first.NextCursor != ""; pages == p.several || pages && len(first.Tools) != 2 {
			p.t.Errorf("the first page has %d tools, and %q follows", len(first.Tools), first.NextCursor)
		}
		var names, uris []string
		for tool, err := range p.Tools(p.ctx, nil) {
			if err != nil {
				p.t.Fatal(err)
			}
			if !strings.HasPrefix(tool.Name, "other") {
				names = append(names, tool.Name)
			}
		}
		for resource, err := range p.Resources(p.ctx, nil) {
			if err != nil {
				p.t.Fatal(err)
			}
			uris = append(uris, resource.URI)
		}
		for i := range 7 {
			if !slices.Contains(names, p.called(fmt.Sprintf("t%d", i))) || !slices.Contains(uris, fmt.Sprintf("mem://%d", i)) {
				p.t.Errorf("%d is missing: %q %q", i, names, uris)
			}
		}
		if len(names) != 7 || len(uris) != 7 {
			p.t.Errorf("%q %q", names, uris)
		}
	})
}

func TestFeaturePing(t *testing.T) {
	eachWay(t, mcp.ServerOptions{}, noOptions, func(s *mcp.Server, _ way) {
		tool(s, "ping", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return say("pinged"), r.Session.Ping(ctx, nil)
		})
	}, func(p *peers) {
		if p.modern() { // which has none
			return
		}
		if err := p.Ping(p.ctx, nil); err != nil {
			p.t.Errorf("the client's ping: %v", err)
		}
		if said := p.call("ping", nil); said != "pinged" { // and the server's
			p.t.Errorf("%q", said)
		}
	})
}
