package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/audit"
	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/gateway"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// launcher starts the servers of a file, each in a sandbox of its own unless the file says otherwise.
type launcher struct {
	file     *config.File
	stateDir string // kept folders of servers and fetched packages are below it
	audit    *audit.Log
	log      *slog.Logger
}

// launch is [gateway.Options].Launch. The sandbox outlives the call that starts the server; the gateway ends it.
func (l *launcher) launch(ctx context.Context, s gateway.Server) (*gateway.Process, error) {
	section := l.file.Servers[s.Server]
	if section == nil {
		return nil, fmt.Errorf("server %s is not in the file", s.Server)
	}
	if section.Sandbox != nil && section.Sandbox.Off {
		if l.audit != nil {
			err := l.audit.Append(audit.Event{Kind: audit.Start, Server: s.Server, Detail: map[string]string{"what": "server", "sandbox": "off"}})
			if err != nil {
				return nil, err
			}
		}
		return gateway.Exec(ctx, s)
	}
	spec, err := l.spec(section, s)
	if err != nil {
		return nil, err
	}
	p, err := sandbox.Start(context.WithoutCancel(ctx), spec)
	if err != nil {
		return nil, l.explain(s.Server, err)
	}
	var way *wayOut
	if err = auditSandbox(l.audit, s.Server, &spec, p.Report()); err == nil { // on record before anything runs
		way, err = l.wayOut(ctx, p, s.Server, section)
	}
	if err == nil {
		err = p.Go()
	}
	if err != nil {
		p.Kill()
		p.Wait()
		if way != nil {
			way.close()
		}
		return nil, l.explain(s.Server, err)
	}
	return &gateway.Process{
		Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr,
		Terminate: func() { terminate(p) }, Kill: func() { p.Kill() },
		Wait: func() string {
			exit, err := p.Wait()
			way.close()
			if err != nil {
				return err.Error()
			}
			return exit.String()
		},
	}, nil
}

// explain says how to decide where the machine cannot sandbox a server.
func (l *launcher) explain(server string, err error) error {
	var layer *sandbox.LayerError
	if errors.As(err, &layer) {
		return fmt.Errorf("server %s is not started: %w. To run it without a sandbox, write sandbox: off at that server in %s; it is logged and shown with each question", server, err, l.file.Path)
	}
	return fmt.Errorf("server %s: %w", server, err)
}

// spec makes the sandbox of a server: its preset, its kept folder, what its package needs to be read, and no network but its own.
func (l *launcher) spec(section *config.Server, s gateway.Server) (sandbox.Spec, error) {
	spec, err := section.Sandbox.Spec()
	if err != nil {
		return spec, err
	}
	spec.Args, spec.Dir = s.Command, s.Dir
	if err := guardOwn(&spec, l.file); err != nil {
		return spec, err
	}
	for _, e := range s.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if !inBase(name) { // the sandbox has its own PATH, HOME and the like
			spec.Env = append(spec.Env, e)
		}
	}
	if spec.State == "" {
		spec.State = filepath.Join(l.stateDir, "servers", s.Server)
	}
	if pkg, ok := npxPackage(s.Command); ok {
		args, dir, err := installedPackage(l.stateDir, pkg)
		if err != nil {
			return spec, err
		}
		spec.Args = append(args, pkg.args...)
		spec.Read = append(spec.Read, dir)
	}
	if section.Egress != nil && (len(section.Egress.Allow) > 0 || section.Egress.ReportOnly) {
		spec.Network = sandbox.Egress
		spec.Ports = transparentPorts(section.Egress.Allow)
	}
	return spec, nil
}

func inBase(name string) bool {
	for _, n := range gateway.BaseEnv {
		if n == name {
			return true
		}
	}
	return false
}

// wayOut serves the server's network, under the rules of its own section.
func (l *launcher) wayOut(ctx context.Context, p *sandbox.Process, name string, section *config.Server) (*wayOut, error) {
	policy, err := section.Egress.Policy()
	if err != nil {
		return nil, err
	}
	resolver, err := section.Egress.Resolver()
	if err != nil {
		return nil, err
	}
	broker, err := l.file.Broker()
	if err != nil {
		return nil, err
	}
	return serveWayOut(context.WithoutCancel(ctx), p, proxy.Client{Name: name, Dialer: &egress.Dialer{Policy: policy, Resolver: resolver}, Broker: broker}, proxy.Options{
		Logger: l.log, Record: recordConnections(l.audit, nil),
	})
}
