package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// list is where an entry stands: it decides the ports that an entry without one covers, and how wide a star may reach.
type list string

const (
	listAllow  list = "allow"
	listDeny   list = "deny"
	listInward list = "inward"
)

// defaultPorts are the ports of an allow entry that names none.
var defaultPorts = []uint16{443, 80}

// rule is one entry of a list.
type rule struct {
	text  string // as the operator wrote it
	reach string // what it covers, in words

	any    bool         // "*": every name and literal
	name   string       // an exact name, or with sub a domain
	sub    bool         // "*.name": its subdomains at any depth
	apex   bool         // ".name": the domain too
	prefix netip.Prefix // a literal or a range

	anyPort bool
	ports   []uint16

	request *requestPattern // a plain HTTP entry: matches requests, not tunnels
}

// parseRule reads an entry. The error says what is wrong and what to write instead; the caller names the entry.
func parseRule(text string, where list) (rule, error) {
	r, err := parseEntry(text, where)
	if err == nil {
		r.reach = r.words()
	}
	return r, err
}

func parseEntry(text string, where list) (rule, error) {
	if strings.TrimSpace(text) == "" {
		return rule{}, fmt.Errorf("is empty; remove it (an empty list allows nothing)")
	}
	if strings.TrimSpace(text) != text {
		return rule{}, fmt.Errorf("has a space at its end; remove it")
	}
	if strings.Contains(text, "://") || strings.ContainsAny(text, " \t") {
		if where == listInward {
			return rule{}, fmt.Errorf("is a request pattern; an exemption names a host, as in %q", "db.internal.example:5432")
		}
		return parseRequestRule(text, where)
	}
	r, port, err := parseHostRule(text, where)
	if err != nil {
		return rule{}, err
	}
	switch {
	case port == "*":
		r.anyPort = true
	case port != "":
		n, err := parsePort(port)
		if err != nil {
			return rule{}, fmt.Errorf("has the port %q; write a number from 1 to 65535 or *", port)
		}
		r.ports = []uint16{n}
	case where == listAllow:
		r.ports = defaultPorts
	default: // a denied host is denied on every port, an exempted one is bounded by its allow entry
		r.anyPort = true
	}
	return r, nil
}

// parseHostRule reads the host of an entry and cuts off its port, "" if none is written.
func parseHostRule(text string, where list) (rule, string, error) {
	host, port, hasPort := text, "", false
	switch {
	case strings.HasPrefix(text, "["):
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return rule{}, "", fmt.Errorf("has no closing bracket")
		}
		host = text[1:end]
		if !strings.Contains(host, ":") {
			return rule{}, "", fmt.Errorf("has brackets round something that is no IPv6 address; remove them")
		}
		port, hasPort = strings.CutPrefix(text[end+1:], ":")
		if !hasPort && port != "" {
			return rule{}, "", fmt.Errorf("has text after its closing bracket; only :PORT may follow")
		}
	case strings.Count(text, ":") == 1:
		host, port, hasPort = strings.Cut(text, ":")
	}
	if hasPort && port == "" {
		return rule{}, "", fmt.Errorf("ends with a colon; write the port or remove the colon")
	}
	r := rule{text: text}
	if strings.Contains(host, "/") {
		p, err := parsePrefix(host)
		if err != nil {
			if _, a, e := canonicalHost(host[:strings.IndexByte(host, '/')], true); e == nil && !a.IsValid() {
				return rule{}, "", fmt.Errorf("has a path; paths are matched in plain HTTP only, as in %q", "GET http://"+host)
			}
			return rule{}, "", err
		}
		r.prefix = p
		return r, port, nil
	}
	err := r.setHost(host, where)
	return r, port, err
}

// setHost reads "*", "*.name", ".name", a name or a literal.
func (r *rule) setHost(host string, where list) error {
	switch {
	case host == "*":
		if where == listInward {
			return fmt.Errorf("exempts every host; name the hosts, since any name can be made to resolve inward")
		}
		r.any = true
		return nil
	case strings.HasPrefix(host, "*."):
		r.sub, host = true, host[2:]
	case strings.HasPrefix(host, "."):
		r.sub, r.apex, host = true, true, host[1:]
	}
	if strings.Contains(host, "*") {
		if tail, ok := strings.CutPrefix(host, "*"); ok && !r.sub && !strings.Contains(tail, "*") {
			return fmt.Errorf("would match look-alikes such as %q; write %q for subdomains or %q for the domain too", "evil"+tail, "*."+tail, "."+tail)
		}
		return fmt.Errorf("has a star inside a name; a star stands only in front of a dot, as in %q", "*.example.com")
	}
	name, a, err := canonicalHost(host, true)
	if err != nil {
		return fmt.Errorf("is no host (%s)", err.(*TargetError).Reason)
	}
	if !a.IsValid() {
		r.name = name
		return r.checkReach(where)
	}
	if r.sub {
		return fmt.Errorf("puts a wildcard before an address; write a range such as 192.0.2.0/24")
	}
	r.prefix = netip.PrefixFrom(a, a.BitLen())
	return nil
}

// checkReach refuses an allow wildcard over a name under which anyone can register: it is nearly "*", written by mistake.
func (r *rule) checkReach(where list) error {
	if !r.sub || where == listDeny {
		return nil
	}
	if !strings.Contains(r.name, ".") {
		return fmt.Errorf("covers a whole top-level domain; name the domain, as in %q", "*.example."+r.name)
	}
	if suffix, icann := publicsuffix.PublicSuffix(r.name); icann && suffix == r.name {
		return fmt.Errorf("covers every domain registered under %s; name the domain, as in %q", r.name, "*.example."+r.name)
	}
	return nil
}

// sharedSuffix reports whether the rule's subdomains belong to unrelated customers of one service.
func (r *rule) sharedSuffix() bool {
	if !r.sub {
		return false
	}
	suffix, icann := publicsuffix.PublicSuffix(r.name)
	return suffix == r.name && !icann && strings.Contains(suffix, ".")
}

// matchHost reports whether the rule covers the target's host: a range covers literals only, never a name by its address.
func (r *rule) matchHost(t Target) bool {
	if r.any {
		return true
	}
	if a, ok := t.Addr(); ok {
		return r.prefix.IsValid() && r.prefix.Contains(a)
	}
	if r.name == "" {
		return false
	}
	if r.sub {
		return strings.HasSuffix(t.host, "."+r.name) || r.apex && t.host == r.name
	}
	return t.host == r.name
}

func (r *rule) matchPort(port uint16) bool { return r.anyPort || slices.Contains(r.ports, port) }

// words say what the rule reaches.
func (r *rule) words() string {
	var s string
	switch {
	case r.any:
		s = "any host, by name or address"
	case r.prefix.IsValid() && r.prefix.IsSingleIP():
		s = "the address " + r.prefix.Addr().String()
	case r.prefix.IsValid():
		s = "the addresses in " + r.prefix.String() + " when asked for by address"
	case r.sub && r.apex:
		s = r.name + " and every name under it"
	case r.sub:
		s = "every name under " + r.name + ", not " + r.name + " itself"
	default:
		s = "the name " + r.name
	}
	if r.anyPort {
		s += ", any port"
	} else {
		ports := make([]string, len(r.ports))
		for i, p := range r.ports {
			ports[i] = strconv.Itoa(int(p))
		}
		s += ", port " + strings.Join(ports, " or ")
	}
	if r.request != nil {
		s += ", plain HTTP requests only: " + r.request.words()
	}
	return s
}

// parsePrefix reads a range whose address has no bits outside its mask, in strict spelling; an IPv4-mapped range is refused.
func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("is no address range; write one as in 10.0.0.0/8 or fd00::/8")
	}
	if p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("is an IPv4-mapped range; write it as an IPv4 range")
	}
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("has bits outside its mask; write %s", p.Masked())
	}
	return p, nil
}
