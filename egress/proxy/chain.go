package proxy

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// chainTime bounds connecting through the next proxy to one address.
const chainTime = 30 * time.Second

// Chain is a proxy that connections go on through. The operator names it, so no rule judges its own address. It is asked for
// addresses that were resolved and judged here, never for a name that it would resolve again.
type Chain struct {
	// Scheme is "http" (CONNECT) or "socks5".
	Scheme string
	// Addr is the proxy's host and port.
	Addr string
	// User and Password are sent to it; no user, no login.
	User     string
	Password broker.Secret
}

func (c *Chain) check() error {
	if c.Scheme != "http" && c.Scheme != "socks5" {
		return fmt.Errorf("chain: scheme %q is neither http nor socks5", c.Scheme)
	}
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	if c.Scheme == "socks5" && len(c.User) > 255 {
		return errors.New("chain: user is longer than 255 bytes")
	}
	return nil
}

// open connects to one of the judged addresses through the proxy, if the rules still let it through.
func (c *Chain) open(ctx context.Context, p *egress.Policy, x egress.Explanation, req *egress.Request) (net.Conn, error) {
	t := x.Target
	if d := p.Decide(t, req); !d.Allowed {
		return nil, &egress.DeniedError{Target: t, Rule: d.Rule, Reason: d.Reason}
	}
	var errs []error
	for _, a := range x.Answers {
		nc, err := c.dial(ctx, netip.AddrPortFrom(a.Addr, t.Port()))
		if err == nil {
			return nc, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", a.Addr, err))
	}
	return nil, fmt.Errorf("connecting to %s through the next proxy: %w", t, errors.Join(errs...))
}

func (c *Chain) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, chainTime)
	defer cancel()
	var nd net.Dialer
	nc, err := nd.DialContext(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(longAgo) })
	s := &stream{Conn: nc}
	if c.Scheme == "http" {
		err = c.connect(s, to)
	} else {
		err = c.socks(s, to)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	if len(s.buffered()) == 0 {
		s.release()
		return nc, nil // the bare connection, which the kernel can splice
	}
	return s, nil
}

// connect asks an HTTP proxy for a tunnel.
func (c *Chain) connect(s *stream, to netip.AddrPort) error {
	out := []byte("CONNECT " + to.String() + " HTTP/1.1\r\nHost: " + to.String() + "\r\n")
	if c.User != "" {
		out = append(out, "Proxy-Authorization: Basic "...)
		out = base64.StdEncoding.AppendEncode(out, []byte(c.User+":"+c.Password.Reveal()))
		out = append(out, "\r\n"...)
	}
	if _, err := s.Conn.Write(append(out, "\r\n"...)); err != nil {
		return err
	}
	var h head
	for range maxInterim {
		raw, err := s.readHead(DefaultMaxHead)
		if err == nil {
			err = h.parseResponse(raw)
		}
		switch {
		case err != nil:
			return fmt.Errorf("the next proxy's answer: %w", err)
		case h.status >= 200 && h.status < 300:
			return nil
		case h.status >= 200:
			return fmt.Errorf("the next proxy answers %d", h.status)
		}
	}
	return errors.New("the next proxy answers nothing final")
}

// socks asks a SOCKS5 proxy for a connection.
func (c *Chain) socks(s *stream, to netip.AddrPort) error {
	method := byte(socksNoAuth)
	if c.User != "" {
		method = socksPassword
	}
	if _, err := s.Conn.Write([]byte{5, 1, method}); err != nil {
		return err
	}
	if err := s.need(2); err != nil {
		return err
	}
	if b := s.buffered(); b[0] != 5 || b[1] != method {
		return errors.New("the next proxy does not take this login")
	}
	s.discard(2)
	if method == socksPassword {
		password := c.Password.Reveal()
		if len(password) > 255 {
			return errors.New("the next proxy's password is longer than 255 bytes")
		}
		out := append([]byte{1, byte(len(c.User))}, c.User...)
		out = append(append(out, byte(len(password))), password...)
		if _, err := s.Conn.Write(out); err != nil {
			return err
		}
		if err := s.need(2); err != nil {
			return err
		}
		if s.buffered()[1] != 0 {
			return errors.New("the next proxy refuses the login")
		}
		s.discard(2)
	}
	out := []byte{5, 1, 0, 1}
	if to.Addr().Is6() {
		out[3] = 4
	}
	out = append(out, to.Addr().AsSlice()...)
	out = append(out, byte(to.Port()>>8), byte(to.Port()))
	if _, err := s.Conn.Write(out); err != nil {
		return err
	}
	if err := s.need(5); err != nil {
		return err
	}
	b := s.buffered()
	if b[0] != 5 || b[1] != socksDone {
		return fmt.Errorf("the next proxy replies %d", b[1])
	}
	n := 4
	switch b[3] {
	case 1:
		n += 4
	case 3:
		n += 1 + int(b[4])
	case 4:
		n += 16
	default:
		return errSOCKS
	}
	if err := s.need(n + 2); err != nil {
		return err
	}
	s.discard(n + 2)
	return nil
}
