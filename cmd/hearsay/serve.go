package main

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/internal/era"
	"github.com/seed-4e9f7b04/hearsay/internal/streamhttp"
)

const (
	defaultServe = "127.0.0.1:8377"
	mcpPath      = "/mcp"
	approvePath  = "/approvals/"
	metricsPath  = "/metrics"
)

func newServe() *cobra.Command {
	var file, profile, listen string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "The gateway on streamable HTTP, with the approvals page and /metrics",
		Long: `Serve the servers of a file on streamable HTTP at /mcp, to clients of every protocol version up to 2026-07-28, each with its own
server processes. The approvals page is at /approvals/, counts for Prometheus at /metrics.

Every path but the page needs a bearer token: the one of serve.token_file, which is made where it is absent, or one for each
client; without either the one in hearsay's state folder that is named at the start. Only loopback names and those under
serve.hosts and serve.origins are answered. SIGTERM ends it in order.`,
		Example: "  hearsay serve -c hearsay.yaml\n  hearsay serve -c hearsay.yaml --listen 127.0.0.1:0",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := loadFile(file)
			if err != nil {
				return err
			}
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return serveHTTP(ctx, cmd, f, profile, listen, log)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the `FILE` with the servers and their rules (default: hearsay/hearsay.yaml in your configuration folder)")
	cmd.Flags().StringVar(&profile, "profile", "", "the `PROFILE` of the file that holds")
	cmd.Flags().StringVar(&listen, "listen", "", "the `HOST:PORT` to listen on (default: serve.listen, or "+defaultServe+")")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also log what was treated")
	return cmd
}

func serveHTTP(ctx context.Context, cmd *cobra.Command, f *config.File, profile, listen string, log *slog.Logger) error {
	section := f.Serve
	if section == nil {
		section = new(config.Serve)
	}
	if listen == "" {
		if listen = section.Listen; listen == "" {
			listen = defaultServe
		}
	}
	tlsConfig, err := section.TLSConfig()
	if err != nil {
		return err
	}
	tokens, err := serveTokens(section)
	if err != nil {
		return err
	}
	shared, err := sharedToken(section)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer ln.Close()
	if !ln.Addr().(*net.TCPAddr).IP.IsLoopback() && tlsConfig == nil {
		return usageError("%s is not a loopback address: tokens would cross the network in the clear; give serve.tls a certificate, or listen on 127.0.0.1", listen)
	}
	h, err := openHouse(ctx, f, profile, log, func() (gateway.Host, error) {
		return gateway.Host{}, errors.New("a client without a name")
	})
	if err != nil {
		return err
	}
	handler, err := streamhttp.NewHandler(streamhttp.HandlerOptions{
		Connect: func(ctx context.Context, s *streamhttp.Session) error {
			return h.gateway.Serve(ctx, gateway.Client{Transport: s, Principal: s.Principal})
		},
		Authenticate: tokens.principal, Hosts: section.Hosts, Origins: section.Origins, Versions: era.Versions(), Log: log,
	})
	if err != nil {
		h.close("failed to start")
		return err
	}
	counts := prometheus.NewRegistry()
	counts.MustRegister(h.counts)
	mux := http.NewServeMux()
	mux.Handle(mcpPath, handler)
	mux.Handle(approvePath, http.StripPrefix(strings.TrimSuffix(approvePath, "/"), h.page))
	mux.Handle("GET "+metricsPath, guarded(handler, tokens, promhttp.HandlerFor(counts, promhttp.HandlerOpts{})))
	server := &http.Server{
		Handler: mux, TLSConfig: tlsConfig, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	scheme := "http"
	if tlsConfig != nil {
		scheme, ln = "https", tls.NewListener(ln, tlsConfig)
	}
	base := scheme + "://" + ln.Addr().String()
	fmt.Fprintf(cmd.ErrOrStderr(), "hearsay: questions are answered with hearsay approve, or once within ten minutes at %s%s%s\n", base, approvePath, h.page.SignInQuery())
	if shared != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "hearsay: clients show the bearer token that stands in %s\n", shared)
	}
	if err := json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"mcp": base + mcpPath, "approvals": base + approvePath, "metrics": base + metricsPath}); err != nil {
		h.close("failed to start")
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		err = nil
	}
	h.desk.Close()
	handler.Close() // ends every session, and with it every stream
	shut, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if server.Shutdown(shut) != nil {
		server.Close()
	}
	h.close("stopped")
	return err
}

// tokenList knows the clients by their tokens.
type tokenList []struct{ name, token string }

func serveTokens(s *config.Serve) (tokenList, error) {
	var list tokenList
	add := func(name, file string) error {
		token, err := config.Token(file)
		if err != nil {
			return fmt.Errorf("serve: the token of %s: %w", name, err)
		}
		for _, other := range list {
			if other.token == token || other.name == name {
				return fmt.Errorf("serve: %s and %s are the same client", other.name, name)
			}
		}
		list = append(list, struct{ name, token string }{name, token})
		return nil
	}
	for _, c := range s.Clients {
		if c.Name == "" || c.TokenFile == "" {
			return nil, errors.New("serve: a client needs a name and a token_file")
		}
		if err := add(c.Name, c.TokenFile); err != nil {
			return nil, err
		}
	}
	if len(list) > 0 && s.TokenFile == "" {
		return list, nil
	}
	file, err := sharedToken(s)
	if err != nil {
		return nil, err
	}
	return list, add("default", file)
}

// serveToken is the name, in the folder of the state, of the token file that serve makes where none is named.
const serveToken = "serve-token"

// sharedToken is the file with the token of everyone; "" where each client has its own.
func sharedToken(s *config.Serve) (string, error) {
	if s.TokenFile != "" || len(s.Clients) > 0 {
		return s.TokenFile, nil
	}
	dir, err := config.StateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, serveToken), nil
}

// principal tells whose token a request carries. All are compared, so that the time tells nothing.
func (l tokenList) principal(r *http.Request) (string, bool) {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	name, found := "", false
	for _, client := range l {
		if subtle.ConstantTimeCompare([]byte(given), []byte(client.token)) == 1 {
			name, found = client.name, true
		}
	}
	return name, ok && found
}

// guarded serves a path beside MCP under the same checks.
func guarded(h *streamhttp.Handler, tokens tokenList, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason := h.Guard(r); reason != "" {
			http.Error(w, reason, http.StatusForbidden)
			return
		}
		if _, ok := tokens.principal(r); !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "A bearer token is needed.", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
