package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sync/singleflight"
)

// Bounds of one lookup and of the cache.
const (
	maxAliases   = 16        // CNAMEs followed; real chains have up to six
	maxQuestions = 8         // questions asked for one address family, chains that a server leaves unfinished included
	maxAddrs     = 128       // addresses of one name; more refuse, since all are judged
	maxCached    = 4096      // names kept
	maxTTL       = time.Hour // a longer TTL is cut
)

// Reasons of a [*ResolveError].
const (
	ReasonNoSuchName     Reason = "no-such-name"
	ReasonNoAddresses    Reason = "no-addresses"
	ReasonResolveTimeout Reason = "resolve-timeout"
	ReasonServerFailure  Reason = "server-failure"
	ReasonTooMany        Reason = "too-many-addresses"
	ReasonAliases        Reason = "alias-chain" // a loop, a chain that is too long, or an alias that is no host name
)

// ResolveError says why a name has no addresses. A failure refuses, but another try may succeed.
type ResolveError struct {
	Host   string
	Reason Reason
	Err    error // what happened on the wire, may be nil
}

func (e *ResolveError) Error() string {
	s := fmt.Sprintf("resolving %s: %s", e.Host, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *ResolveError) Unwrap() error { return e.Err }

// Resolved is what a name resolved to: addresses without zones, IPv4-mapped ones as IPv4, each once.
type Resolved struct {
	Addrs   []netip.Addr
	Aliases []string // the CNAME chain
	Source  string   // "hosts file", "localhost", or the address of the server
	expires time.Time
}

// ResolverOptions configure a [Resolver]. The zero value follows the host.
type ResolverOptions struct {
	// Servers are addresses of DNS servers, "9.9.9.9" or "[::1]:5353". Empty: the nameservers of /etc/resolv.conf, read again
	// when it changes. Names are always asked as they are, never with a search domain.
	Servers []string
	// IgnoreHosts leaves /etc/hosts out. It is read by default, before DNS, and its addresses are judged like any other.
	IgnoreHosts bool
}

// Resolver asks DNS for both address families and keeps answers no longer than their TTL. It is safe for use by many
// goroutines. "localhost" and names under it are the loopback addresses without any question (RFC 6761 section 6.3). The zero
// value knows no server and resolves nothing.
type Resolver struct {
	conf  func() (dnsConfig, error)
	hosts func(name string) ([]netip.Addr, error)
	now   func() time.Time
	calls singleflight.Group

	mu    sync.Mutex
	cache map[string]Resolved
}

// NewResolver checks the options. The error names the server that is malformed.
func NewResolver(o ResolverOptions) (*Resolver, error) {
	r := &Resolver{now: time.Now, cache: map[string]Resolved{}}
	if len(o.Servers) == 0 {
		r.conf = watch("/etc/resolv.conf", parseResolvConf)
	} else {
		conf := dnsConfig{timeout: defaultTryTimeout, attempts: defaultAttempts}
		for _, s := range o.Servers {
			ap, err := parseServer(s)
			if err != nil {
				return nil, err
			}
			conf.servers = append(conf.servers, ap)
		}
		r.conf = func() (dnsConfig, error) { return conf, nil }
	}
	r.hosts = func(string) ([]netip.Addr, error) { return nil, nil }
	if !o.IgnoreHosts {
		file := watch("/etc/hosts", parseHosts)
		r.hosts = func(name string) ([]netip.Addr, error) {
			table, err := file()
			return table[name], err
		}
	}
	return r, nil
}

var systemResolver = sync.OnceValue(func() *Resolver {
	r, err := NewResolver(ResolverOptions{})
	if err != nil {
		panic(err) // no option, nothing to refuse
	}
	return r
})

// Lookup resolves a canonical name, as [Target.Host] gives it. The error is a [*ResolveError]; it is returned with what was
// learnt before.
func (r *Resolver) Lookup(ctx context.Context, name string) (Resolved, error) {
	if r == nil || r.conf == nil {
		return Resolved{}, &ResolveError{name, ReasonServerFailure, errNoServer}
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return Resolved{Addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, Source: "localhost"}, nil
	}
	addrs, err := r.hosts(name)
	if err != nil {
		return Resolved{}, &ResolveError{name, ReasonServerFailure, err}
	}
	if len(addrs) > 0 {
		return finish(name, Resolved{Addrs: addrs, Source: "hosts file"})
	}
	if a, ok := r.cached(name); ok {
		return a, nil
	}
	done := r.calls.DoChan(name, func() (any, error) {
		if a, ok := r.cached(name); ok { // kept by the call before, since this caller looked
			return a, nil
		}
		// The question outlives a caller that gives up, since others may wait for the same answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
		defer cancel()
		a, err := r.ask(ctx, name)
		if err == nil {
			r.keep(name, a)
		}
		return a, err
	})
	select {
	case res := <-done:
		a, _ := res.Val.(Resolved)
		return a, res.Err
	case <-ctx.Done():
		return Resolved{}, &ResolveError{name, ReasonResolveTimeout, ctx.Err()}
	}
}

// ask puts both questions at once. A family that fails while the other one answers is left out: what is dialled was judged.
func (r *Resolver) ask(ctx context.Context, name string) (Resolved, error) {
	conf, err := r.conf()
	if err != nil {
		return Resolved{}, &ResolveError{name, ReasonServerFailure, err}
	}
	var six, four Resolved
	var err6, err4 error
	var both sync.WaitGroup
	both.Go(func() { six, err6 = conf.resolve(ctx, name, dnsmessage.TypeAAAA, r.now) })
	both.Go(func() { four, err4 = conf.resolve(ctx, name, dnsmessage.TypeA, r.now) })
	both.Wait()
	switch {
	case err6 == nil && err4 == nil:
	case err6 == nil && len(six.Addrs) > 0:
		four = Resolved{}
	case err4 == nil && len(four.Addrs) > 0:
		six = Resolved{}
	case err4 != nil:
		return four, err4
	default:
		return six, err6
	}
	all := Resolved{Addrs: slices.Concat(six.Addrs, four.Addrs), Aliases: four.Aliases, Source: four.Source, expires: four.expires}
	if all.Source == "" || len(all.Aliases) == 0 {
		all.Source, all.Aliases = or(all.Source, six.Source), six.Aliases
	}
	if err6 != nil || err4 != nil { // half an answer is used once
		all.expires = time.Time{}
	} else if six.expires.Before(all.expires) {
		all.expires = six.expires
	}
	return finish(name, all)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// finish brings addresses into the form that is judged and dialled.
func finish(name string, a Resolved) (Resolved, error) {
	var addrs []netip.Addr
	for _, addr := range a.Addrs {
		addr = addr.WithZone("").Unmap()
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) > maxAddrs {
		return Resolved{Source: a.Source}, &ResolveError{Host: name, Reason: ReasonTooMany}
	}
	a.Addrs = addrs
	if len(addrs) == 0 {
		return a, &ResolveError{Host: name, Reason: ReasonNoAddresses}
	}
	return a, nil
}

func (r *Resolver) cached(name string) (Resolved, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.cache[name]
	if !ok || !r.now().Before(a.expires) {
		delete(r.cache, name)
		return Resolved{}, false
	}
	return a, true
}

func (r *Resolver) keep(name string, a Resolved) {
	if !r.now().Before(a.expires) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for old := range r.cache { // in no order: one that was not to be lost is asked again
		if len(r.cache) < maxCached {
			break
		}
		delete(r.cache, old)
	}
	r.cache[name] = a
}

// timedOut reports whether an error is a passed deadline, of the context or of a socket.
func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
