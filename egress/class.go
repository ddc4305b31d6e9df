package egress

import (
	"net/netip"
	"slices"
)

// Kind is the coarse class of an address, a stable token for logs. The zero value is refused like every kind but [Outward].
type Kind string

const (
	Unknown   Kind = ""
	Outward   Kind = "outward"   // public IPv4, or 2000::/3 outside its special blocks
	Special   Kind = "special"   // a block of the IANA registries that is not globally reachable
	Multicast Kind = "multicast" // 224.0.0.0/4, ff00::/8
	Reserved  Kind = "reserved"  // IPv6 outside 2000::/3, and translated addresses of a form that RFC 6052 forbids
	Metadata  Kind = "metadata"  // a cloud's metadata or credential service, wherever its address lies
	Own       Kind = "own"       // an address of this host
)

// Class says what an address is. The zero value is refused.
type Class struct {
	Kind   Kind         `json:"kind"`
	Name   string       `json:"name,omitempty"`    // the registry's name of the block, or the service
	Prefix netip.Prefix `json:"block,omitzero"`    // the block
	Form   string       `json:"form,omitempty"`    // how V4 is embedded, when an embedded IPv4 address decided: "NAT64", "6to4", …
	V4     netip.Addr   `json:"embedded,omitzero"` // the embedded IPv4 address
}

// Outward reports whether a connection may go there without an exemption.
func (c Class) Outward() bool { return c.Kind == Outward }

// String names the class for people and logs: "Loopback 127.0.0.0/8, as NAT64 of 127.0.0.1".
func (c Class) String() string {
	s := c.Name
	if s == "" {
		s = string(c.Kind)
	}
	if s == "" {
		return "unknown"
	}
	if c.Prefix.IsValid() {
		s += " " + c.Prefix.String()
	}
	if c.Form != "" {
		s += ", as " + c.Form + " of " + c.V4.String()
	}
	return s
}

// block is a row of a registry: global is its "Globally Reachable".
type block struct {
	prefix netip.Prefix
	name   string
	global bool
}

// Blocks that the special-purpose registries leave to other registries.
var (
	globalUnicast = netip.MustParsePrefix("2000::/3") // the only IPv6 space IANA allocates from
	multicast     = []block{
		{netip.MustParsePrefix("224.0.0.0/4"), "Multicast", false},
		{netip.MustParsePrefix("ff00::/8"), "Multicast", false},
	}
)

// Classifier classes addresses with what only this host knows.
type Classifier struct {
	NAT64 []netip.Prefix // network-specific prefixes of RFC 6052, checked by [NewPolicy]
	Own   []netip.Prefix // addresses of this host, as [HostAddrs] reads them
}

// Classify classes an address by the registries alone; nat64 are prefixes whose addresses are judged as the IPv4 address they
// carry. A zone is ignored.
func Classify(a netip.Addr, nat64 ...netip.Prefix) Class {
	return Classifier{NAT64: nat64}.Classify(a)
}

// Classify classes an address. An address that carries an IPv4 address in any known form is outward only if that one is.
func (c Classifier) Classify(a netip.Addr) Class {
	a = a.WithZone("").Unmap()
	switch {
	case !a.IsValid():
		return Class{}
	case a.Is4():
		return c.plain(a)
	}
	if m := metadataService(a); m.Kind != Unknown {
		return m
	}
	translated := false
	var worst Class
	for _, e := range embedded(a, c.NAT64) {
		if !e.v4.IsValid() {
			return Class{Kind: Reserved, Name: "no translated IPv4 in the form of RFC 6052", Prefix: e.prefix}
		}
		v4 := c.plain(e.v4)
		v4.Form, v4.V4 = e.form, e.v4
		if v4.Kind == Metadata {
			return v4
		}
		if !v4.Outward() && worst.Kind == Unknown && !e.guess {
			worst = v4
		}
		translated = translated || e.translator
	}
	switch {
	case worst.Kind != Unknown:
		return worst
	case translated:
		return Class{Kind: Outward, Name: "translated IPv4"}
	}
	return c.plain(a)
}

// plain classes an address by itself.
func (c Classifier) plain(a netip.Addr) Class {
	if m := metadataService(a); m.Kind != Unknown {
		return m
	}
	for _, b := range multicast {
		if b.prefix.Contains(a) {
			return Class{Kind: Multicast, Name: b.name, Prefix: b.prefix}
		}
	}
	for _, b := range registry {
		if !b.prefix.Contains(a) {
			continue
		}
		if !b.global {
			return Class{Kind: Special, Name: b.name, Prefix: b.prefix}
		}
		break
	}
	if slices.ContainsFunc(c.Own, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return Class{Kind: Own, Name: "this host's own address"}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return Class{Kind: Reserved, Name: "outside global unicast 2000::/3"}
	}
	return Class{Kind: Outward}
}
