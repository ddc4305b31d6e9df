// Agent is an agent without MCP: a tool loop whose every call passes the gate and whose every result is screened, taken
// into the session's state and framed before the model reads it. The model here is scripted: it obeys the mail it reads.
//
//	go run ./examples/agent
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/screen"
)

// agent is a session: who decides, who looks, who writes down, and what may still be done.
type agent struct {
	policy  *gate.Policy
	screens *screen.Set
	log     *audit.Log
	state   gate.State
	tools   map[string]func(args map[string]any) string
}

// call runs one tool call of the model and gives what the model may read of it.
func (a *agent) call(ctx context.Context, c gate.Call) (string, error) {
	decision := a.policy.Decide(c, a.state) // Ask is a question to a person; nobody is here, so it is a no
	args, err := json.Marshal(c.Args)
	if err != nil {
		return "", err
	}
	if err := a.log.Append(audit.Event{Kind: audit.Decision, Server: c.Server, Tool: c.Tool, Answer: decision.Answer.String(),
		Rule: decision.Rule, Reason: string(decision.Reason), Shape: audit.Shape(c.Args), Digest: audit.Digest(args)}); err != nil {
		return "", err // what cannot be recorded does not happen
	}
	if decision.Answer != gate.Allow {
		return decision.Reason.AgentText(), nil
	}
	a.state = a.state.Commit(c)
	seen := a.screens.Check(ctx, screen.Input{Tool: c.Server + "__" + c.Tool, Text: a.tools[c.Server+"."+c.Tool](c.Args)})
	a.state = a.state.Observe(gate.Observation{Source: c.Server, Tool: c.Tool, Text: seen.Text}) // before the model reads it
	if seen.Verdict != screen.Pass && seen.Verdict != screen.Rewrite {
		return seen.Reason, nil
	}
	return envelope.Envelope{Kind: "tool-result", Provenance: "This is the result of " + c.Server + "." + c.Tool + "."}.Wrap(seen.Text), nil
}

func main() {
	dir, err := os.MkdirTemp("", "hearsay-agent")
	if err == nil {
		err = run(context.Background(), os.Stdout, filepath.Join(dir, "audit.jsonl"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}
