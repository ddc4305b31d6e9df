package gateway

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/internal/approve"
	"github.com/seed-4e9f7b04/hearsay/internal/era"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/screen"
)

// Server is one MCP server behind the gateway.
type Server struct {
	Source           // its name, and how its messages are treated
	Command []string // program and arguments, started by [Options.Launch]; or else
	// Connect opens a connection to a server that runs elsewhere; ctx bounds the opening only. It is called again after the
	// connection ended.
	Connect func(ctx context.Context) (jsonrpc.Transport, error)
	// URL is where a server that runs elsewhere is: part of what is pinned.
	URL     string
	Env     []string // NAME=value, beside the allow-listed ones of [BaseEnv]
	PassEnv []string // names of variables of the gateway's own environment that it gets too
	Dir     string   // working folder; "" = the gateway's
	// Warnings are what a person who is asked about a call should know of the server.
	Warnings []string
	// AtStart starts it with the session, not when it is first needed.
	AtStart bool
	// CallTimeout is how long a call may take; progress starts it anew. 0 = [DefaultCallTimeout], negative = for ever.
	CallTimeout time.Duration
}

// DefaultCallTimeout is beyond what clients wait by default (one minute for the official SDKs).
const DefaultCallTimeout = 10 * time.Minute

// Options are the options of [NewGateway].
type Options struct {
	Servers []Server

	// Launch starts a server. nil = [Exec]: an ordinary process with an environment of its own and no further walls.
	Launch func(ctx context.Context, s Server) (*Process, error)

	// Joined names tools and prompts server__name also where there is only one server. With several they always are.
	Joined bool
	// Version is what the gateway calls its own version where it answers for several servers.
	Version string

	// Log is told what was dropped, refused and restarted, and what servers write to standard error; nil = nobody.
	// It gets words of servers: cleaned, cut and as values only.
	Log *slog.Logger

	// Pins says which definitions were approved, and what becomes of others.
	Pins Pins

	// Policy judges each tool call; nil = every call is let through.
	Policy *gate.Policy
	// Budget is how many refusals a client gets before it is halted.
	Budget gate.Budget
	// Trusted is what every session knows from the start: the operator's store.
	Trusted []gate.Observation
	// UserKey checks what an agent host says that the user said, see [gate.SignWords]; nil = nothing a client sends counts as that.
	UserKey []byte
	// Keep keeps what a client may do over a restart; nil = in memory. It is called once for each principal at a time, and for
	// each session of a client without one.
	Keep func(principal string) (Keeper, error)
	// Ask puts a question to a person who is out of the agent's reach; nil = nobody is there, so the answer is no. It records
	// the answer.
	Ask func(ctx context.Context, q approve.Question) approve.Answer
	// Elicit also puts questions of low risk to the client, where it says that it asks its user.
	Elicit bool
	// Audit keeps the decisions; nil = nobody does. A decision that cannot be written is Deny.
	Audit *audit.Log
	// Count is told of each event that the audit log gets, or would; nil = nobody.
	Count func(audit.Event)
	// Screens look at each text before it is framed; nil = none.
	Screens *screen.Set
}

// several says that the gateway answers for its servers, and joins names.
func (o Options) several() bool { return o.Joined || len(o.Servers) > 1 }

func (o Options) version() string {
	if o.Version == "" {
		return "0"
	}
	return o.Version
}

// Gateway stands between clients and servers. One Gateway serves any number of sessions.
type Gateway struct {
	opt      Options
	names    []string
	eras     map[string]*era.Memory // what is known of each server, by its name
	listWait time.Duration
	lookFor  time.Duration
	follow   func(path string) string // what a path names, "" for nothing that can be told
	deaf     bool                     // no server's results are trusted
	seal     cipher.AEAD              // of the states of servers, see [session.bind]

	mu          sync.Mutex // guards all below
	authorities map[string]*authority
	tasks       map[string]map[string]bool // whose calls became which tasks, see [session.ownsTask]
}

// NewGateway checks the options.
func NewGateway(opt Options) (*Gateway, error) {
	if len(opt.Servers) == 0 {
		return nil, errors.New("gateway: no server is given")
	}
	if opt.UserKey != nil && len(opt.UserKey) < gate.MinKey {
		return nil, fmt.Errorf("gateway: the key that checks the user's words has fewer than %d bytes", gate.MinKey)
	}
	seal, err := newSeal()
	if err != nil {
		return nil, err
	}
	g := &Gateway{opt: opt, listWait: listWait, lookFor: lookFor, follow: resolvePath, seal: seal, eras: map[string]*era.Memory{}, authorities: map[string]*authority{}, tasks: map[string]map[string]bool{}}
	g.opt.Servers = slices.Clone(opt.Servers)
	for i, s := range g.opt.Servers {
		switch {
		case slices.Contains(g.names, s.Server):
			return nil, fmt.Errorf("gateway: two servers are named %s", s.Server)
		case (len(s.Command) == 0) == (s.Connect == nil):
			return nil, fmt.Errorf("gateway: server %s needs a command or a way to connect, one of the two", s.Server)
		}
		g.names = append(g.names, s.Server)
		g.eras[s.Server] = new(era.Memory)
		if s.CallTimeout == 0 {
			g.opt.Servers[i].CallTimeout = DefaultCallTimeout
		}
	}
	if err := CheckServerNames(g.names, g.opt.several()); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.deaf = opt.Policy != nil && !opt.Policy.TrustsResults() && !slices.ContainsFunc(opt.Servers, func(s Server) bool { return s.Trust == FirstParty })
	if g.opt.Launch == nil {
		g.opt.Launch = Exec
	}
	if g.opt.Log == nil {
		g.opt.Log = slog.New(slog.DiscardHandler)
	}
	return g, nil
}

// Client is one client session.
type Client struct {
	Transport jsonrpc.Transport
	// Principal is who the client is, where that is known: it narrows what the gate allows.
	Principal string
	// Gone says that the client can read nothing any more, so that nothing need be finished for it. nil = not known.
	Gone func() bool
}

// Serve runs one client session and closes its transport: it returns when the client has ended, or ctx, and no process of the
// session is left. The error is nil when the client ended in order.
func (g *Gateway) Serve(ctx context.Context, c Client) error {
	a, err := g.authorityFor(c.Principal)
	if err != nil {
		c.Transport.Close()
		return err
	}
	return errors.Join(newSession(g, c, a).run(ctx), g.release(a, c.Principal))
}
