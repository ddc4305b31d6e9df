package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-4e9f7b04/hearsay/gate"
)

// JSON writes one figure a line.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	for _, f := range r.Figures {
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// find gives the figure of a name under some conditions.
func (r *Report) find(suite, policy, mode, labels, words, agent, attack, name string) (Figure, bool) {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool {
		return f.Suite == suite && f.Policy == policy && f.Mode == mode && f.Labels == labels && f.Words == words &&
			f.Agent == agent && f.Attack == attack && f.Name == name
	})
	if i < 0 {
		return Figure{}, false
	}
	return r.Figures[i], true
}

// column is one figure of a table row.
type column struct{ head, mode, agent, attack, name string }

var columns = []column{
	{"ASR", "deny", "hijacked", "static", "asr"},
	{"any write", "deny", "hijacked", "static", "any_write"},
	{"adaptive", "deny", "hijacked", "adaptive", "asr"},
	{"open", "deny", "hijacked", "adaptive", "open_capability"},
	{"in text", "deny", "hijacked", "adaptive", "open_text"},
	{"utility", "deny", "benign", "none", "utility"},
	{"ASR, ask", "ask", "hijacked", "static", "asr"},
	{"adaptive, ask", "ask", "hijacked", "adaptive", "asr"},
	{"open, ask", "ask", "hijacked", "adaptive", "open_capability"},
	{"asks", "ask", "benign", "none", "asks"},
}

// cellText is a figure as a table shows it: a share in percent with its interval, or a number a task.
func cellText(f Figure) string {
	if strings.HasPrefix(f.Name, "asks") {
		return fmt.Sprintf("%.2f", f.Value)
	}
	return fmt.Sprintf("%.1f%% [%.1f, %.1f]", 100*f.Value, 100*f.Low, 100*f.High)
}

// Table writes the figures for people.
func (r *Report) Table(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	suites := r.suites()
	shown := r.shown()
	fmt.Fprintf(tw, "An agent that is taken over, behind the gate (policy %s). Shares with their 95 %% interval (Wilson); asks for each task.\n", shown)
	fmt.Fprintln(tw, "Deny: what asks is refused. Ask: a person approves the user's own calls and refuses the attacker's.")
	fmt.Fprintln(tw)
	r.head(tw, "suite\tlabels\twords\tpairs\ttasks", columns)
	for _, suite := range suites {
		for _, labels := range []string{"given", "drafted"} {
			for _, words := range []string{"with", "without"} {
				pairs, ok := r.find(suite, shown, "deny", labels, words, "hijacked", "static", "asr")
				tasks, _ := r.find(suite, shown, "deny", labels, words, "benign", "none", "utility")
				if ok {
					fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%d", suite, labels, words, pairs.N, tasks.N)
					r.row(tw, suite, shown, labels, words, columns)
				}
			}
		}
	}
	last := suites[len(suites)-1] // the sum, or the only suite
	r.policies(tw, last, "Policies compared", Policies())
	r.policies(tw, last, "Each rule switched off", append([]Policy{Default()}, Ablations()...))
	r.approvals(tw, suites)
	r.phraseTable(tw, suites)
	r.drafts(tw)
	return tw.Flush()
}

// shown is the policy of the first table: the default one, or, where it was not counted, the first that was.
func (r *Report) shown() string {
	name := ""
	for _, f := range r.Figures {
		if f.Agent == Hijacked().Name && (name == "" || f.Policy == Default().Name) {
			name = f.Policy
		}
	}
	return cmp.Or(name, Default().Name)
}

func (r *Report) suites() []string {
	var out []string
	for _, f := range r.Figures {
		if !slices.Contains(out, f.Suite) && f.Suite != "all" {
			out = append(out, f.Suite)
		}
	}
	if len(out) > 1 {
		out = append(out, "all")
	}
	return out
}

func (r *Report) head(w io.Writer, first string, cols []column) {
	fmt.Fprint(w, first)
	for _, c := range cols {
		fmt.Fprintf(w, "\t%s", c.head)
	}
	fmt.Fprintln(w)
}

func (r *Report) row(w io.Writer, suite, policy, labels, words string, cols []column) {
	for _, c := range cols {
		if f, ok := r.find(suite, policy, c.mode, labels, words, c.agent, c.attack, c.name); ok {
			fmt.Fprintf(w, "\t%s", cellText(f))
		} else {
			fmt.Fprint(w, "\t–")
		}
	}
	fmt.Fprintln(w)
}

// policies compares policies over one suite or the sum, with the labels given and the user's words.
func (r *Report) policies(w io.Writer, suite, title string, list []Policy) {
	rows := slices.DeleteFunc(slices.Clone(list), func(p Policy) bool {
		_, ok := r.find(suite, p.Name, "deny", "given", "with", "hijacked", "static", "asr")
		return !ok
	})
	if len(rows) < 2 {
		return
	}
	fmt.Fprintf(w, "\n%s (%s, labels given, with the user's words).\n\n", title, suite)
	r.head(w, "policy", columns)
	for _, p := range rows {
		fmt.Fprint(w, p.Name)
		r.row(w, suite, p.Name, "given", "with", columns)
	}
	fmt.Fprintln(w)
	for _, p := range rows {
		fmt.Fprintf(w, "%s: %s.\n", p.Name, p.What)
	}
}

// approvals shows what ways of answering save, and what an attack that waits can do with the answers, where the default policy
// was counted.
func (r *Report) approvals(w io.Writer, suites []string) {
	if _, ok := r.find(suites[0], Default().Name, "ask", "given", "with", "hijacked", "adaptive", "late_asr"); !ok {
		return
	}
	fmt.Fprint(w, "\nWays to answer: questions for each task, and attacks that got through at any later moment (ask mode, labels given).\n\n")
	fmt.Fprint(w, "suite\twords")
	for _, how := range []string{"each call", "remembered values", "like calls in one question", "a tool for the rest of the task"} {
		fmt.Fprintf(w, "\t%s: asks\tASR", how)
	}
	fmt.Fprintln(w)
	for _, suite := range suites {
		for _, words := range []string{"with", "without"} {
			fmt.Fprintf(w, "%s\t%s", suite, words)
			for _, how := range []string{"", "_remembered", "_batched", "_capability"} {
				asks, _ := r.find(suite, Default().Name, "ask", "given", words, "benign", "none", "asks"+how)
				late, ok := r.find(suite, Default().Name, "ask", "given", words, "hijacked", "adaptive", "late_asr"+how)
				if !ok {
					fmt.Fprint(w, "\t–\t–")
					continue
				}
				fmt.Fprintf(w, "\t%.2f\t%s", asks.Value, cellText(late))
			}
			fmt.Fprintln(w)
		}
	}
}

func (r *Report) phraseTable(w io.Writer, suites []string) {
	fmt.Fprint(w, "\nAn agent that obeys orders it can read outside of a frame, attacks that do not adapt, no gate.\n\nsuite")
	for _, st := range readings {
		fmt.Fprintf(w, "\t%s", st)
	}
	fmt.Fprintln(w)
	for _, suite := range suites {
		fmt.Fprint(w, suite)
		for _, st := range readings {
			f, _ := r.find(suite, st, "deny", "given", "with", "obedient-phrases", "static", "asr")
			fmt.Fprintf(w, "\t%s", cellText(f))
		}
		fmt.Fprintln(w)
	}
}

func (r *Report) drafts(w io.Writer) {
	fmt.Fprint(w, "\nThe drafter against the labels given: precision of what it says, recall of what is given.\n\nsuite\ttools")
	for _, f := range r.Drafts[0].figures() {
		fmt.Fprintf(w, "\t%s", strings.ReplaceAll(strings.TrimPrefix(f.Name, "draft_"), "_", ", "))
	}
	fmt.Fprintln(w)
	for _, d := range r.Drafts {
		fmt.Fprintf(w, "%s\t%d", d.Suite, d.Tools)
		for _, f := range d.figures() {
			fmt.Fprintf(w, "\t%.1f%% of %d", 100*f.Value, f.N)
		}
		fmt.Fprintln(w)
	}
}

// WritePairs lists each attack of which a call got through under the default policy, and the calls that did it.
func (r *Report) WritePairs(w io.Writer) error {
	for _, p := range r.Pairs {
		extent := "in part"
		if p.All {
			extent = "whole"
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s, labels %s, %s words\t%s\t%s on %s\t%s\t%s\n", p.Suite, p.Policy, p.Mode, p.Labels, p.Words, p.Attack,
			p.Injection, p.Task, extent, strings.Join(p.Through, " ")); err != nil {
			return err
		}
	}
	return nil
}

// Bench writes the figures in the format that benchstat reads, and the time of a decision on this machine, which is the one
// number here that two runs do not share.
func (r *Report) Bench(w io.Writer, suites []Suite) error {
	for _, f := range r.Figures {
		name := strings.NewReplacer(" - ", "-", " ", "_").Replace(fmt.Sprintf("suite=%s/policy=%s/mode=%s/labels=%s/words=%s/agent=%s/attack=%s", f.Suite, f.Policy, f.Mode, f.Labels, f.Words, f.Agent, f.Attack))
		if _, err := fmt.Fprintf(w, "BenchmarkReplay/%s %d %g %s\n", name, max(1, f.N), f.Value, f.Name); err != nil {
			return err
		}
	}
	for i := range suites {
		ns, n, err := decisionTime(&suites[i])
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "BenchmarkDecision/suite=%s %d %.0f ns/op\n", suites[i].Name, n, ns); err != nil {
			return err
		}
	}
	return nil
}

// decisionTime is how long one decision about a call of the suite takes in a tainted session.
func decisionTime(s *Suite) (ns float64, n int, err error) {
	w, err := newWorld(s, Default(), s.given(), true)
	if err != nil {
		return 0, 0, err
	}
	var spent time.Duration
	for i := range s.UserTasks {
		task := &s.UserTasks[i]
		sess, err := w.session(task)
		if err != nil {
			return 0, 0, err
		}
		sess.state = sess.state.Observe(gate.Observation{Source: s.server(), Trust: gate.Untrusted})
		var calls []gate.Call
		for _, c := range task.Calls {
			calls = append(calls, gate.Call{Server: s.server(), Tool: c.Tool, Args: c.Args})
		}
		for k := range s.Injections {
			for _, c := range s.Injections[k].Calls {
				calls = append(calls, gate.Call{Server: s.server(), Tool: c.Tool, Args: c.Args})
			}
		}
		start := time.Now()
		for _, c := range calls {
			sess.decide(c)
		}
		spent += time.Since(start)
		n += len(calls)
	}
	return float64(spent.Nanoseconds()) / float64(max(1, n)), n, nil
}
