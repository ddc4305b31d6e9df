package egress

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// ednsSize is the UDP answer size that passes without fragments (DNS flag day 2020).
	ednsSize = 1232
	// maxForeign bounds the packets thrown away while waiting for the answer to one question: a spoofer's guesses.
	maxForeign = 64
	// maxRecords bounds the records of one message that are read.
	maxRecords = 1024
)

var (
	errTruncated  = errors.New("truncated answer")
	errCase       = errors.New("the answer changes the case of the question")
	errMalformed  = errors.New("malformed answer")
	errNoServer   = errors.New("no DNS server is configured")
	errAliasChain = errors.New("alias chain")
)

// rcodeError is an answer that is no answer.
type rcodeError dnsmessage.RCode

func (e rcodeError) Error() string {
	return fmt.Sprintf("the server answers %s", dnsmessage.RCode(e))
}

// resolve asks for one address family and follows aliases. Only records on the chain from the name count: what else a server
// sends is not an answer to the question.
func (c dnsConfig) resolve(ctx context.Context, name string, qtype dnsmessage.Type, now func() time.Time) (Resolved, error) {
	var out Resolved
	at, seen := name, map[string]bool{name: true}
	ttl := maxTTL
	for range maxQuestions {
		msg, server, err := c.exchange(ctx, at, qtype)
		if err != nil {
			return out, dnsFailure(name, err)
		}
		out.Source = server.String()
		for {
			if addrs := msg.addrs[at]; len(addrs.list) > 0 {
				out.Addrs = addrs.list
				out.expires = now().Add(min(ttl, addrs.ttl))
				return out, nil
			}
			next, ok := msg.aliases[at]
			if !ok {
				break
			}
			if canonical, err := canonicalName(next.name); err != nil || canonical != next.name || seen[next.name] || len(seen) > maxAliases {
				return out, &ResolveError{name, ReasonAliases, errAliasChain}
			}
			at, ttl = next.name, min(ttl, next.ttl)
			seen[at] = true
			out.Aliases = append(out.Aliases, at)
		}
		// No address and no alias for the name that was asked: there is none. Otherwise the server left the chain's end to us.
		if at == msg.question {
			out.expires = now().Add(ttl)
			return out, nil
		}
	}
	return out, &ResolveError{name, ReasonAliases, errAliasChain}
}

func dnsFailure(name string, err error) *ResolveError {
	var code rcodeError
	switch {
	case errors.As(err, &code) && dnsmessage.RCode(code) == dnsmessage.RCodeNameError:
		return &ResolveError{Host: name, Reason: ReasonNoSuchName}
	case timedOut(err):
		return &ResolveError{name, ReasonResolveTimeout, err}
	}
	return &ResolveError{name, ReasonServerFailure, err}
}

// exchange asks the servers in turn until one gives an answer or says that there is no such name.
func (c dnsConfig) exchange(ctx context.Context, name string, qtype dnsmessage.Type) (reply, netip.AddrPort, error) {
	last := errNoServer
	for range c.attempts {
		for _, server := range c.servers {
			if err := ctx.Err(); err != nil {
				return reply{}, server, errors.Join(last, err)
			}
			msg, err := c.try(ctx, server, name, qtype)
			var code rcodeError
			if err == nil || errors.As(err, &code) && dnsmessage.RCode(code) == dnsmessage.RCodeNameError {
				return msg, server, err
			}
			last = fmt.Errorf("%s: %w", server, err)
		}
	}
	return reply{}, netip.AddrPort{}, last
}

// try asks one server: over UDP, and over TCP when the answer was cut or the server does not keep the letter case.
func (c dnsConfig) try(ctx context.Context, server netip.AddrPort, name string, qtype dnsmessage.Type) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	ask := asking{network: "udp", edns: true, mixed: true}
	msg, err := ask.once(ctx, server, name, qtype)
	if code := rcodeError(0); errors.As(err, &code) &&
		(dnsmessage.RCode(code) == dnsmessage.RCodeFormatError || dnsmessage.RCode(code) == dnsmessage.RCodeNotImplemented) {
		ask.edns = false // a server from before EDNS
		msg, err = ask.once(ctx, server, name, qtype)
	}
	lostCase := errors.Is(err, errCase)
	if lostCase || errors.Is(err, errTruncated) {
		ask.network = "tcp"
		msg, err = ask.once(ctx, server, name, qtype)
	}
	if err != nil && lostCase { // neither: the id and the port have to do
		ask.network, ask.mixed = "udp", false
		msg, err = ask.once(ctx, server, name, qtype)
	}
	return msg, err
}

// asking is how a question is put.
type asking struct {
	network string
	edns    bool
	mixed   bool // in random letter case
}

// once sends one question from a fresh port and reads its answer.
func (a asking) once(ctx context.Context, server netip.AddrPort, name string, qtype dnsmessage.Type) (reply, error) {
	q, packed, err := a.question(name, qtype)
	if err != nil {
		return reply{}, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, a.network, server.String())
	if err != nil {
		return reply{}, cause(err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if a.network == "tcp" {
		return q.overTCP(conn, packed)
	}
	return q.overUDP(conn, packed)
}

func (q question) overUDP(conn net.Conn, packed []byte) (reply, error) {
	if _, err := conn.Write(packed); err != nil {
		return reply{}, cause(err)
	}
	buf := make([]byte, 65535)
	for range maxForeign {
		n, err := conn.Read(buf)
		if err != nil {
			return reply{}, cause(err)
		}
		msg, err := q.read(buf[:n], true)
		if errors.Is(err, errNotOurs) {
			continue
		}
		return msg, err
	}
	return reply{}, errMalformed
}

func (q question) overTCP(conn net.Conn, packed []byte) (reply, error) {
	framed := binary.BigEndian.AppendUint16(nil, uint16(len(packed)))
	if _, err := conn.Write(append(framed, packed...)); err != nil {
		return reply{}, cause(err)
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return reply{}, cause(err)
	}
	buf := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, buf); err != nil {
		return reply{}, cause(err)
	}
	return q.read(buf, false)
}

// question is what an answer must match.
type question struct {
	id    uint16
	name  string // canonical
	asked dnsmessage.Question
}

// question packs a question with a random id. The letter case of the name is random too (draft-vixie-dnsext-dns0x20): with the
// id and the port one more thing that an off-path spoofer has to guess.
func (a asking) question(name string, qtype dnsmessage.Type) (question, []byte, error) {
	random := make([]byte, 2+len(name))
	rand.Read(random)
	mixed := []byte(name + ".")
	for i, c := range []byte(name) {
		if a.mixed && 'a' <= c && c <= 'z' && random[2+i]&1 == 1 {
			mixed[i] = c - 'a' + 'A'
		}
	}
	qname, err := dnsmessage.NewName(string(mixed))
	if err != nil {
		return question{}, nil, err
	}
	q := question{id: binary.BigEndian.Uint16(random), name: name, asked: dnsmessage.Question{Name: qname, Type: qtype, Class: dnsmessage.ClassINET}}
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: q.id, RecursionDesired: true})
	err = errors.Join(b.StartQuestions(), b.Question(q.asked))
	if a.edns {
		var h dnsmessage.ResourceHeader
		err = errors.Join(err, h.SetEDNS0(ednsSize, dnsmessage.RCodeSuccess, false), b.StartAdditionals(), b.OPTResource(h, dnsmessage.OPTResource{}))
	}
	packed, e := b.Finish()
	return q, packed, errors.Join(err, e)
}

// reply is what an answer says, by canonical owner name.
type reply struct {
	question string // the canonical name it answers
	aliases  map[string]alias
	addrs    map[string]addrSet
}

type alias struct {
	name string
	ttl  time.Duration
}

type addrSet struct {
	list []netip.Addr
	ttl  time.Duration
}

// errNotOurs marks a packet that does not answer the question: a late answer to another one, or a guess.
var errNotOurs = errors.New("not the answer to this question")

// read parses an answer. Everything that does not belong to the question is errNotOurs. Over UDP the letter case must have
// been kept (errCase); a cut answer is errTruncated, whatever it holds.
func (q question) read(packet []byte, udp bool) (reply, error) {
	var p dnsmessage.Parser
	h, err := p.Start(packet)
	if err != nil || h.ID != q.id || !h.Response || h.OpCode != 0 {
		return reply{}, errNotOurs
	}
	asked, err := p.Question()
	if err != nil {
		// Servers that cannot read a question leave it out of their refusal.
		if errors.Is(err, dnsmessage.ErrSectionDone) && h.RCode != dnsmessage.RCodeSuccess && h.RCode != dnsmessage.RCodeNameError {
			return reply{}, rcodeError(h.RCode)
		}
		return reply{}, errNotOurs
	}
	if asked.Type != q.asked.Type || asked.Class != q.asked.Class || ownerName(asked.Name) != q.name {
		return reply{}, errNotOurs
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return reply{}, errMalformed
	}
	switch {
	case udp && asked.Name.String() != q.asked.Name.String():
		return reply{}, errCase
	case h.Truncated:
		return reply{}, errTruncated
	case h.RCode != dnsmessage.RCodeSuccess:
		return reply{}, rcodeError(h.RCode)
	}
	msg := reply{question: q.name, aliases: map[string]alias{}, addrs: map[string]addrSet{}}
	return msg, msg.records(&p, q.asked.Type)
}

func (m *reply) records(p *dnsmessage.Parser, qtype dnsmessage.Type) error {
	for range maxRecords {
		rh, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return nil
		}
		if err != nil {
			return errMalformed
		}
		owner := ownerName(rh.Name)
		ttl := time.Duration(rh.TTL) * time.Second
		if rh.TTL >= 1<<31 { // RFC 2181 section 8: taken as zero
			ttl = 0
		}
		switch {
		case rh.Class != dnsmessage.ClassINET:
			err = p.SkipAnswer()
		case rh.Type == dnsmessage.TypeCNAME:
			var r dnsmessage.CNAMEResource
			if r, err = p.CNAMEResource(); err == nil {
				to := alias{ownerName(r.CNAME), ttl}
				if old, ok := m.aliases[owner]; ok && old.name != to.name { // two aliases of one name: RFC 1034 section 3.6.2
					return errMalformed
				}
				m.aliases[owner] = to
			}
		case rh.Type == qtype && qtype == dnsmessage.TypeA:
			var r dnsmessage.AResource
			if r, err = p.AResource(); err == nil {
				m.add(owner, netip.AddrFrom4(r.A), ttl)
			}
		case rh.Type == qtype && qtype == dnsmessage.TypeAAAA:
			var r dnsmessage.AAAAResource
			if r, err = p.AAAAResource(); err == nil {
				m.add(owner, netip.AddrFrom16(r.AAAA), ttl)
			}
		default:
			err = p.SkipAnswer()
		}
		if err != nil {
			return errMalformed
		}
	}
	return errMalformed
}

func (m *reply) add(owner string, a netip.Addr, ttl time.Duration) {
	set, ok := m.addrs[owner]
	if !ok || ttl < set.ttl {
		set.ttl = ttl
	}
	if !slices.Contains(set.list, a) {
		set.list = append(set.list, a)
	}
	m.addrs[owner] = set
}

// ownerName is a name from a packet in lower case without its last dot; whether it is a host name is judged where it is used.
func ownerName(n dnsmessage.Name) string {
	s := lower(n.String())
	if s != "" && s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}
