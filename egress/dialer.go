package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

const (
	// defaultTimeout bounds resolving and dialling together: what a person waits for a page.
	defaultTimeout = 30 * time.Second
	// resolveTimeout bounds resolving alone, so that a slow server leaves time to dial.
	resolveTimeout = 10 * time.Second
)

// Dialer opens connections under a policy. The zero value refuses everything. Its fields are set before first use.
type Dialer struct {
	Policy   *Policy       // nil refuses everything
	Resolver *Resolver     // nil: the host's own configuration, see [NewResolver]
	Timeout  time.Duration // for resolving and dialling together; 0: 30 s
	// OwnPorts lists the ports on which this program listens. On an address of this host they are refused whatever the policy
	// exempts: a proxy that can be asked to connect to itself or to its approvals page has no boundary. nil: none.
	OwnPorts func() []uint16
	// Own reads this host's addresses; nil: [HostAddrs], read again every two seconds. An error refuses.
	Own func() ([]netip.Prefix, error)
}

// Explanation is the whole decision on one target: what was asked, which rule held, what it resolved to, and what each address
// is. [Dialer.Open] dials by it and `hearsay egress explain` prints it.
type Explanation struct {
	Target  Target   `json:"target"`
	Allowed bool     `json:"allowed"`
	Report  bool     `json:"report_only,omitempty"` // allowed only since the policy is report-only
	Reason  Reason   `json:"reason,omitempty"`      // why it was refused, or would be
	Rule    string   `json:"rule,omitempty"`        // the entry that decided
	Reach   string   `json:"reach,omitempty"`       // what that entry reaches, in words
	Aliases []string `json:"aliases,omitempty"`     // the CNAME chain
	Source  string   `json:"source,omitempty"`      // who answered: "literal", "hosts file", "localhost", or a server's address
	Answers []Answer `json:"answers,omitempty"`
	Err     error    `json:"-"` // a *DeniedError or *ResolveError when refused
}

// Answer is one address of a target.
type Answer struct {
	Addr      netip.Addr `json:"addr"`
	Class     Class      `json:"class"`
	Allowed   bool       `json:"allowed"`
	Reason    Reason     `json:"reason,omitempty"`
	Exemption string     `json:"exemption,omitempty"` // the inward entry that opened it
	Rule      string     `json:"rule,omitempty"`      // the deny entry that covers it
}

// DeniedError is a refusal by policy: trying again gives the same answer.
type DeniedError struct {
	Target Target
	Addr   netip.Addr // the address that was refused; invalid if the rules refused before any was known
	Class  Class      // of Addr
	Rule   string     // the entry that decided; "" if none did
	Reason Reason
}

func (e *DeniedError) Error() string {
	s := fmt.Sprintf("%s is refused by policy (%s)", e.Target, e.Reason)
	switch {
	case e.Reason == ReasonNoPolicy && !e.Target.IsValid():
		return "refused by policy: no target"
	case e.Reason == ReasonNotAllowed:
		s += ": no allow entry covers it"
	case e.Reason == ReasonTunnel:
		s += fmt.Sprintf(": deny entry %q judges plain HTTP requests to it, which a tunnel would hide", e.Rule)
	case e.Rule != "":
		s += fmt.Sprintf(": deny entry %q", e.Rule)
	}
	if e.Addr.IsValid() {
		s += fmt.Sprintf(": %s is %s", e.Addr, e.Class)
	}
	return s
}

// Dial opens a connection to the target, or returns a [*DeniedError], a [*ResolveError], or an error that names each address
// tried. It blocks for at most d.Timeout; the caller closes the connection.
func (d *Dialer) Dial(ctx context.Context, t Target) (net.Conn, error) {
	conn, _, err := d.Open(ctx, t, nil)
	return conn, err
}

// DialContext is Dial for an address in text, in the form that [net/http.Transport] wants. The network must be a TCP one.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, fmt.Errorf("egress dials tcp, not %q", network)
	}
	t, err := ParseTarget(addr, 0)
	if err != nil {
		return nil, err
	}
	return d.Dial(ctx, t)
}

// Open is Dial that also returns the explanation, for a log, and takes the plain HTTP request the connection is for; req is
// nil for a tunnel. A connection that is kept for further requests needs [Policy.Decide] for each of them.
func (d *Dialer) Open(ctx context.Context, t Target, req *Request) (net.Conn, Explanation, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	e := d.Judge(ctx, t, req)
	conn, err := d.Connect(ctx, e, req)
	return conn, e, err
}

// Connect opens a connection to the addresses of an explanation that [Dialer.Judge] gave, without resolving again: what is
// dialled is what was judged, however long ago. The rules of now are asked once more, and every address on its socket.
func (d *Dialer) Connect(ctx context.Context, e Explanation, req *Request) (net.Conn, error) {
	t := e.Target
	if !e.Allowed {
		return nil, e.Err
	}
	if rule := d.Policy.Decide(t, req); !rule.Allowed {
		return nil, &DeniedError{Target: t, Rule: rule.Rule, Reason: rule.Reason}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout())
	defer cancel()
	addrs := make([]netip.AddrPort, len(e.Answers))
	for i, a := range e.Answers {
		addrs[i] = netip.AddrPortFrom(a.Addr, t.port)
	}
	conn, err := race(ctx, addrs, func(ctx context.Context, ap netip.AddrPort) (net.Conn, error) {
		nd := net.Dialer{ControlContext: func(_ context.Context, _, address string, c syscall.RawConn) error {
			if err := d.checkSocket(t, ap, address, req); err != nil {
				return err
			}
			connectEarly(c, ap)
			return nil
		}}
		return nd.DialContext(ctx, "tcp", ap.String())
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", t, err)
	}
	return conn, nil
}

func (d *Dialer) timeout() time.Duration {
	if d.Timeout <= 0 {
		return defaultTimeout
	}
	return d.Timeout
}

// Judge decides on a target without connecting: rules, then one resolution, then every address. One address that may not be
// dialled refuses the whole set, since a set that mixes inward and outward addresses is how rebinding looks.
func (d *Dialer) Judge(ctx context.Context, t Target, req *Request) Explanation {
	e := Explanation{Target: t}
	rule := d.Policy.Decide(t, req)
	e.Rule, e.Reach, e.Report, e.Reason = rule.Rule, rule.Reach, rule.Report, rule.Reason
	if !rule.Allowed {
		e.Err = &DeniedError{Target: t, Rule: rule.Rule, Reason: rule.Reason}
		return e
	}
	found, err := d.resolve(ctx, t)
	e.Aliases, e.Source = found.Aliases, found.Source
	if err != nil {
		e.Err = err
		var re *ResolveError
		if errors.As(err, &re) {
			e.Reason = re.Reason
		}
		return e
	}
	own, err := d.own()
	if err != nil {
		e.Err, e.Reason = err, ReasonOwnUnknown
		return e
	}
	e.Allowed = true
	for _, addr := range found.Addrs {
		a := d.judgeAddr(t, addr, own, req)
		e.Answers = append(e.Answers, a)
		if !a.Allowed && e.Allowed {
			e.Allowed, e.Report, e.Reason = false, false, a.Reason
			e.Err = &DeniedError{Target: t, Addr: addr, Class: a.Class, Rule: a.Rule, Reason: a.Reason}
		}
	}
	return e
}

// resolve turns a target into addresses, without zones and IPv4-mapped forms, each once.
func (d *Dialer) resolve(ctx context.Context, t Target) (Resolved, error) {
	if a, ok := t.Addr(); ok {
		return Resolved{Addrs: []netip.Addr{a}, Source: "literal"}, nil
	}
	r := d.Resolver
	if r == nil {
		r = systemResolver()
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	found, err := r.Lookup(ctx, t.host)
	if err != nil {
		return found, err
	}
	if len(found.Addrs) == 0 {
		return found, &ResolveError{Host: t.host, Reason: ReasonNoAddresses}
	}
	return found, nil
}

func (d *Dialer) own() ([]netip.Prefix, error) {
	if d.Own != nil {
		return d.Own()
	}
	return hostAddrs()
}

// judgeAddr decides on one address. It is called for every answer, and again on the socket.
func (d *Dialer) judgeAddr(t Target, addr netip.Addr, own []netip.Prefix, req *Request) Answer {
	a := Answer{Addr: addr, Class: Classifier{NAT64: d.Policy.nat64, Own: own}.Classify(addr)}
	if rule, reason := d.Policy.deniedAddr(addr, t.port, req); reason != "" {
		a.Rule, a.Reason = rule, reason
		return a
	}
	if a.Class.Outward() {
		a.Allowed = true
		return a
	}
	if d.ownListener(addr, t.port, own) {
		a.Reason = ReasonOwnPort
		return a
	}
	a.Exemption, a.Allowed = d.Policy.exempt(t, addr, a.Class)
	switch {
	case a.Allowed:
	case a.Class.Kind == Metadata:
		a.Reason = ReasonMetadata
	default:
		a.Reason = ReasonInward
	}
	return a
}

// ownListener reports whether addr and port may be one of this program's own listeners.
func (d *Dialer) ownListener(addr netip.Addr, port uint16, own []netip.Prefix) bool {
	if d.OwnPorts == nil || !slices.Contains(d.OwnPorts(), port) {
		return false
	}
	return addr.IsLoopback() || addr.IsUnspecified() || slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// checkSocket runs on the socket just before connect: the address there must be the judged one and must still be allowed.
func (d *Dialer) checkSocket(t Target, judged netip.AddrPort, address string, req *Request) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || netip.AddrPortFrom(at.Addr().Unmap(), at.Port()) != judged {
		return &DeniedError{Target: t, Addr: at.Addr(), Reason: ReasonInward}
	}
	own, err := d.own()
	if err != nil {
		return err
	}
	if a := d.judgeAddr(t, judged.Addr(), own, req); !a.Allowed {
		return &DeniedError{Target: t, Addr: a.Addr, Class: a.Class, Rule: a.Rule, Reason: a.Reason}
	}
	return nil
}

// Note says what an address's class alone does not: the entry that exempts or denies it, or why it is refused.
func (a Answer) Note() string {
	switch {
	case a.Exemption != "":
		return fmt.Sprintf(" (exempted by inward %q)", a.Exemption)
	case a.Rule != "":
		return fmt.Sprintf(" (refused by deny entry %q)", a.Rule)
	case !a.Allowed:
		return fmt.Sprintf(" (refused: %s)", a.Reason)
	}
	return ""
}
