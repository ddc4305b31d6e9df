package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
)

func newEgress() *cobra.Command {
	var f egressFlags
	cmd := &cobra.Command{
		Use:   "egress [flags] [-- COMMAND [ARG…]]",
		Short: "Run the egress proxy: connections to listed hosts at outward addresses, and nothing else",
		Long: `Run the egress proxy on one port, for CONNECT, plain HTTP and SOCKS5. It lets connections through to the hosts that the
file's egress section lists, at outward addresses, and refuses the rest; without a file it refuses everything.

Each decision and each closed connection is one line of JSON on standard error. Port 0 takes a free one; the address is
printed as JSON on standard output. SIGHUP reads the file again; a bad file keeps the rules in force.

With a command behind --, the command runs with the proxy variables set and the proxy ends with it. That alone does not
keep the command from going round the proxy: hearsay run does.`,
		Example: `  hearsay egress -c hearsay.yaml --listen 127.0.0.1:3128
  hearsay egress -c hearsay.yaml --listen 127.0.0.1:0 --metrics 127.0.0.1:9464
  hearsay egress -c hearsay.yaml -- curl https://api.example.com/
  hearsay egress explain -c hearsay.yaml https://api.example.com/v1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return usageError("unknown argument %q; a command stands behind --", args[0])
			}
			return f.run(cmd, args)
		},
	}
	cmd.Flags().StringVarP(&f.file, "config", "c", "", "the configuration `FILE`")
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "the `HOST:PORT` to listen on")
	cmd.Flags().StringVar(&f.metrics, "metrics", "", "the `HOST:PORT` of /metrics, for Prometheus")
	cmd.AddCommand(newEgressExplain())
	return cmd
}

type egressFlags struct{ file, listen, metrics string }

// egressRun is a proxy while it runs.
type egressRun struct {
	flags  egressFlags
	srv    *proxy.Server
	log    *slog.Logger
	audit  *audit.Log
	file   *config.File
	client proxy.Client
	names  []string // of all clients in force
	ports  []uint16 // further listeners of this process
}

func (f egressFlags) run(cmd *cobra.Command, command []string) (err error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	level := slog.LevelInfo
	if len(command) > 0 {
		level = slog.LevelWarn // the command's own words come first
	}
	r := &egressRun{flags: f, log: slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))}
	r.file = &config.File{}
	if f.file != "" {
		if r.file, err = config.Load(f.file); err != nil {
			return err
		}
	}
	client, others, err := r.file.ProxyClients()
	if err != nil {
		return err
	}
	r.client = client
	if len(r.file.Credentials) > 0 {
		if err := broker.Harden(); err != nil {
			return fmt.Errorf("keeping this process's memory from others: %w", err)
		}
	}
	if r.audit, err = r.file.Audit.Open(); err != nil {
		return err
	}
	if r.audit != nil {
		defer func() { err = errors.Join(err, r.audit.Close()) }()
	}

	// The proxy's own idle limit ends connections whose client has vanished; probes would only cost system calls.
	l, err := (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return err
	}
	defer l.Close()
	if a := l.Addr().(*net.TCPAddr); !a.IP.IsLoopback() && client.Login == nil && client.Peer == nil {
		return usageError("%s is reachable by others, and nobody would have to log in: name clients in proxy.clients, or listen on 127.0.0.1", a)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started := map[string]any{"addr": l.Addr().String(), "port": l.Addr().(*net.TCPAddr).Port}
	options, err := r.file.ProxyOptions()
	if err != nil {
		return err
	}
	options.Logger, options.OwnPorts = r.log, func() []uint16 { return r.ports }
	if r.audit != nil {
		options.Record = recordEgress(r.audit)
	}
	if f.metrics != "" {
		ml, err := net.Listen("tcp", f.metrics)
		if err != nil {
			return err
		}
		defer ml.Close()
		r.ports = append(r.ports, uint16(ml.Addr().(*net.TCPAddr).Port))
		started["metrics"] = ml.Addr().String()
		meter, page, err := egressMetrics()
		if err != nil {
			return err
		}
		options.Meter = meter
		web := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(r.log.Handler(), slog.LevelWarn)}
		wg.Go(func() { _ = web.Serve(ml) })
		defer web.Close()
	}
	if r.srv, err = proxy.New(options); err != nil {
		return err
	}
	r.use(client, others)
	tlsConfig, err := r.file.ProxyTLS()
	if err != nil {
		return err
	}
	serving := l
	if tlsConfig != nil {
		serving = tls.NewListener(l, tlsConfig)
	}
	served := make(chan error, 1)
	wg.Go(func() { served <- r.srv.Serve(ctx, serving, client) })
	wg.Go(func() { r.reloads(ctx) })
	if len(command) > 0 {
		return r.command(ctx, cmd, command, l.Addr().String())
	}
	if err := json.NewEncoder(cmd.OutOrStdout()).Encode(started); err != nil {
		return err
	}
	return <-served
}

// use puts clients in force and says loudly what in their rules reaches far. Clients that are gone may do nothing any more.
func (r *egressRun) use(client proxy.Client, others []proxy.Client) {
	all := append([]proxy.Client{client}, others...)
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
		for _, w := range c.Dialer.Policy.Warnings() {
			r.log.Warn("egress policy", "client", c.Name, "warning", w)
		}
	}
	for _, old := range r.names {
		if !slices.Contains(names, old) {
			all = append(all, proxy.Client{Name: old})
		}
	}
	r.names = names
	r.srv.Update(all...)
}

// reloads reads the file again at each SIGHUP. A bad file keeps the rules in force.
func (r *egressRun) reloads(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			if err := r.reload(); err != nil {
				r.log.Error("egress reload", "error", err.Error(), "kept", "the rules in force")
			} else {
				r.log.Info("egress reload", "file", r.flags.file)
			}
		}
	}
}

func (r *egressRun) reload() error {
	if r.flags.file == "" {
		return errors.New("there is no file to read again; start with -c FILE")
	}
	file, err := config.Load(r.flags.file)
	if err != nil {
		return err
	}
	client, others, err := file.ProxyClients()
	if err != nil {
		return err
	}
	if (client.Login == nil) != (r.client.Login == nil) || (client.Peer == nil) != (r.client.Peer == nil) {
		return errors.New("how clients log in changed, which needs a new start")
	}
	if r.audit != nil {
		if err := r.audit.Append(audit.Event{Kind: audit.Change, Text: "the egress rules were read again"}); err != nil {
			return err
		}
	}
	r.file = file
	r.use(client, others)
	return nil
}

// command runs a command with the proxy's variables and passes its exit code on.
func (r *egressRun) command(ctx context.Context, cmd *cobra.Command, command []string, addr string) error {
	child := exec.Command(command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	child.Env = append(without(os.Environ(), append(r.file.SecretEnv(), proxyVariables...)), proxyEnv(addr)...)
	if err := child.Start(); err != nil {
		return err
	}
	done := context.AfterFunc(ctx, func() { _ = child.Process.Signal(syscall.SIGTERM) })
	defer done()
	err := child.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code := exit.ExitCode()
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			code = 128 + int(s.Signal())
		}
		return withCode(code, nil)
	}
	return err
}

// proxyVariables are the environment variables by which clients find a proxy; those of the caller are not passed on.
var proxyVariables = []string{
	"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "grpc_proxy", "GRPC_PROXY",
	"npm_config_proxy", "npm_config_https_proxy", "npm_config_noproxy", "NODE_USE_ENV_PROXY", "CLOUDSDK_PROXY_TYPE",
}

// proxyEnv are the variables that point clients to the proxy. Only loopback goes past it.
func proxyEnv(addr string) []string {
	var env []string
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "grpc_proxy", "npm_config_proxy", "npm_config_https_proxy"} {
		env = append(env, name+"=http://"+addr)
	}
	for _, name := range []string{"all_proxy", "ALL_PROXY"} {
		env = append(env, name+"=socks5h://"+addr)
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		env = append(env, name+"=localhost,127.0.0.1,::1")
	}
	return append(env, "NODE_USE_ENV_PROXY=1")
}

// without leaves out variables by name.
func without(env, names []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(names, name)
	})
}

// recordEgress writes the proxy's events to the audit log.
func recordEgress(log *audit.Log) func(proxy.Event) error {
	return func(e proxy.Event) error {
		out := audit.Event{
			Kind: audit.Decision, Principal: e.Client, Target: e.Target.String(), Tool: e.Method, Rule: e.Rule, Reason: string(e.Reason), Answer: "deny",
			Detail: map[string]string{"conn": strconv.FormatUint(e.Conn, 10), "protocol": string(e.Protocol)},
		}
		if e.Allowed {
			out.Answer = "allow"
		}
		if len(e.Addrs) > 0 {
			out.Addr = e.Addrs[0].String()
		}
		if s := e.Class.String(); s != "unknown" {
			out.Class = s
		}
		if e.Report {
			out.Detail["report_only"] = "true"
		}
		if e.Stamped {
			out.Detail["stamped"] = "true"
		}
		if e.Kind == proxy.KindClosed {
			out.Kind, out.Answer = audit.Result, ""
			out.Detail["up"], out.Detail["down"] = strconv.FormatInt(e.Up, 10), strconv.FormatInt(e.Down, 10)
			out.Detail["duration"] = e.Duration.String()
		}
		return log.Append(out)
	}
}

// egressMetrics makes a meter and the page that shows it.
func egressMetrics() (metric.Meter, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	return provider.Meter("hearsay/egress"), mux, nil
}
