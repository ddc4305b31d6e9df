package proxy

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// bubble is a tunnel between two pipes, under a clock that only the test moves.
type bubble struct {
	client, far net.Conn
	closed      chan Event
}

// openBubble must be called in a synctest bubble: real sockets have no place there.
func openBubble(t *testing.T, l Limits) *bubble {
	t.Helper()
	b := &bubble{closed: make(chan Event, 1)}
	var clientSide, farSide net.Conn
	b.client, clientSide = net.Pipe()
	farSide, b.far = net.Pipe()
	s, err := New(Options{Limits: l, Logger: discard, Record: func(e Event) error {
		b.closed <- e
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := s.newConn(context.Background(), clientSide, s.room("test"), nil)
	c.guard.begin(s.opts.Limits.Idle)
	go func() {
		defer c.finish()
		c.join(farSide, nil)
		c.pump(farSide, func() error { return c.flushTo(farSide) }, nil)
	}()
	return b
}

func (b *bubble) send(t *testing.T, from, to net.Conn) {
	t.Helper()
	go func() { _, _ = from.Write([]byte("x")) }()
	if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
		t.Fatalf("after %v: %v", time.Now(), err)
	}
}

// TestIdle counts both directions together: a quiet tunnel lives as long as either side says something in time.
func TestIdle(t *testing.T) {
	for name, dirs := range map[string][]bool{"one byte up": {true}, "one byte down": {false}, "in turns": {true, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := openBubble(t, Limits{Idle: time.Minute})
				start := time.Now()
				for i := range 20 {
					time.Sleep(30 * time.Second)
					if dirs[i%len(dirs)] {
						b.send(t, b.client, b.far)
					} else {
						b.send(t, b.far, b.client)
					}
				}
				if _, err := b.client.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("the end: %v", err)
				}
				e := <-b.closed
				if e.Reason != ReasonIdle || e.Up+e.Down != 20 {
					t.Errorf("closed as %+v", e)
				}
				if got := time.Since(start); got < 11*time.Minute || got > 11*time.Minute+time.Second {
					t.Errorf("closed after %v, want 10 minutes and the limit of one", got)
				}
			})
		})
	}
}

// TestIdleDefault: two hours of silence are too long, fifty minutes are not.
func TestIdleDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBubble(t, Limits{})
		for range 3 {
			time.Sleep(50 * time.Minute)
			b.send(t, b.far, b.client)
		}
		time.Sleep(2 * time.Hour)
		if e := <-b.closed; e.Reason != ReasonIdle || e.Duration > 3*time.Hour+31*time.Minute {
			t.Errorf("closed as %+v", e)
		}
	})
}

// TestSlowTransfer: what takes long but moves is not cut off, upload and download alike.
func TestSlowTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBubble(t, Limits{Idle: time.Minute})
		go func() {
			for range 1200 { // 20 hours up with nothing in return
				time.Sleep(59 * time.Second)
				if _, err := b.client.Write(make([]byte, 100_000)); err != nil {
					break
				}
			}
			b.client.Close()
		}()
		n, err := io.Copy(io.Discard, b.far)
		if n != 1200*100_000 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		b.far.Close()
		if e := <-b.closed; e.Reason == ReasonIdle || e.Up != 1200*100_000 {
			t.Errorf("closed as %+v", e)
		}
	})
}

// TestGuardShrinks: a limit that becomes shorter counts from when it did.
func TestGuardShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		done := make(chan time.Duration, 1)
		g := guard{expire: func() { done <- time.Since(start) }}
		g.begin(time.Hour)
		time.Sleep(time.Minute)
		g.touch()
		g.begin(10 * time.Second)
		if got := <-done; got != 70*time.Second {
			t.Errorf("expired after %v, want 70s", got)
		}
		g.stop()
		g.begin(time.Second)
		time.Sleep(time.Minute)
		if len(done) > 0 {
			t.Error("expired after stop")
		}
	})
}
