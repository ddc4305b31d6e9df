package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Target is one canonical destination: a host (an ASCII name in lower case without a trailing dot, or an address that is not
// an IPv4-mapped one) and a port. The same value serves rule, resolver, dial, SNI check and log, so no two of them can read a
// destination differently. Targets compare with ==; the zero value is no target and is refused everywhere.
type Target struct {
	host string     // canonical text: a name, or addr without brackets
	addr netip.Addr // valid for a literal
	port uint16
}

// ParseTarget reads the authority form "host:port". A defaultPort other than 0 is taken where no port is written; with 0 the
// port is required. IPv6 addresses need brackets. The error is a [*TargetError].
func ParseTarget(hostport string, defaultPort uint16) (Target, error) {
	host, port, err := splitPort(hostport, defaultPort)
	if err != nil {
		return Target{}, err
	}
	return newTarget(host, port, strings.HasPrefix(host, "["))
}

// NewTarget builds a target from a host and a port that arrived apart, as in SOCKS5 or a rule: an IPv6 address may then come
// with or without brackets. The error is a [*TargetError].
func NewTarget(host string, port uint16) (Target, error) {
	return newTarget(host, port, true)
}

// TargetFrom builds a target from an address and a port. A zone is refused; an IPv4-mapped address becomes the IPv4 one.
func TargetFrom(ap netip.AddrPort) (Target, error) {
	a := ap.Addr()
	switch {
	case !a.IsValid():
		return Target{}, refuse(ReasonEmptyHost)
	case a.Zone() != "":
		return Target{}, refuse(ReasonZone)
	case ap.Port() == 0:
		return Target{}, refuse(ReasonPort)
	}
	a = a.Unmap()
	return Target{host: a.String(), addr: a, port: ap.Port()}, nil
}

func newTarget(host string, port uint16, bareV6 bool) (Target, error) {
	if port == 0 {
		return Target{}, refuse(ReasonPort)
	}
	name, addr, err := canonicalHost(host, bareV6)
	if err != nil {
		return Target{}, err
	}
	return Target{host: name, addr: addr, port: port}, nil
}

// Host is the canonical name or address, an IPv6 address without brackets.
func (t Target) Host() string { return t.host }

// Addr is the address of a literal target; for a name it is invalid and the bool false.
func (t Target) Addr() (netip.Addr, bool) { return t.addr, t.addr.IsValid() }

// Port is never 0 in a valid target.
func (t Target) Port() uint16 { return t.port }

// IsValid reports whether t came from one of the constructors.
func (t Target) IsValid() bool { return t.port != 0 }

// String is the authority form, with brackets round IPv6; "" for the zero value. [ParseTarget] reads it back to the same value.
func (t Target) String() string {
	if !t.IsValid() {
		return ""
	}
	if t.addr.Is6() {
		return "[" + t.host + "]:" + strconv.Itoa(int(t.port))
	}
	return t.host + ":" + strconv.Itoa(int(t.port))
}

// MarshalText gives [Target.String], for logs and JSON.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// TargetError says why a spelling is no target. It does not hold the spelling: that is a stranger's text and has no place in
// an error or a log.
type TargetError struct {
	Reason Reason
}

func (e *TargetError) Error() string {
	return fmt.Sprintf("no usable target (%s): %s", e.Reason, targetProblems[e.Reason])
}

func refuse(r Reason) *TargetError { return &TargetError{r} }

// Reason is a stable token that says why something was refused.
type Reason string

// Reasons of a [TargetError].
const (
	ReasonEmptyHost Reason = "empty-host"
	ReasonControl   Reason = "control-in-host"
	ReasonSpace     Reason = "space-in-host"
	ReasonUserinfo  Reason = "userinfo"
	ReasonPercent   Reason = "percent-in-host"
	ReasonZone      Reason = "zone"
	ReasonBrackets  Reason = "brackets"
	ReasonCharacter Reason = "character"
	ReasonLabel     Reason = "label"
	ReasonLength    Reason = "length"
	ReasonSpelling  Reason = "address-spelling"
	ReasonIDNA      Reason = "idna"
	ReasonPort      Reason = "port"
	ReasonURL       Reason = "url"
)

var targetProblems = map[Reason]string{
	ReasonEmptyHost: "there is no host",
	ReasonControl:   "the host holds a control character",
	ReasonSpace:     "the host holds a space",
	ReasonUserinfo:  "something stands before an @",
	ReasonPercent:   "the host holds a percent sign",
	ReasonZone:      "the address has a zone",
	ReasonBrackets:  "brackets belong exactly round an IPv6 address, and an IPv6 address with a port needs them",
	ReasonCharacter: "the host holds a character that no host name has",
	ReasonLabel:     "a label is empty, over 63 octets, or begins or ends with a hyphen",
	ReasonLength:    "the name is over 253 octets",
	ReasonSpelling:  "an IPv4 address is four decimal numbers without leading zeros, and no name ends in a number",
	ReasonIDNA:      "the name is not valid under UTS 46",
	ReasonPort:      "a port from 1 to 65535 is needed, in plain decimal",
	ReasonURL:       "not an absolute http or https URL, or one that readers take apart differently",
}

// splitPort cuts "host:port" at the only place where every reader would. The host keeps its brackets.
func splitPort(s string, defaultPort uint16) (host string, port uint16, err error) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", 0, refuse(ReasonBrackets)
		}
		host = s[:end+1]
		rest := s[end+1:]
		if rest == "" {
			return host, defaultPort, portGiven(defaultPort)
		}
		if rest[0] != ':' {
			return "", 0, refuse(ReasonBrackets)
		}
		port, err = parsePort(rest[1:])
		return host, port, err
	}
	host, text, found := strings.Cut(s, ":")
	if !found {
		return host, defaultPort, portGiven(defaultPort)
	}
	if strings.Contains(text, ":") { // two ports, or an IPv6 address whose last group may be a port
		return "", 0, refuse(ReasonBrackets)
	}
	port, err = parsePort(text)
	return host, port, err
}

func portGiven(defaultPort uint16) error {
	if defaultPort == 0 {
		return refuse(ReasonPort)
	}
	return nil
}

// parsePort reads 1 to 65535 in the one spelling that all readers agree on: no sign, no leading zero, no space.
func parsePort(s string) (uint16, error) {
	if s == "" || len(s) > 5 || s[0] == '0' {
		return 0, refuse(ReasonPort)
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, refuse(ReasonPort)
		}
		n = n*10 + int(s[i]-'0')
	}
	if n > 65535 {
		return 0, refuse(ReasonPort)
	}
	return uint16(n), nil
}
