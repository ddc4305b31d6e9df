package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/config"
)

func newEgressExplain() *cobra.Command {
	var file, method, client string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain URL|HOST:PORT",
		Short: "Say whether a connection would be allowed, and why",
		Long: `Decide on one destination as the proxy would, without connecting: the canonical target, the rule that covers it, what
its name resolves to, what each address is, and the decision. Nothing is sent but DNS questions, and those only for a
name that the rules let through. What the proxy adds to that (limits, credentials, what is inside a tunnel) is not part of it.

Exit code 0 when the connection would be allowed, 3 when it would be refused. Without -c nothing is allowed.`,
		Example: `  hearsay egress explain -c hearsay.yaml https://api.example.com/v1
  hearsay egress explain -c hearsay.yaml --json db.internal.example:5432`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name one destination, for example: hearsay egress explain -c hearsay.yaml api.example.com:443")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dialer, err := explainDialer(file, client, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			out := explain(cmd, dialer, args[0], method)
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetEscapeHTML(false)
				if err := enc.Encode(out); err != nil {
					return err
				}
			} else if err := out.print(cmd.OutOrStdout()); err != nil {
				return err
			}
			if !out.Allowed {
				return withCode(exitRefused, nil)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "the configuration `FILE`")
	cmd.Flags().StringVar(&client, "client", "", "the `NAME` of a client of the proxy, to use its rules")
	cmd.Flags().StringVar(&method, "method", "GET", "the `METHOD` of a plain http URL, for entries with a path")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func explainDialer(file, client string, stderr io.Writer) (*egress.Dialer, error) {
	var f config.File
	if file != "" {
		loaded, err := config.Load(file)
		if err != nil {
			return nil, err
		}
		f = *loaded
	}
	section := f.Egress
	if client != "" && client != config.DefaultClient {
		i := -1
		if f.Proxy != nil {
			i = slices.IndexFunc(f.Proxy.Clients, func(c config.ProxyClient) bool { return c.Name == client })
		}
		if i < 0 {
			return nil, usageError("no client %q; proxy.clients of the file given with -c names them", client)
		}
		section = f.Proxy.Clients[i].Egress
	}
	policy, err := section.Policy()
	if err != nil {
		return nil, err
	}
	for _, w := range policy.Warnings() {
		fmt.Fprintf(stderr, "hearsay: warning: %s\n", w)
	}
	resolver, err := section.Resolver()
	if err != nil {
		return nil, err
	}
	return &egress.Dialer{Policy: policy, Resolver: resolver}, nil
}

// egressExplanation is what the command prints.
type egressExplanation struct {
	egress.Explanation
	Message string `json:"message,omitempty"` // the refusal as a sentence
	Next    string `json:"next,omitempty"`    // what an operator can write to allow it
}

func explain(cmd *cobra.Command, d *egress.Dialer, arg, method string) egressExplanation {
	target, req, err := explainTarget(arg, method)
	if err != nil {
		out := egressExplanation{Message: err.Error()}
		var te *egress.TargetError
		if errors.As(err, &te) {
			out.Reason = te.Reason
		}
		if out.Reason == egress.ReasonPort {
			out.Next = "name the port, as in api.example.com:443"
		}
		return out
	}
	out := egressExplanation{Explanation: d.Judge(cmd.Context(), target, req)}
	if out.Err != nil {
		out.Message = out.Err.Error()
	}
	if !out.Allowed || out.Report {
		out.Next = nextStep(out.Explanation)
	}
	return out
}

// explainTarget reads the argument. Only a plain http URL is a request whose method and path a proxy sees.
func explainTarget(arg, method string) (egress.Target, *egress.Request, error) {
	if !strings.Contains(arg, "/") {
		t, err := egress.ParseTarget(arg, 0)
		return t, nil, err
	}
	u, err := egress.ParseURL(arg)
	if err != nil || u.Scheme != "http" {
		return u.Target, nil, err
	}
	return u.Target, &egress.Request{Method: method, Path: u.Path}, nil
}

// nextStep tells an operator what entry would allow a refused destination.
func nextStep(e egress.Explanation) string {
	switch e.Reason {
	case egress.ReasonNotAllowed:
		next := fmt.Sprintf("to allow it, add %q to egress.allow", e.Target)
		if addr, literal := e.Target.Addr(); literal && !egress.Classify(addr).Outward() {
			next += fmt.Sprintf("; it is an inward address, so it also needs %q: [%q] in egress.inward", e.Target.Host(), addr)
		}
		return next
	case egress.ReasonDenied, egress.ReasonTunnel:
		return "to allow it, change the deny entry: deny beats allow"
	case egress.ReasonInward, egress.ReasonMetadata:
		var addrs []string
		for _, a := range e.Answers {
			if !a.Class.Outward() {
				addrs = append(addrs, fmt.Sprintf("%q", a.Addr))
			}
		}
		next := fmt.Sprintf("if this host may be reached inside, add %q: [%s] to egress.inward", e.Target.Host(), strings.Join(addrs, ", "))
		if e.Reason == egress.ReasonMetadata {
			next += "; whoever reaches a metadata service can take this machine's credentials"
		}
		return next
	}
	return ""
}

func (e egressExplanation) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if e.Target.IsValid() {
		fmt.Fprintf(w, "target\t%s\n", e.Target)
	}
	if e.Rule != "" {
		fmt.Fprintf(w, "rule\t%q: %s\n", e.Rule, e.Reach)
	}
	for _, alias := range e.Aliases {
		fmt.Fprintf(w, "alias\t%s\n", alias)
	}
	if e.Source != "" {
		fmt.Fprintf(w, "from\t%s\n", e.Source)
	}
	for _, a := range e.Answers {
		fmt.Fprintf(w, "answer\t%s\t%s%s\n", a.Addr, a.Class, a.Note())
	}
	decision := "allowed"
	switch {
	case e.Report:
		decision = fmt.Sprintf("allowed only because report_only is set, otherwise refused (%s)", e.Reason)
	case !e.Allowed:
		decision = "refused: " + e.Message
	}
	fmt.Fprintf(w, "decision\t%s\n", decision)
	if e.Next != "" {
		fmt.Fprintf(w, "next\t%s\n", e.Next)
	}
	return w.Flush()
}
