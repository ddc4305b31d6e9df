package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// attemptDelay is the Connection Attempt Delay of RFC 8305 section 5.
const attemptDelay = 250 * time.Millisecond

var errNoAddress = errors.New("no address was tried")

// race tries addresses as RFC 8305 says: families in turn, IPv6 first, the next one after a failure or attemptDelay. All are
// tried until one connects or ctx ends; the losers are closed before race returns. The error names each address.
func race(ctx context.Context, addrs []netip.AddrPort, dial func(context.Context, netip.AddrPort) (net.Conn, error)) (net.Conn, error) {
	if len(addrs) == 1 && ctx.Err() == nil { // nothing to race
		conn, err := dial(ctx, addrs[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", addrs[0], cause(err))
		}
		return conn, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	order := interleave(addrs)
	results := make(chan result)
	pending := 0
	next := func() {
		ap := order[0]
		order = order[1:]
		pending++
		go func() {
			conn, err := dial(ctx, ap)
			if err != nil {
				err = fmt.Errorf("%s: %w", ap, cause(err))
			}
			results <- result{conn, err}
		}()
	}
	var failures []error
	timer := time.NewTimer(attemptDelay)
	defer timer.Stop()
	for len(order) > 0 || pending > 0 {
		if pending == 0 {
			if ctx.Err() != nil {
				break
			}
			next()
			timer.Reset(attemptDelay)
		}
		select {
		case r := <-results:
			pending--
			if r.err == nil {
				cancel()
				for range pending {
					if late := <-results; late.conn != nil {
						late.conn.Close()
					}
				}
				return r.conn, nil
			}
			failures = append(failures, r.err)
			if len(order) > 0 && ctx.Err() == nil {
				next()
				timer.Reset(attemptDelay)
			}
		case <-timer.C:
			if len(order) > 0 && ctx.Err() == nil {
				next()
				timer.Reset(attemptDelay)
			}
		}
	}
	if len(failures) == 0 {
		failures = append(failures, errNoAddress, ctx.Err())
	}
	return nil, errors.Join(failures...)
}

// interleave puts IPv6 and IPv4 in turn, keeping the resolver's order within each.
func interleave(addrs []netip.AddrPort) []netip.AddrPort {
	var six, four, out []netip.AddrPort
	for _, ap := range addrs {
		if ap.Addr().Is6() {
			six = append(six, ap)
		} else {
			four = append(four, ap)
		}
	}
	for len(six) > 0 || len(four) > 0 {
		if len(six) > 0 {
			out, six = append(out, six[0]), six[1:]
		}
		if len(four) > 0 {
			out, four = append(out, four[0]), four[1:]
		}
	}
	return out
}

// cause takes the address that net.OpError repeats out of an error.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}
