package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

const (
	// maxNames bounds the names that addresses stand for at once; the oldest gives way.
	maxNames = 64 << 10
	// maxQuery bounds a DNS question. What is longer asks for something that is not answered here.
	maxQuery = 1232
	// answerTTL lets a program ask again soon: an address may come to stand for another name.
	answerTTL = 1
)

// poolStart and the maxNames addresses from it on lie in 198.18.0.0/15, which no network routes (RFC 2544).
var poolStart = netip.MustParseAddr("198.18.0.0").As4()

// Names gives out an address for each name a sandbox may ask for, and knows what it stands for when a connection to it
// arrives. The addresses are of 198.18.0.0/15 and mean nothing outside; nothing is resolved until a connection is made, so a
// DNS question carries no bytes out. The zero value is ready; one is for one sandbox.
type Names struct {
	mu     sync.Mutex
	byName map[string]uint16
	byAddr map[uint16]string
	next   uint16 // the place given out last
}

// address returns the address that stands for a name.
func (n *Names) address(name string) netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byName == nil {
		n.byName, n.byAddr = map[string]uint16{}, map[uint16]string{}
	}
	at, ok := n.byName[name]
	if !ok {
		n.next++
		if n.next == 0 { // 198.18.0.0 itself is left out
			n.next = 1
		}
		at = n.next
		delete(n.byName, n.byAddr[at])
		n.byName[name], n.byAddr[at] = at, name
	}
	return netip.AddrFrom4([4]byte{poolStart[0], poolStart[1], byte(at >> 8), byte(at)})
}

// name returns what an address stands for, "" for one that was not given out.
func (n *Names) name(a netip.Addr) string {
	b := a.Unmap()
	if !b.Is4() {
		return ""
	}
	four := b.As4()
	if four[0] != poolStart[0] || four[1] != poolStart[1] {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byAddr[uint16(four[2])<<8|uint16(four[3])]
}

// ServeDNS answers the DNS questions of a sandbox on a packet socket until the context ends, and closes it. A name that the
// client's rules let through gets one address from names for A and none for other types; every other name does not exist.
// Each question about a new name is a decision in the log. Only the length of a name is bounded here, not how often it may be
// asked: no question leaves this process.
func (s *Server) ServeDNS(ctx context.Context, pc net.PacketConn, c Client, names *Names) error {
	defer pc.Close()
	defer context.AfterFunc(ctx, func() { pc.Close() })()
	r := s.room(c.Name)
	if r.rules.Load().Dialer.Policy == nil {
		s.Update(c)
	}
	id := s.nextID.Add(1)
	seen := map[string]bool{} // names already in the log, by the rules of one generation
	gen := r.gen.Load()
	buf := make([]byte, maxQuery)
	for {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			continue
		}
		if g := r.gen.Load(); g != gen || len(seen) >= maxNames {
			gen = g
			clear(seen)
		}
		if out := s.answerDNS(buf[:n], r, names, id, seen); out != nil {
			_, _ = pc.WriteTo(out, from)
		}
	}
}

// answerDNS builds the answer to one query, nil for what deserves none.
func (s *Server) answerDNS(query []byte, r *room, names *Names, id uint64, seen map[string]bool) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	reply := dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
	q, err := p.Question()
	if err != nil {
		return pack(reply, dnsmessage.RCodeFormatError, nil, nil)
	}
	if _, err := p.Question(); err != dnsmessage.ErrSectionDone || h.OpCode != 0 {
		return pack(reply, dnsmessage.RCodeNotImplemented, nil, nil)
	}
	t, err := egress.NewTarget(q.Name.String(), tlsPort)
	_, isLiteral := t.Addr()
	if err != nil || isLiteral || q.Class != dnsmessage.ClassINET {
		return pack(reply, dnsmessage.RCodeNameError, &q, nil)
	}
	rules := r.rules.Load()
	d := rules.Dialer.Policy.DecideName(t.Host())
	if !seen[t.Host()] {
		e := Event{
			Kind: KindDecision, Conn: id, Client: rules.Name, Protocol: ProtocolDNS, Target: t, Allowed: d.Allowed, Report: d.Report,
			Rule: d.Rule, Reason: d.Reason,
		}
		if !s.emit(e) {
			return pack(reply, dnsmessage.RCodeServerFailure, &q, nil)
		}
		seen[t.Host()] = true
	}
	if !d.Allowed {
		return pack(reply, dnsmessage.RCodeNameError, &q, nil)
	}
	if q.Type != dnsmessage.TypeA {
		return pack(reply, dnsmessage.RCodeSuccess, &q, nil)
	}
	a := names.address(t.Host()).As4()
	return pack(reply, dnsmessage.RCodeSuccess, &q, &dnsmessage.AResource{A: a})
}

func pack(h dnsmessage.Header, code dnsmessage.RCode, q *dnsmessage.Question, a *dnsmessage.AResource) []byte {
	h.RCode = code
	b := dnsmessage.NewBuilder(nil, h)
	b.EnableCompression()
	if q != nil {
		if b.StartQuestions() != nil || b.Question(*q) != nil {
			return nil
		}
		if a != nil {
			rh := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: answerTTL}
			if b.StartAnswers() != nil || b.AResource(rh, *a) != nil {
				return nil
			}
		}
	}
	out, err := b.Finish()
	if err != nil {
		return nil
	}
	return out
}
