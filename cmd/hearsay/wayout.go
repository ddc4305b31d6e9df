package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// wayOut serves the sockets of a sandbox. What connects to them is in that sandbox and under its rules.
type wayOut struct {
	stop    context.CancelFunc
	serving sync.WaitGroup
}

// serveWayOut begins to serve; close ends it. A sandbox without a network has nothing to serve.
func serveWayOut(ctx context.Context, p *sandbox.Process, client proxy.Client, opt proxy.Options) (*wayOut, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &wayOut{stop: stop}
	if p.Listener() == nil {
		return w, nil
	}
	srv, err := proxy.New(opt)
	if err != nil {
		stop()
		return nil, err
	}
	names := new(proxy.Names)
	log := opt.Logger
	if log == nil {
		log = slog.Default()
	}
	serve := func(what string, serve func() error) {
		w.serving.Go(func() {
			if err := serve(); err != nil {
				log.Error("the way out of a sandbox failed", "sandbox", client.Name, "socket", what, "error", err)
			}
		})
	}
	serve("proxy", func() error { return srv.Serve(ctx, p.Listener(), client) })
	for _, l := range p.Transparent() {
		serve(l.Addr().String(), func() error { return srv.ServeTransparent(ctx, l, client, names) })
	}
	serve("names", func() error { return srv.ServeDNS(ctx, p.DNS(), client, names) })
	return w, nil
}

// close ends every connection and waits for them.
func (w *wayOut) close() {
	w.stop()
	w.serving.Wait()
}

// transparentPorts are the ports that allow entries name besides 80 and 443: connections to them are taken too, so that programs
// which know no proxy reach what they may.
func transparentPorts(allow []string) []uint16 {
	var ports []uint16
	for _, entry := range allow {
		if i := strings.LastIndexByte(entry, ' '); i >= 0 { // a rule for requests, with a URL
			continue
		}
		host, port, ok := cutPort(entry)
		if n, err := strconv.ParseUint(port, 10, 16); ok && host != "" && err == nil && n != 0 && n != sandbox.ProxyPort {
			ports = append(ports, uint16(n))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

func cutPort(entry string) (host, port string, ok bool) {
	i := strings.LastIndexByte(entry, ':')
	if i < 0 || strings.IndexByte(entry[i:], ']') >= 0 || strings.Count(entry, ":") > 1 && !strings.Contains(entry, "]") {
		return entry, "", false
	}
	return entry[:i], entry[i+1:], true
}

// auditSandbox records a sandbox and what was found to be in force. It comes before the command runs; without the record it does not.
func auditSandbox(log *audit.Log, name string, spec *sandbox.Spec, r sandbox.Report) error {
	if log == nil {
		return nil
	}
	detail := map[string]string{"what": "sandbox", "preset": spec.Preset.String(), "network": "none", "kernel": r.Kernel, "landlock_abi": strconv.Itoa(r.LandlockABI)}
	if spec.Network == sandbox.Egress {
		detail["network"] = "egress"
	}
	if len(r.Weaker) > 0 {
		detail["weaker"] = joined(r.Weaker, " ")
	}
	for _, l := range r.Layers {
		detail["layer "+l.Name] = strings.TrimSpace(string(l.State) + ": " + l.Detail)
	}
	for i, n := range r.Notes {
		detail[fmt.Sprintf("note %d", i+1)] = n
	}
	return log.Append(audit.Event{Kind: audit.Start, Server: name, Detail: detail})
}

func joined(modes []sandbox.Weaker, by string) string {
	var names []string
	for _, m := range modes {
		names = append(names, string(m))
	}
	return strings.Join(names, by)
}

// recordConnections writes every connection of a sandbox into the audit log before it is made, and tells a person of the refused ones;
// both may be nil.
func recordConnections(log *audit.Log, tell io.Writer) func(proxy.Event) error {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(e proxy.Event) error {
		if e.Kind == proxy.KindDecision && !e.Allowed {
			mu.Lock()
			key := e.Target.String() + string(e.Reason)
			if tell != nil && !told[key] && len(told) < maxTold {
				told[key] = true
				target := "a target that could not be read"
				if e.Target.IsValid() {
					target = e.Target.String()
				}
				fmt.Fprintf(tell, "hearsay: refused a connection to %s: %s\n", target, e.Reason)
			}
			mu.Unlock()
		}
		if log == nil {
			return nil
		}
		event := audit.Event{Kind: audit.Decision, Server: e.Client, Target: e.Target.String(), Rule: e.Rule, Reason: string(e.Reason), Answer: "deny",
			Detail: map[string]string{"protocol": string(e.Protocol)}}
		if e.Allowed {
			event.Answer = "allow"
		}
		if e.Class.Kind != "" {
			event.Class = e.Class.String()
		}
		if e.Kind != proxy.KindDecision {
			event.Kind, event.Answer = audit.Result, ""
			event.Detail["up"], event.Detail["down"] = strconv.FormatInt(e.Up, 10), strconv.FormatInt(e.Down, 10)
			event.Detail["duration"] = e.Duration.Round(time.Millisecond).String()
			return log.Note(event)
		}
		return log.Append(event)
	}
}

// maxTold bounds how many refused targets a person is told of; the audit log has all.
const maxTold = 64

// sandboxError gives the exit code of a sandbox that could not be made or a command that could not be started in it.
func sandboxError(err error) error {
	var command *sandbox.CommandError
	if errors.As(err, &command) {
		if command.NotFound {
			return withCode(exitNotFound, err)
		}
		return withCode(exitNotExecutable, err)
	}
	return withCode(exitSandbox, err)
}

// As shells have it.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)
