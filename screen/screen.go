package screen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/envelope"
)

// A Verdict is what happens to a text. The zero value refuses it.
type Verdict uint8

const (
	Refuse  Verdict = iota // this call fails, with the reason
	Pass                   // the text goes on as it is
	Rewrite                // the text goes on as Result.Text has it
	Halt                   // the session ends
)

func (v Verdict) String() string {
	switch v {
	case Pass:
		return "pass"
	case Rewrite:
		return "rewrite"
	case Halt:
		return "halt"
	}
	return "refuse"
}

// MarshalText gives the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// weight orders verdicts: the heaviest of all findings is the verdict on the text.
func (v Verdict) weight() int { return slices.Index([]Verdict{Pass, Rewrite, Refuse, Halt}, v) }

// A Mode says what a screen's findings lead to. The zero value is the preset's own default.
type Mode uint8

const (
	Default   Mode = iota // as the preset has it
	Off                   // the screen does not look
	Flag                  // findings are reported, and nothing is changed
	Rewriting             // what can be removed or redacted is; the rest is reported
	Refusing              // any finding refuses the call
	Halting               // any finding ends the session
)

// Options choose what a [Set] does. The zero value is the default of every preset.
type Options struct {
	HiddenText      Mode // default: Rewriting
	Secrets         Mode // default: Rewriting
	OverridePhrases Mode // default: Flag. Such lists over-block, and do not stop who adapts.
	RestatesRequest Mode // default: Refusing. It has nothing to rewrite.

	// Passthrough names the tools whose results may equal their requests, such as echo or translate: a whole name, or
	// the beginning of one with * behind.
	Passthrough []string

	// Extra screens run after the presets, in this order.
	Extra []Screen

	// Timeout bounds each screen on one text; 0 is [DefaultTimeout]. A screen that takes longer refuses the call.
	Timeout time.Duration
}

// DefaultTimeout is far above what any preset needs for the largest message that passes the gateway.
const DefaultTimeout = 10 * time.Second

// A Screen is one more look at a text. Check returns what it found; it must stop when the context ends. An error, a panic and
// running out of time refuse the call.
type Screen struct {
	Name  string
	Mode  Mode // Default is Flag
	Check func(context.Context, Input) ([]Finding, error)
}

// Input is a text and what is known of it.
type Input struct {
	Tool    string   // the tool that was called, as the gateway names it
	Path    string   // where in the result the text stands; it is copied to the findings
	Text    string   // the text as it came
	Request []string // the string arguments of the call
	Failed  bool     // the call failed: an error may well repeat its request
}

// A Finding is one thing that a screen saw. Only Hidden comes from the text, and it does not print itself: a finding can be
// logged.
type Finding struct {
	Screen string             `json:"screen"`
	Rule   string             `json:"rule"`
	Path   string             `json:"path,omitempty"`
	Start  int                `json:"start"` // bytes of the text as it came
	End    int                `json:"end"`
	Count  int                `json:"count,omitempty"` // how many characters or places it stands for, where that is more than one
	Action string             `json:"action"`          // flagged, removed, redacted, refused, halted
	Hidden envelope.Untrusted `json:"-"`               // what the hidden text says, where it can be read; for a person only

	edits []edit // what rewriting does; none for what is only reported
}

// Result is the answer of [Set.Check]. The zero value refuses.
type Result struct {
	Verdict  Verdict
	Text     string    // what may go on; "" unless the verdict is Pass or Rewrite
	Reason   string    // on Refuse and Halt, a sentence that quotes nothing of the text
	Findings []Finding // in the order of the screens
	Omitted  int       // findings beyond MaxFindings of a screen, which led to the verdict like the others
}

// MaxFindings bounds what one screen reports of one text.
const MaxFindings = 100

// A Set is the screens that run on every text. It is safe for concurrent use.
type Set struct {
	screens     []preset
	timeout     time.Duration
	passthrough []string
}

// preset is a screen with its mode settled. It finds on the text as it came and on the text as it is seen, without what is hidden.
type preset struct {
	name string
	mode Mode
	own  bool // one of this package
	find func(context.Context, *subject) ([]Finding, error)
}

// subject is a text under all screens: what one has worked out, the next need not.
type subject struct {
	Input
	seen view // set by the first screen that needs it
}

// New returns a set of screens.
func New(o Options) (*Set, error) {
	s := &Set{timeout: o.Timeout, passthrough: slices.Clone(o.Passthrough)}
	if s.timeout == 0 {
		s.timeout = DefaultTimeout
	}
	if s.timeout < 0 {
		return nil, errors.New("screens: the time a screen may take is below zero")
	}
	for _, name := range o.Passthrough {
		if i := strings.IndexByte(name, '*'); name == "" || i >= 0 && i != len(name)-1 {
			return nil, fmt.Errorf("screens: passthrough %q is not a tool's name, or the beginning of one with * behind", name)
		}
	}
	add := func(own bool, name string, mode, byDefault Mode, find func(context.Context, *subject) ([]Finding, error)) error {
		if mode == Default {
			mode = byDefault
		}
		if mode > Halting {
			return fmt.Errorf("screens: %s has no mode %d", name, mode)
		}
		if mode != Off {
			s.screens = append(s.screens, preset{name, mode, own, find})
		}
		return nil
	}
	if o.RestatesRequest == Rewriting {
		return nil, errors.New("screens: restates_request has nothing to rewrite: use off, flag, refuse or halt")
	}
	if o.OverridePhrases == Rewriting {
		return nil, errors.New("screens: override_phrases has nothing to rewrite: use off, flag, refuse or halt")
	}
	err := errors.Join(
		add(true, "restates_request", o.RestatesRequest, Refusing, s.restates),
		add(true, "hidden_text", o.HiddenText, Rewriting, findHidden),
		add(true, "secrets", o.Secrets, Rewriting, findSecrets),
		add(true, "override_phrases", o.OverridePhrases, Flag, findOverrides),
	)
	for _, extra := range o.Extra {
		if extra.Name == "" || extra.Check == nil {
			return nil, errors.New("screens: a screen of your own needs a name and a Check")
		}
		err = errors.Join(err, add(false, extra.Name, extra.Mode, Flag, func(ctx context.Context, s *subject) ([]Finding, error) {
			return extra.Check(ctx, s.Input)
		}))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Check runs every screen over a text. It blocks no longer than the timeout for each screen, or until ctx ends; either refuses.
//
// A text that looks like a frame is looked at like any other: who wrote the frame does not stand in it.
func (s *Set) Check(ctx context.Context, in Input) Result {
	out := Result{Verdict: Pass}
	subject := &subject{Input: in}
	var edits []edit
	for _, screen := range s.screens {
		found, err := s.guard(ctx, screen, subject)
		if err != nil {
			return Result{Verdict: Refuse, Findings: out.Findings, Omitted: out.Omitted,
				Reason: fmt.Sprintf("the screen %s %v, so this result is withheld", screen.name, err)}
		}
		for i, f := range found {
			verdict := screen.judge(&f)
			f.Screen, f.Path = screen.name, in.Path
			if verdict == Rewrite {
				edits = append(edits, f.edits...)
			}
			if verdict.weight() > out.Verdict.weight() {
				out.Verdict = verdict
				out.Reason = fmt.Sprintf("the screen %s found %s in this result", screen.name, f.Rule)
			}
			if i < MaxFindings {
				out.Findings = append(out.Findings, f)
			} else {
				out.Omitted++
			}
		}
	}
	switch out.Verdict {
	case Pass:
		out.Text, out.Reason = in.Text, ""
	case Rewrite:
		out.Text, out.Reason = apply(in.Text, edits), ""
	}
	return out
}

// judge settles what a finding leads to.
func (p preset) judge(f *Finding) Verdict {
	switch p.mode {
	case Rewriting:
		if len(f.edits) > 0 {
			return Rewrite // the action is what the screen calls it
		}
	case Refusing:
		f.Action = "refused"
		return Refuse
	case Halting:
		f.Action = "halted"
		return Halt
	}
	f.Action = "flagged"
	return Pass
}

// inline is the size up to which a preset runs without a goroutine of its own and a timer, which for most results would take
// longer than the screen: a few milliseconds at most, whatever the text is made of. Screens from outside always have both.
const inline = 8 << 10

var (
	errFailed  = errors.New("failed")
	errTooLong = errors.New("ran out of time")
)

// guard runs one screen. A panic and running out of time are errors. The goroutine of a screen that does not stop is left behind,
// and what it finds later is dropped.
func (s *Set) guard(ctx context.Context, p preset, in *subject) ([]Finding, error) {
	if p.own && len(in.Text) <= inline {
		if ctx.Err() != nil {
			return nil, errTooLong
		}
		return p.run(ctx, in)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	type answer struct {
		found []Finding
		seen  view
		err   error
	}
	done := make(chan answer, 1)
	own := *in
	go func() {
		found, err := p.run(ctx, &own)
		done <- answer{found, own.seen, err}
	}()
	select {
	case a := <-done:
		if ctx.Err() != nil {
			return nil, errTooLong
		}
		in.seen = a.seen
		return a.found, a.err
	case <-ctx.Done():
		return nil, errTooLong
	}
}

// run runs the screen. What a panic or an error says may quote the text, and is dropped.
func (p preset) run(ctx context.Context, in *subject) (found []Finding, err error) {
	defer func() {
		if recover() != nil {
			found, err = nil, errFailed
		}
	}()
	if found, err = p.find(ctx, in); err != nil {
		return nil, errFailed
	}
	return found, nil
}
