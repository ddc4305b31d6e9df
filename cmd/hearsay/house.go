package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/gate"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/approve"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/screen"
)

// house is a gateway with every room that its file names: policy, pins, sandboxes, approvals, audit.
type house struct {
	file    *config.File
	profile string
	log     *slog.Logger
	audit   *audit.Log
	desk    *approve.Desk
	page    *approve.Page
	gateway *gateway.Gateway
	policy  *gate.Policy
	counts  *prometheus.CounterVec

	stop    context.CancelFunc
	serving sync.WaitGroup
}

// openHouse builds everything, or nothing. host says which process the state of a client without a name belongs to; it is used on
// standard input and output only. close ends what it started.
func openHouse(ctx context.Context, file *config.File, profile string, log *slog.Logger, host func() (gateway.Host, error)) (*house, error) {
	h := &house{file: file, profile: profile, log: log, counts: prometheus.NewCounterVec(
		prometheus.CounterOpts{Name: "hearsay_gateway_events_total", Help: "Decisions, refusals, approvals, taints and results, as in the audit log."},
		[]string{"kind", "server", "answer", "reason"})}
	servers, err := file.GatewayServers()
	if err != nil {
		return nil, err
	}
	stateDir, err := config.StateDir()
	if err != nil {
		return nil, err
	}
	pins, err := file.GatewayPins()
	if err != nil {
		return nil, err
	}
	var budget gate.Budget
	if h.policy, budget, err = compile(file, profile, pins.Lock, stateDir, log); err != nil {
		return nil, err
	}
	if err := reach(file, servers, stateDir, log); err != nil {
		return nil, err
	}
	screens, err := screen.New(file.Screens.Options())
	if err != nil {
		return nil, err
	}
	userKey, err := file.UserKey()
	if err != nil {
		return nil, err
	}
	deskOptions, err := file.Approvals.Desk()
	if err != nil {
		return nil, err
	}
	pageOptions, err := file.Approvals.Page()
	if err != nil {
		return nil, err
	}
	if h.audit, err = file.Audit.Open(); err != nil {
		return nil, err
	}
	if h.audit != nil {
		deskOptions.Record = h.audit.Append
	}
	h.desk = approve.New(deskOptions)
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	fail := func(err error) (*house, error) {
		h.close("failed to start")
		return nil, err
	}
	if h.page, err = approve.NewPage(h.desk, pageOptions); err != nil {
		return fail(err)
	}
	launch := &launcher{file: file, stateDir: stateDir, audit: h.audit, log: log}
	opt := gateway.Options{
		Servers: servers, Launch: launch.launch, Log: log, Pins: pins, Policy: h.policy, Budget: budget,
		Ask: h.desk.Ask, Audit: h.audit, Screens: screens, Count: h.count, UserKey: userKey, Elicit: file.Approvals != nil && file.Approvals.Elicit,
		Keep: func(principal string) (gateway.Keeper, error) { return h.keep(stateDir, principal, host) },
	}
	if o, ok := file.Store.Observation(); ok {
		opt.Trusted = append(opt.Trusted, o)
	}
	if h.gateway, err = gateway.NewGateway(opt); err != nil {
		return fail(err)
	}
	if h.audit != nil {
		err := h.audit.Append(audit.Event{Kind: audit.Start, Detail: map[string]string{"what": "gateway", "file": file.Path, "profile": profile, "policy": h.policy.Version(), "version": version()}})
		if err != nil {
			return fail(err)
		}
	}
	if dir, err := approve.SocketDir(); err != nil {
		log.Warn("hearsay approve cannot reach this gateway", "why", err)
	} else {
		h.serving.Go(func() {
			if err := approve.Serve(ctx, h.desk, dir); err != nil {
				log.Warn("hearsay approve cannot reach this gateway", "why", err)
			}
		})
	}
	return h, nil
}

// count counts an event. All labels are the house's own words.
func (h *house) count(e audit.Event) {
	h.counts.WithLabelValues(string(e.Kind), e.Server, e.Answer, e.Reason).Inc()
}

// compile makes the policy of a profile, narrowed to the task that was named.
func compile(file *config.File, profile string, lock *gateway.Lock, stateDir string, log *slog.Logger) (*gate.Policy, gate.Budget, error) {
	spec, budget, err := file.Gate(profile, gateInput(file, lock))
	if err != nil {
		return nil, budget, fmt.Errorf("%s: %w", file.Path, err)
	}
	policy, err := gate.Compile(spec)
	if err != nil {
		return nil, budget, fmt.Errorf("%s: %w", file.Path, err)
	}
	task, err := config.NamedTask(stateDir)
	if err != nil || len(task) == 0 {
		return policy, budget, err
	}
	log.Info("only the tools of the task may be used; hearsay task --clear forgets it", "tools", task)
	policy, err = policy.ForTask(task...)
	return policy, budget, err
}

// keep opens the state of a client.
func (h *house) keep(stateDir, principal string, host func() (gateway.Host, error)) (gateway.Keeper, error) {
	path, err := filepath.Abs(h.file.Path)
	if err != nil {
		return nil, err
	}
	key := gateway.StateKey{Principal: principal, Gateway: path + "\x00" + h.profile}
	if principal == "" {
		if key.Host, err = host(); err != nil { // a machine where processes cannot be told apart
			h.log.Warn("what this session may do is kept in memory only", "why", err)
			return memoryKeeper{}, nil
		}
	}
	return gateway.OpenState(stateDir, key)
}

// memoryKeeper keeps nothing: the gateway's own memory is all.
type memoryKeeper struct{}

func (memoryKeeper) State() (gate.State, gate.Budget)   { return gate.State{}, gate.Budget{} }
func (memoryKeeper) Save(gate.State, gate.Budget) error { return nil }
func (memoryKeeper) Heard() ([]gate.Observation, error) { return nil, nil }
func (memoryKeeper) Close() error                       { return nil }

// servePage serves the approvals page beside a gateway on standard input and output, and tells where.
func (h *house) servePage(tell io.Writer) error {
	listen := "127.0.0.1:0"
	if a := h.file.Approvals; a != nil && a.Listen != "" {
		listen = a.Listen
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("serving the approvals page: %w", err)
	}
	if !ln.Addr().(*net.TCPAddr).IP.IsLoopback() {
		ln.Close()
		return fmt.Errorf("approvals.listen: %s is not a loopback address; hearsay serve has the page behind TLS", listen)
	}
	server := &http.Server{Handler: h.page, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug)}
	h.serving.Go(func() {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			h.log.Error("the approvals page ended", "why", err)
		}
	})
	stop := h.stop
	h.stop = func() { stop(); server.Close() }
	fmt.Fprintf(tell, "hearsay: questions are answered with hearsay approve, or once within ten minutes at http://%s/%s\n", ln.Addr(), h.page.SignInQuery())
	return nil
}

// close ends what the house started.
func (h *house) close(why string) {
	h.desk.Close()
	h.stop()
	h.serving.Wait()
	if h.audit != nil {
		h.audit.Append(audit.Event{Kind: audit.Stop, Detail: map[string]string{"what": "gateway", "why": why}})
		h.audit.Close()
	}
}

// loadFile reads the configuration that a flag names, or the default one.
func loadFile(path string) (*config.File, error) {
	if path == "" {
		var err error
		if path, err = config.DefaultPath(); err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil, usageError("name a file with -c, or put one at %s; docs/configuration.md shows one, and hearsay mcp -- COMMAND works without", path)
		}
	}
	return config.Load(path)
}
