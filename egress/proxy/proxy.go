// Package proxy is the listener that a sandbox talks to: CONNECT, plain HTTP, SOCKS5, and TLS or HTTP that arrive without
// knowing of a proxy, all on one port, told apart by their first bytes. Where a connection may go is not decided here: that is
// the [egress.Dialer] of each [Client].
//
//	srv, err := proxy.New(proxy.Options{})
//	err = srv.Serve(ctx, listener, proxy.Client{Name: "build", Dialer: &egress.Dialer{Policy: policy}})
//
// [Server.Serve] blocks until its context ends. Which listener a connection came by says whose it is; where one listener
// serves several, [Client.Login] or [Client.Peer] tells them apart. [Server.Update] puts new rules in force.
// [Server.ServeTransparent] and [Server.ServeDNS] serve a network namespace whose programs know of no proxy.
//
// # Limits
//
// The proxy sees where a connection goes, not what a tunnel carries: TLS is not opened. Its name in the clear must be the
// target's, which a server may ignore: one that serves several names on one certificate can be asked for another inside.
// A host that is allowed can be told anything. Port 80 is taken
// for HTTP in every tunnel, port 443 for TLS; on other ports what is neither TLS nor HTTP/1 passes unread. HTTP/2 is carried
// inside tunnels only, and without TLS on other ports only. Requests on one connection are answered one after the other.
package proxy

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

// Options say how a [Server] works. The zero value is strict and uses the defaults of [Limits].
type Options struct {
	Limits Limits

	// AllowNoServerName lets a tunnel to a name on port 443 carry a ClientHello without a server name, or no TLS at all.
	AllowNoServerName bool
	// AllowEncryptedHello lets a ClientHello carry an encrypted one, whose name nobody but the server sees. Browsers send a
	// decoy of it on every connection, which cannot be told from a real one.
	AllowEncryptedHello bool
	// KeepRefusedTunnels lets tunnels live on that new rules given to [Server.Update] refuse.
	KeepRefusedTunnels bool

	// Chain, when not nil, is the proxy that connections go on through. Names are resolved and judged here first; it is asked
	// for addresses only.
	Chain *Chain

	// Record is called with each event before what it tells of is done, and with each connection that closed. An error refuses
	// the connection it was called for. nil records nothing.
	Record func(Event) error
	// Logger gets the same events. nil: [slog.Default].
	Logger *slog.Logger
	// Meter counts. nil counts nothing.
	Meter metric.Meter
	// OwnPorts are further ports this program listens on, such as its metrics or approvals page: never a target on this host.
	OwnPorts func() []uint16
	// Roots verify the hosts that credentials are stamped for. nil: the system's.
	Roots *x509.CertPool
}

// Limits bound what a client may use. A zero field is its default; a negative time or number is no limit.
type Limits struct {
	Connections int           // open at once, for each client; default: a quarter of the descriptors this process may open, at most 16,384
	Bytes       int64         // in both directions, for each client, as long as the server runs; default: no limit
	Head        int           // bytes of a message head; default: 64 KiB
	HeadTime    time.Duration // for a head, a SOCKS exchange or a ClientHello to arrive; default: 20 s
	KeepAlive   time.Duration // between two requests on one connection; default: 2 min
	Idle        time.Duration // without a byte in either direction; default: 1 h
	Total       time.Duration // for a connection, whatever moves; default: no limit
}

func (l Limits) withDefaults() Limits {
	def := func(d *time.Duration, v time.Duration) {
		switch {
		case *d == 0:
			*d = v
		case *d < 0:
			*d = forever
		}
	}
	def(&l.HeadTime, 20*time.Second)
	def(&l.KeepAlive, 2*time.Minute)
	def(&l.Idle, time.Hour)
	def(&l.Total, forever)
	if l.Connections == 0 {
		l.Connections = defaultConnections()
	}
	if l.Head <= 0 {
		l.Head = DefaultMaxHead
	}
	return l
}

// forever is longer than any process lives, and short enough to add to a clock.
const forever = 100 * 365 * 24 * time.Hour

// mostConnections bounds the default for one client.
const mostConnections = 16 << 10

// Client is who speaks on a listener, and under which rules.
type Client struct {
	// Name stands in logs, metrics, limits and credentials. Clients of one name share their limits.
	Name string
	// Dialer decides and dials. Its OwnPorts are completed with those of the server. nil refuses everything.
	Dialer *egress.Dialer
	// Broker stamps credentials. nil stamps none.
	Broker *broker.Broker
	// Login, when not nil, asks for a user and a password (Basic, or RFC 1929 in SOCKS5) and returns the name of the client
	// they belong to, which must be one given to [Server.Update] or Serve.
	Login func(user, password string) (name string, ok bool)
	// Peer, when not nil, needs connections over TLS (the listener is one of [tls.NewListener] that verifies clients) and
	// returns the name of the client a certificate belongs to.
	Peer func(tls.ConnectionState) (name string, ok bool)
}

// Server serves any number of listeners. Its zero value is not usable; see [New].
type Server struct {
	opts  Options
	log   *slog.Logger
	meter meters
	via   string // this server's name in Via, which no other has

	pipes  spliceSet
	nextID atomic.Uint64

	mu      sync.Mutex
	clients map[string]*room
	conns   map[*conn]struct{}
	ports   []uint16
}

// room is what the server keeps for one client name.
type room struct {
	rules atomic.Pointer[Client]
	gen   atomic.Uint64 // counts Update, so that connections kept from before are not used again
	open  atomic.Int64
	bytes atomic.Int64
}

// New checks the options.
func New(o Options) (*Server, error) {
	o.Limits = o.Limits.withDefaults()
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Chain != nil {
		if err := o.Chain.check(); err != nil {
			return nil, err
		}
	}
	var id [8]byte
	_, _ = rand.Read(id[:])
	s := &Server{
		opts:    o,
		log:     o.Logger,
		via:     "hearsay-" + hex.EncodeToString(id[:]),
		clients: map[string]*room{},
		conns:   map[*conn]struct{}{},
	}
	var err error
	s.meter, err = newMeters(o.Meter)
	return s, err
}

// Update puts the rules of clients in force, by their names, for every decision from now on. Open tunnels that the new rules
// refuse are ended, except with KeepRefusedTunnels.
func (s *Server) Update(clients ...Client) {
	for _, c := range clients {
		r := s.room(c.Name)
		r.rules.Store(s.prepare(c))
		r.gen.Add(1)
	}
	if s.opts.KeepRefusedTunnels {
		return
	}
	for _, c := range s.all() {
		c.rejudge()
	}
}

// prepare copies a client and makes its dialer refuse this server's own ports.
func (s *Server) prepare(c Client) *Client {
	if c.Dialer != nil {
		d := *c.Dialer
		theirs := d.OwnPorts
		d.OwnPorts = func() []uint16 {
			ports := s.Ports()
			if theirs != nil {
				ports = append(ports, theirs()...)
			}
			return ports
		}
		c.Dialer = &d
	} else {
		c.Dialer = &egress.Dialer{}
	}
	return &c
}

func (s *Server) room(name string) *room {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.clients[name]
	if r == nil {
		r = &room{}
		r.rules.Store(s.prepare(Client{Name: name}))
		s.clients[name] = r
	}
	return r
}

// known returns the room of a client that Update or Serve has named.
func (s *Server) known(name string) (*room, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.clients[name]
	return r, ok
}

// Ports lists the ports this server listens on now, and those of Options.OwnPorts.
func (s *Server) Ports() []uint16 {
	s.mu.Lock()
	ports := slices.Clone(s.ports)
	s.mu.Unlock()
	if s.opts.OwnPorts != nil {
		ports = append(ports, s.opts.OwnPorts()...)
	}
	return ports
}

// Serve accepts connections from a listener until the context ends or the listener fails, and returns when the last of them
// is gone. It closes the listener. The error is nil when the context ended.
func (s *Server) Serve(ctx context.Context, l net.Listener, c Client) error {
	return s.serve(ctx, l, c, nil)
}

// ServeTransparent is Serve for a listener whose connections were meant for somewhere else: the local address of each is where
// its program wanted to go, as with a local route for every address in a network namespace. Requests name their host
// themselves (SNI, Host); a connection to an address that [Server.ServeDNS] gave out must name the host it stands for.
func (s *Server) ServeTransparent(ctx context.Context, l net.Listener, c Client, names *Names) error {
	return s.serve(ctx, l, c, &transparent{names: names})
}

func (s *Server) serve(ctx context.Context, l net.Listener, c Client, tr *transparent) error {
	defer l.Close()
	s.Update(c)
	r := s.room(c.Name)
	if a, ok := l.Addr().(*net.TCPAddr); ok && tr == nil {
		s.mu.Lock()
		s.ports = append(s.ports, uint16(a.Port))
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if i := slices.Index(s.ports, uint16(a.Port)); i >= 0 {
				s.ports = slices.Delete(s.ports, i, i+1)
			}
		}()
	}
	s.pipes.enter()
	defer s.pipes.leave()

	crew := newCrew()
	defer crew.end()
	ctx, cancel := context.WithCancel(ctx)
	end := func() {
		l.Close()
		s.endAll(ctx)
	}
	stop := context.AfterFunc(ctx, end)
	defer func() { // also where the listener has failed
		stop()
		cancel()
		end()
	}()
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if !momentary(err) {
				return err
			}
			// Out of descriptors or memory, or a peer gone before it was accepted: not the end of the proxy.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Warn("egress accept", "error", err.Error(), "pause", pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		pause = 0
		crew.do(func() { s.handle(ctx, nc, r, tr, crew) })
	}
}

// momentary reports whether accepting may work again after a while.
func momentary(err error) bool {
	for _, e := range [...]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// transparent says how to find where a connection was meant to go.
type transparent struct{ names *Names }

// original returns the address a connection was made to, and the name it stands for if it is one that was given out.
func (t *transparent) original(nc net.Conn) (netip.AddrPort, string) {
	a, ok := nc.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, ""
	}
	ap := a.AddrPort()
	ap = netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	if t.names == nil {
		return ap, ""
	}
	return ap, t.names.name(ap.Addr())
}
