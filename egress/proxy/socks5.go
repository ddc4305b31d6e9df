package proxy

import (
	"errors"
	"net/netip"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

// SOCKS5 replies (RFC 1928 section 6).
const (
	socksDone        = 0
	socksFailed      = 1
	socksRefused     = 2 // not allowed by ruleset
	socksUnreachable = 4
	socksCommand     = 7 // command not supported
	socksAddress     = 8 // address type not supported
)

const (
	socksNoAuth   = 0x00
	socksPassword = 0x02
	socksNone     = 0xff
)

var (
	errSOCKS        = errors.New("not a well-formed SOCKS5 message")
	errSOCKSCommand = errors.New("SOCKS5 command other than CONNECT")
	errSOCKSAddress = errors.New("SOCKS5 address type is unknown")
)

// readMethods reads a client's greeting (RFC 1928 section 3) and reports whether it offers the method.
func (s *stream) readMethods(method byte) (bool, error) {
	if err := s.need(2); err != nil {
		return false, err
	}
	n := 2 + int(s.buffered()[1])
	if err := s.need(n); err != nil {
		return false, err
	}
	b := s.buffered()[:n]
	s.discard(n)
	if b[0] != 5 || n == 2 {
		return false, errSOCKS
	}
	for _, m := range b[2:] {
		if m == method {
			return true, nil
		}
	}
	return false, nil
}

// readPassword reads a user and a password (RFC 1929).
func (s *stream) readPassword() (user, password string, err error) {
	if err := s.need(2); err != nil {
		return "", "", err
	}
	if s.buffered()[0] != 1 {
		return "", "", errSOCKS
	}
	u := int(s.buffered()[1])
	if err := s.need(2 + u + 1); err != nil {
		return "", "", err
	}
	p := int(s.buffered()[2+u])
	if err := s.need(2 + u + 1 + p); err != nil {
		return "", "", err
	}
	b := s.buffered()
	user, password = string(b[2:2+u]), string(b[3+u:3+u+p])
	s.discard(3 + u + p)
	return user, password, nil
}

// readSOCKSRequest reads the request (RFC 1928 section 4). A name comes with its length, so it may hold any byte: the target
// is built by the one constructor that refuses what no host has. The error is an [egress.TargetError], one of the errSOCKS, or
// what the connection said.
func (s *stream) readSOCKSRequest() (egress.Target, error) {
	if err := s.need(5); err != nil {
		return egress.Target{}, err
	}
	b := s.buffered()
	if b[0] != 5 || b[2] != 0 {
		return egress.Target{}, errSOCKS
	}
	var n int
	switch b[3] {
	case 1:
		n = 4
	case 3:
		n = 1 + int(b[4])
	case 4:
		n = 16
	default:
		return egress.Target{}, errSOCKSAddress
	}
	if err := s.need(4 + n + 2); err != nil {
		return egress.Target{}, err
	}
	b = s.buffered()[:4+n+2]
	s.discard(len(b))
	if b[1] != 1 {
		return egress.Target{}, errSOCKSCommand
	}
	addr, port := b[4:4+n], uint16(b[4+n])<<8|uint16(b[5+n])
	if b[3] == 3 {
		return egress.NewTarget(string(addr[1:]), port)
	}
	a, _ := netip.AddrFromSlice(addr)
	return egress.TargetFrom(netip.AddrPortFrom(a, port))
}

// socksReply is a reply with an empty bound address: where the proxy dials from is nobody's business behind it.
func socksReply(code byte) []byte { return []byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0} }

// socks4Refused answers a SOCKS4 client, which SOCKS4a's unchecked names make unwelcome, so that it does not wait.
var socks4Refused = []byte{0, 0x5b, 0, 0, 0, 0, 0, 0}
