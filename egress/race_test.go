package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeNet answers dials after a time that each address has, on the clock of a synctest bubble.
type fakeNet struct {
	mu     sync.Mutex
	delays map[string]time.Duration // negative: fails after that time; absent: never answers
	began  []string                 // "address@milliseconds"
	start  time.Time
	open   int
}

type fakeConn struct {
	net.Conn
	name string
	net  *fakeNet
}

func (c *fakeConn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.net.open--
	return nil
}

func (f *fakeNet) dial(ctx context.Context, ap netip.AddrPort) (net.Conn, error) {
	name := ap.Addr().String()
	f.mu.Lock()
	f.began = append(f.began, fmt.Sprintf("%s@%d", name, time.Since(f.start).Milliseconds()))
	delay, answers := f.delays[name]
	f.mu.Unlock()
	if !answers {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case <-time.After(max(delay, -delay)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if delay < 0 {
		return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
	}
	f.mu.Lock()
	f.open++
	f.mu.Unlock()
	return &fakeConn{name: name, net: f}, nil
}

func TestRace(t *testing.T) {
	const fast, dead = time.Millisecond, -time.Millisecond
	for _, c := range []struct {
		name, addrs string
		delays      map[string]time.Duration
		want        string // who wins
		began       string
	}{
		{"IPv6 comes first", "1.1.1.1 2600::1", map[string]time.Duration{"2600::1": fast, "1.1.1.1": fast}, "2600::1", "2600::1@0"},
		{"a dead family costs nothing", "2600::1 1.1.1.1", map[string]time.Duration{"2600::1": dead, "1.1.1.1": fast}, "1.1.1.1", "2600::1@0 1.1.1.1@1"},
		{"a silent family costs 250 ms", "2600::1 1.1.1.1", map[string]time.Duration{"1.1.1.1": fast}, "1.1.1.1", "2600::1@0 1.1.1.1@250"},
		{"families in turn", "2600::1 2600::2 2600::3 1.1.1.1 1.1.1.2", map[string]time.Duration{"1.1.1.2": fast}, "1.1.1.2", "2600::1@0 1.1.1.1@250 2600::2@500 1.1.1.2@750"},
		{"a slow first one still wins when the rest is dead", "2600::1 1.1.1.1", map[string]time.Duration{"2600::1": time.Second, "1.1.1.1": dead}, "2600::1", "2600::1@0 1.1.1.1@250"},
		{"nineteen silent ones are all tried", strings.TrimSpace(strings.Repeat("1.1.1.9 ", 18)) + " 1.1.1.1", map[string]time.Duration{"1.1.1.1": fast}, "1.1.1.1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeNet{delays: c.delays, start: time.Now()}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				conn, err := race(ctx, addrPorts(c.addrs), f.dial)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(f.start); took > 6*time.Second {
					t.Errorf("took %v: the losers were waited for", took)
				}
				if got := conn.(*fakeConn).name; got != c.want {
					t.Errorf("%s won", got)
				}
				if got := strings.Join(f.began, " "); c.began != "" && got != c.began {
					t.Errorf("began %s", got)
				}
				conn.Close()
				synctest.Wait()
				if f.open != 0 {
					t.Errorf("%d connections stay open", f.open)
				}
			})
		})
	}
}

func TestRaceErrorNamesEveryAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNet{delays: map[string]time.Duration{"1.1.1.1": -time.Millisecond, "2600::1": -time.Second}, start: time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := race(ctx, addrPorts("1.1.1.1 2600::1 1.1.1.3"), f.dial)
		for _, want := range []string{"1.1.1.1:443: refused", "[2600::1]:443: refused", "1.1.1.3:443: context deadline exceeded"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %v", want, err)
			}
		}
		if got := time.Since(f.start); got != 2*time.Second {
			t.Errorf("took %v", got)
		}
	})
}

func TestRaceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f := &fakeNet{start: time.Now()}
		if _, err := race(ctx, addrPorts("1.1.1.1"), f.dial); !errors.Is(err, context.Canceled) || len(f.began) > 0 {
			t.Errorf("%v after dialling %v", err, f.began)
		}
		if conn, err := race(t.Context(), nil, f.dial); err == nil {
			t.Errorf("no address at all: %v", conn)
		}
	})
}

// A loser that connects while the winner is handed out must not stay open.
func TestRaceClosesLosers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNet{start: time.Now()}
		deaf := func(_ context.Context, ap netip.AddrPort) (net.Conn, error) { // does not hear that it is cancelled
			time.Sleep(300 * time.Millisecond)
			f.mu.Lock()
			defer f.mu.Unlock()
			f.open++
			return &fakeConn{name: ap.Addr().String(), net: f}, nil
		}
		conn, err := race(t.Context(), addrPorts("1.1.1.1 1.1.1.2"), deaf)
		if err != nil {
			t.Fatal(err)
		}
		if f.open != 1 {
			t.Errorf("%d connections are open", f.open)
		}
		conn.Close()
	})
}

func addrPorts(s string) []netip.AddrPort {
	var out []netip.AddrPort
	for _, a := range strings.Fields(s) {
		out = append(out, netip.AddrPortFrom(netip.MustParseAddr(a), 443))
	}
	return slices.Clip(out)
}
