package egress

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// PolicyOptions are an operator's rules as written. The zero value allows nothing.
//
// An entry is an exact name, "*.example.org" (its subdomains at any depth, not the domain), ".example.org" (both), a literal
// address, a range such as "192.0.2.0/24" (for targets given by address), or "*" (any host), each with ":PORT" or ":*" behind
// it; IPv6 needs brackets then. Without a port an allow entry covers 443 and 80, a deny entry every port. An entry
// "GET,HEAD http://api.example.com/v1/*" covers plain HTTP requests alone.
type PolicyOptions struct {
	Allow []string
	// Deny beats Allow. A denied literal or range also holds for what a name resolves to.
	Deny []string
	// Inward exempts hosts: the key is a host as in Allow, the values are addresses or ranges, with a port if wanted
	// ("10.0.0.0/8", "10.1.2.3:5432"). A metadata service is exempted only by its very address. The host must be allowed too.
	Inward map[string][]string
	// NAT64 are the network-specific prefixes of RFC 6052 that the host's network translates.
	NAT64 []string
	// ReportOnly lets pass what no allow entry covers, and says so in the [Decision]. Deny entries and address classes still
	// refuse: a trial of the host list must not open the inside.
	ReportOnly bool
}

// Policy is a compiled set of rules, safe for use by many goroutines. A nil Policy allows nothing.
type Policy struct {
	allow, deny []rule
	inward      []exemption
	nat64       []netip.Prefix
	reportOnly  bool
	warnings    []string
}

// exemption opens inward addresses to one host.
type exemption struct {
	host   rule
	ranges []addrRange
}

type addrRange struct {
	prefix netip.Prefix
	port   uint16 // 0: any
}

// EntryError names an entry that cannot be used, and what to write instead. A program that knows the file shows the line.
type EntryError struct {
	List    string // "allow", "deny", "inward" or "nat64_prefixes"
	Index   int    // of the entry in the list; -1 when the host of an exemption is meant
	Host    string // the host of an exemption, as written
	Entry   string // as written
	Problem error
}

func (e *EntryError) Error() string {
	if e.List == string(listInward) && e.Index >= 0 {
		return fmt.Sprintf("inward host %q: address %q %v", e.Host, e.Entry, e.Problem)
	}
	return fmt.Sprintf("%s entry %q %v", e.List, e.Entry, e.Problem)
}

func (e *EntryError) Unwrap() error { return e.Problem }

// NewPolicy checks and compiles the rules. The error is an [*EntryError].
func NewPolicy(o PolicyOptions) (*Policy, error) {
	p := &Policy{reportOnly: o.ReportOnly}
	var err error
	if p.allow, err = parseRules(o.Allow, listAllow); err != nil {
		return nil, err
	}
	if p.deny, err = parseRules(o.Deny, listDeny); err != nil {
		return nil, err
	}
	for i, text := range o.NAT64 {
		prefix, err := parseNAT64(text)
		if err != nil {
			return nil, &EntryError{List: "nat64_prefixes", Index: i, Entry: text, Problem: err}
		}
		p.nat64 = append(p.nat64, prefix)
	}
	for _, key := range slices.Sorted(maps.Keys(o.Inward)) {
		e, err := parseExemption(key, o.Inward[key])
		if err != nil {
			return nil, err
		}
		p.inward = append(p.inward, e)
	}
	p.warnings = p.findWarnings()
	return p, nil
}

func parseRules(entries []string, where list) ([]rule, error) {
	var rules []rule
	for i, text := range entries {
		r, err := parseRule(text, where)
		if err != nil {
			return nil, &EntryError{List: string(where), Index: i, Entry: text, Problem: err}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseExemption(key string, values []string) (exemption, error) {
	host, err := parseRule(key, listInward)
	if err == nil && len(values) == 0 {
		err = fmt.Errorf("has no addresses; list them, as in [\"10.0.0.0/8\"], or remove it")
	}
	if err != nil {
		return exemption{}, &EntryError{List: string(listInward), Index: -1, Host: key, Entry: key, Problem: err}
	}
	e := exemption{host: host}
	for i, v := range values {
		r, err := parseRule(v, listInward)
		if err == nil && !r.prefix.IsValid() {
			err = fmt.Errorf("is no address or range; write one as in 10.0.0.0/8 or 10.1.2.3:5432")
		}
		if err != nil {
			return exemption{}, &EntryError{List: string(listInward), Index: i, Host: key, Entry: v, Problem: err}
		}
		ar := addrRange{prefix: r.prefix}
		if !r.anyPort {
			ar.port = r.ports[0]
		}
		e.ranges = append(e.ranges, ar)
	}
	return e, nil
}

// parseNAT64 reads a prefix of RFC 6052 section 2.2.
func parseNAT64(text string) (netip.Prefix, error) {
	p, err := parsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if !p.Addr().Is6() || !slices.Contains(lengths6052, p.Bits()) {
		return netip.Prefix{}, fmt.Errorf("is not of length 32, 40, 48, 56, 64 or 96")
	}
	if p.Addr().As16()[8] != 0 {
		return netip.Prefix{}, fmt.Errorf("has bits 64 to 71 set, which must be zero")
	}
	return p, nil
}

// Warnings name, in a sentence each, the entries that reach further than they look; a program says them loudly at start.
func (p *Policy) Warnings() []string { return slices.Clone(p.warnings) }

func (p *Policy) findWarnings() []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if p.reportOnly {
		warn("report_only: hosts that no allow entry covers are let through and logged")
	}
	for i := range p.allow {
		r := &p.allow[i]
		switch {
		case r.any:
			warn("allow entry %q reaches any host", r.text)
		case r.sharedSuffix():
			warn("allow entry %q reaches every customer of %s", r.text, r.name)
		case r.prefix.IsValid() && r.prefix.IsSingleIP() && !Classify(r.prefix.Addr(), p.nat64...).Outward() && !p.exemptable(r):
			warn("allow entry %q is an inward address and stays refused until inward exempts it", r.text)
		}
		if r.anyPort {
			warn("allow entry %q reaches any port", r.text)
		}
	}
	for _, e := range p.inward {
		for _, ar := range e.ranges {
			if ar.prefix.Bits() == 0 {
				warn("inward host %q is exempted for every address", e.host.text)
			}
		}
	}
	return out
}

func (p *Policy) exemptable(r *rule) bool {
	return slices.ContainsFunc(p.inward, func(e exemption) bool {
		return e.host.prefix.IsValid() && e.host.prefix.Contains(r.prefix.Addr())
	})
}

// Reasons of a [Decision] and a [*DeniedError].
const (
	ReasonNoPolicy   Reason = "no-policy"    // there is none, or no target
	ReasonNotAllowed Reason = "not-allowed"  // no allow entry covers it
	ReasonDenied     Reason = "denied"       // a deny entry covers it
	ReasonTunnel     Reason = "tunnel"       // a deny entry judges requests here, and a tunnel hides them
	ReasonInward     Reason = "inward"       // an address is not outward and not exempted for this host
	ReasonMetadata   Reason = "metadata"     // an address is a cloud metadata service
	ReasonOwnPort    Reason = "own-listener" // a port on which this program itself listens
	ReasonOwnUnknown Reason = "own-unknown"  // this host's addresses could not be read
)

// Decision is what the rules say of a target before any address is known. The zero value refuses.
type Decision struct {
	Allowed bool
	Report  bool   // allowed only since the policy is report-only
	Rule    string // the entry that decided, as written; "" if none did
	Reach   string // what that entry reaches, in words
	Reason  Reason // why it was refused, or would be
}

// Decide judges a target by the rules. For a plain HTTP request req holds its method and path; it is nil for everything whose
// inside is not seen (a tunnel, SOCKS, TLS), and then an allow entry with a path does not match.
func (p *Policy) Decide(t Target, req *Request) Decision {
	if p == nil || !t.IsValid() {
		return Decision{Reason: ReasonNoPolicy}
	}
	for i := range p.deny {
		r := &p.deny[i]
		if !r.matchHost(t) && !p.denyCovers(r, t.addr) || !r.matchPort(t.port) {
			continue
		}
		if reason := denies(r, req); reason != "" {
			return Decision{Rule: r.text, Reach: r.reach, Reason: reason}
		}
	}
	for i := range p.allow {
		r := &p.allow[i]
		if !r.matchHost(t) || !r.matchPort(t.port) {
			continue
		}
		if r.request == nil || req != nil && r.request.match(*req, false) {
			return Decision{Allowed: true, Rule: r.text, Reach: r.reach}
		}
	}
	return Decision{Allowed: p.reportOnly, Report: p.reportOnly, Reason: ReasonNotAllowed}
}

// DecideSome judges a target for the sake of plain HTTP requests that are still to come: it is allowed if some request to it could
// be. Each of them needs a Decide of its own.
func (p *Policy) DecideSome(t Target) Decision {
	if p == nil || !t.IsValid() {
		return Decision{Reason: ReasonNoPolicy}
	}
	for i := range p.deny {
		if r := &p.deny[i]; r.request == nil && (r.matchHost(t) || p.denyCovers(r, t.addr)) && r.matchPort(t.port) {
			return Decision{Rule: r.text, Reach: r.reach, Reason: ReasonDenied}
		}
	}
	for i := range p.allow {
		if r := &p.allow[i]; r.matchHost(t) && r.matchPort(t.port) {
			return Decision{Allowed: true, Rule: r.text, Reach: r.reach}
		}
	}
	return Decision{Allowed: p.reportOnly, Report: p.reportOnly, Reason: ReasonNotAllowed}
}

// AllowsPort reports whether any host at all may be reached on a port by some rule. Where it does not, nothing that a client could
// still say changes a refusal.
func (p *Policy) AllowsPort(port uint16) bool {
	return p != nil && (p.reportOnly || slices.ContainsFunc(p.allow, func(r rule) bool { return r.matchPort(port) }))
}

// DecideName reports whether any port of a name may be reached by some rule, for a resolver that answers only such names.
func (p *Policy) DecideName(name string) Decision {
	t, err := NewTarget(name, 443)
	if p == nil || err != nil {
		return Decision{Reason: ReasonNoPolicy}
	}
	for i := range p.deny {
		if r := &p.deny[i]; r.anyPort && r.request == nil && r.matchHost(t) {
			return Decision{Rule: r.text, Reach: r.reach, Reason: ReasonDenied}
		}
	}
	for i := range p.allow {
		if r := &p.allow[i]; r.matchHost(t) {
			return Decision{Allowed: true, Rule: r.text, Reach: r.reach}
		}
	}
	return Decision{Allowed: p.reportOnly, Report: p.reportOnly, Reason: ReasonNotAllowed}
}

// denies says why a deny entry that covers the destination refuses it, "" if its request pattern does not match.
func denies(r *rule, req *Request) Reason {
	switch {
	case r.request == nil:
		return ReasonDenied
	case req == nil: // "DELETE http://host/*" would be worth nothing if CONNECT host:80 went past it
		return ReasonTunnel
	case r.request.match(*req, true):
		return ReasonDenied
	}
	return ""
}

// denyCovers reports whether a denied literal or range holds the address or an IPv4 address inside it.
func (p *Policy) denyCovers(r *rule, a netip.Addr) bool {
	if !r.prefix.IsValid() || !a.IsValid() {
		return false
	}
	if r.prefix.Contains(a) {
		return true
	}
	return a.Is6() && slices.ContainsFunc(embedded(a, p.nat64), func(e embedding) bool { return r.prefix.Contains(e.v4) })
}

// deniedAddr finds the deny entry that covers an address to be dialled.
func (p *Policy) deniedAddr(a netip.Addr, port uint16, req *Request) (rule string, reason Reason) {
	for i := range p.deny {
		r := &p.deny[i]
		if p.denyCovers(r, a) && r.matchPort(port) {
			if reason := denies(r, req); reason != "" {
				return r.text, reason
			}
		}
	}
	return "", ""
}

// exempt finds the inward entry that opens an address to a target.
func (p *Policy) exempt(t Target, a netip.Addr, c Class) (rule string, ok bool) {
	for _, e := range p.inward {
		if !e.host.matchHost(t) || !e.host.matchPort(t.port) {
			continue
		}
		for _, ar := range e.ranges {
			if !ar.prefix.Contains(a) || ar.port != 0 && ar.port != t.port {
				continue
			}
			if c.Kind == Metadata && !ar.prefix.IsSingleIP() {
				continue
			}
			return e.host.text + ": " + ar.String(), true
		}
	}
	return "", false
}

func (ar addrRange) String() string {
	s := ar.prefix.String()
	if ar.prefix.IsSingleIP() {
		s = ar.prefix.Addr().String()
	}
	if ar.port == 0 {
		return s
	}
	if strings.Contains(s, ":") {
		s = "[" + s + "]"
	}
	return fmt.Sprintf("%s:%d", s, ar.port)
}
