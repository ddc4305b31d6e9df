package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "The whole story on this machine: a hostile server, an agent that obeys it, with and without hearsay",
		Long: `Show, without a network, a key or a model, what hearsay does and what it does not. A small agent that obeys whatever it
reads works with a hostile MCP server: first directly, then through the gateway, the gate, the egress proxy and the sandbox.
All of these are the real ones.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer tidily(cmd)()
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program, to start its own server: %w", err)
			}
			dir, err := os.MkdirTemp("", "hearsay-demo-")
			if err != nil {
				return fmt.Errorf("making a folder for the demo: %w", err)
			}
			defer os.RemoveAll(dir)
			d := &demo{out: cmd.OutOrStdout(), self: self, dir: dir}
			for _, chapter := range []func(context.Context) error{d.direct, d.framed, d.gated, d.egress, d.sandboxed} {
				if err := chapter(ctx); err != nil {
					return fmt.Errorf("the demo stopped: %w", err)
				}
			}
			d.say(`That is the whole story. The frame told the model; the gate, the proxy and the
sandbox did not ask it. What they do not stop is listed in THREATS.md.`)
			return nil
		},
	}
}

type demo struct {
	out       io.Writer
	self, dir string
	noSandbox error // why the last start in a sandbox failed
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demo) chapter(n int, title string) {
	fmt.Fprintf(d.out, "\n%d. %s\n%s\n", n, title, strings.Repeat("─", 78))
}

// show prints what reaches the model, marked line by line.
func (d *demo) show(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(d.out, strings.TrimRight("   │ "+wrapAt(strings.TrimRight(line, "\n"), 74, "\n   │   "), " "))
	}
}

// wrapAt breaks a line at spaces so that none is longer than width.
func wrapAt(s string, width int, by string) string {
	var out strings.Builder
	n := 0
	for i, word := range strings.Split(s, " ") {
		switch {
		case i == 0:
		case n+1+len(word) > width:
			out.WriteString(by)
			n = 2
		default:
			out.WriteByte(' ')
			n++
		}
		out.WriteString(word)
		n += len(word)
	}
	return out.String()
}

// direct connects the agent to the server with nothing in between.
func (d *demo) direct(ctx context.Context) error {
	d.chapter(1, "The agent talks to the server directly")
	p, err := gateway.Exec(ctx, d.server())
	if err != nil {
		return err
	}
	go io.Copy(io.Discard, p.Stderr)
	agent, err := newDemoAgent(ctx, jsonrpc.NewLines(p.Stdout, p.Stdin, jsonrpc.LineOptions{}))
	if err != nil {
		return err
	}
	defer p.Wait()
	defer agent.close()
	mail, err := agent.call(ctx, "read_inbox", strictjson.Object())
	if err != nil {
		return err
	}
	d.say("The user asks for a summary of the newest mail. What reaches the model:\n")
	d.show(mail)
	done, err := agent.obey(ctx, mail)
	if err != nil {
		return err
	}
	d.say("\nThe agent does as it reads: %s", done)
	return nil
}

// framed puts the gateway in between, without a policy.
func (d *demo) framed(ctx context.Context) error {
	d.chapter(2, "The gateway frames what the server says")
	agent, end, err := d.connect(ctx, gateway.Options{})
	if err != nil {
		return err
	}
	defer end()
	mail, err := agent.call(ctx, "read_inbox", strictjson.Object())
	if err != nil {
		return err
	}
	d.show(mail)
	agent.heedsFrames = true
	heeded, err := agent.obey(ctx, mail)
	if err != nil {
		return err
	}
	d.say("\nThe mail tried to close the frame; its tag is defanged, so the frame ends where")
	d.say("the gateway ended it. An agent that heeds frames: %s", heeded)
	agent.heedsFrames = false
	fooled, err := agent.obey(ctx, mail)
	if err != nil {
		return err
	}
	d.say("One that is fooled all the same: %s\nA label is not a boundary. From here on the agent is taken to be fooled.", fooled)
	return nil
}

// gated adds a policy that allows both tools, and a record.
func (d *demo) gated(ctx context.Context) error {
	d.chapter(3, "The gate decides what a fooled agent may do")
	policy, err := gate.Compile(gate.Spec{
		Permissions: gate.Permissions{Allow: []gate.Source{{Text: "mail.read_inbox"}, {Text: "mail.send_mail"}}},
		Tools: []gate.ToolSpec{
			{Labels: gate.ToolLabels{Server: "mail", Tool: "read_inbox", Effects: gate.Read}},
			{Labels: gate.Draft(gate.ToolDef{Server: "mail", Name: "send_mail", Description: "Send a mail."})},
		},
	})
	if err != nil {
		return err
	}
	path := filepath.Join(d.dir, "audit.jsonl")
	log, err := audit.Open(path, audit.Options{})
	if err != nil {
		return err
	}
	defer log.Close()
	agent, end, err := d.connect(ctx, gateway.Options{Policy: policy, Audit: log})
	if err != nil {
		return err
	}
	defer end()
	before, err := agent.call(ctx, "send_mail", strictjson.Object(member("to", strictjson.String("ann@home.example")), member("body", strictjson.String("hello"))))
	if err != nil {
		return err
	}
	mail, err := agent.call(ctx, "read_inbox", strictjson.Object())
	if err != nil {
		return err
	}
	after, err := agent.obey(ctx, mail)
	if err != nil {
		return err
	}
	d.say("The operator's rules allow read_inbox and send_mail.\n")
	d.say("A mail sent before anything was read:\n")
	d.show(lastLines(before, 1))
	d.say("\nThe inbox is read: the session is tainted. What the mail orders then:\n")
	d.show(after)
	d.say("\nWho it goes to comes from the mail and from no trusted text, and nobody was\nthere to be asked. The record of it, which hearsay audit verify can check:")
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return audit.Entries(f, func(e audit.Entry, err error) bool {
		if err == nil && e.Kind == audit.Decision {
			fmt.Fprintf(d.out, "   %d %s %s__%s %s\n", e.Seq, strings.ToUpper(e.Answer), e.Server, e.Tool, e.Reason)
		}
		return true
	})
}

func (d *demo) server(more ...string) gateway.Server {
	return gateway.Server{Source: gateway.Source{Server: "mail"}, Command: append([]string{d.self, "demo-server"}, more...)}
}

// connect puts a gateway between the agent and the server, in this process.
func (d *demo) connect(ctx context.Context, opt gateway.Options) (*demoAgent, func(), error) {
	if len(opt.Servers) == 0 {
		opt.Servers = []gateway.Server{d.server()}
	}
	g, err := gateway.NewGateway(opt)
	if err != nil {
		return nil, nil, err
	}
	toGateway, fromAgent := io.Pipe()
	toAgent, fromGateway := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- g.Serve(ctx, gateway.Client{Transport: jsonrpc.NewLines(toGateway, fromGateway, jsonrpc.LineOptions{})})
	}()
	agent, err := newDemoAgent(ctx, jsonrpc.NewLines(toAgent, fromAgent, jsonrpc.LineOptions{}))
	if err != nil {
		return nil, nil, err
	}
	return agent, func() { agent.close(); <-served }, nil
}

// demoAgent is a model that does what it reads.
type demoAgent struct {
	peer        *jsonrpc.Peer
	transport   jsonrpc.Transport
	done        chan error
	heedsFrames bool
}

func newDemoAgent(ctx context.Context, t jsonrpc.Transport) (*demoAgent, error) {
	a := &demoAgent{peer: jsonrpc.NewPeer(t, nil), transport: t, done: make(chan error, 1)}
	go func() { a.done <- a.peer.Run(ctx, func(jsonrpc.Message) {}, func(*jsonrpc.BadMessage) {}) }()
	_, err := a.request(ctx, "initialize", strictjson.Object(
		member("protocolVersion", strictjson.String("2025-11-25")), member("capabilities", strictjson.Object()),
		member("clientInfo", strictjson.Object(member("name", strictjson.String("demo")), member("version", strictjson.String("1"))))))
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return a, a.peer.Notify(ctx, "notifications/initialized", strictjson.Object())
}

func (a *demoAgent) close() {
	a.transport.Close()
	<-a.done
}

func (a *demoAgent) request(ctx context.Context, method string, params strictjson.Value) (strictjson.Value, error) {
	call, err := a.peer.Open(nil)
	if err != nil {
		return strictjson.Value{}, err
	}
	m, err := call.Do(ctx, method, params)
	if err != nil {
		return strictjson.Value{}, err
	}
	if m.Error.Kind() != strictjson.KindAbsent {
		return strictjson.Value{}, errors.New(m.Error.Get("message").Str())
	}
	return m.Result, nil
}

// call calls a tool and gives the text the model reads: of a refusal too.
func (a *demoAgent) call(ctx context.Context, tool string, args strictjson.Value) (string, error) {
	result, err := a.request(ctx, "tools/call", strictjson.Object(member("name", strictjson.String(tool)), member("arguments", args)))
	if err != nil {
		return "", err
	}
	var texts []string
	for _, block := range result.Get("content").Elems() {
		texts = append(texts, block.Get("text").Str())
	}
	return strings.Join(texts, "\n"), nil
}

var demoOrder = regexp.MustCompile(`call (\w+) (\{.*\})`)

// obey does what the text tells it to, and says what came of it.
func (a *demoAgent) obey(ctx context.Context, text string) (string, error) {
	if _, framed := envelope.Body(text); framed && a.heedsFrames {
		return "nothing is done.", nil
	}
	order := demoOrder.FindStringSubmatch(text)
	if order == nil {
		return "", errors.New("the mail gives no order")
	}
	args, err := strictjson.ParseString(order[2], strictjson.Limits{})
	if err != nil {
		return "", err
	}
	answer, err := a.call(ctx, order[1], args)
	if err != nil {
		return "", err
	}
	return lastLines(answer, 1), nil
}

// lastLines gives what the answer says, without its frame.
func lastLines(text string, n int) string {
	if body, ok := envelope.Body(text); ok {
		text = body
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
