// Package dnstest is a DNS server for tests: real packets over UDP and TCP, with answers that a test sets, wrong ones too.
//
// [Start] listens on a free port of the loopback interface; [Server.Set] gives a name its answer.
//
// # Limits
//
// It is for tests only: it answers A and AAAA questions and knows no zones.
package dnstest

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Record is how the server answers for a name. The zero value is an answer without addresses.
type Record struct {
	Addrs []string   // A and AAAA together
	Seq   [][]string // successive answers, the last one for good; instead of Addrs
	CNAME []string   // a chain from the name to its last entry, which has the addresses; "@self" is the name
	TTL   uint32

	RCode       dnsmessage.RCode
	RCodeAAAA   dnsmessage.RCode // for AAAA questions alone
	Truncate    bool             // over UDP: no answers and the TC bit
	Drop        bool             // no answer at all
	DropUDP     bool
	DropTCP     bool
	LowerCase   bool // the question is echoed in lower case
	WrongID     bool // a guess with another id comes before the answer
	WrongName   bool // an answer to another question comes before the answer
	NoEDNS      bool // FORMERR to a question with EDNS, without the question
	ChainOnly   bool // only the CNAME records: the end of the chain has to be asked for
	ExtraOwner  string
	ExtraAddr   string // an address of ExtraOwner, which nobody asked about, in the same answer
	ExtraAlias  string // a second CNAME of the name
	Malformed   bool   // the packet is cut in the middle of an answer
	NoQuestion  bool   // the question is left out
	ManyRecords int    // so many addresses more
}

// Server answers on Addr over UDP and TCP.
type Server struct {
	Addr netip.AddrPort

	udp net.PacketConn
	tcp net.Listener

	mu      sync.Mutex
	records map[string]Record
	asked   map[string]int
	turns   map[string]int // since Set
	overTCP int
	names   []string
}

// Start listens on a free loopback port and ends with the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	for range 20 { // the same number must be free for both
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		tcp, err := net.Listen("tcp", udp.LocalAddr().String())
		if err != nil {
			udp.Close()
			continue
		}
		return serve(tb, udp, tcp)
	}
	tb.Fatal("no port is free for both UDP and TCP")
	return nil
}

// StartOn listens on a given address, for a namespace of the test's own.
func StartOn(tb testing.TB, addr string) *Server {
	tb.Helper()
	udp, err := net.ListenPacket("udp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	return serve(tb, udp, tcp)
}

func serve(tb testing.TB, udp net.PacketConn, tcp net.Listener) *Server {
	s := &Server{
		Addr: netip.MustParseAddrPort(udp.LocalAddr().String()), udp: udp, tcp: tcp,
		records: map[string]Record{}, asked: map[string]int{}, turns: map[string]int{},
	}
	var running sync.WaitGroup
	running.Go(s.serveUDP)
	running.Go(func() { s.serveTCP(&running) })
	tb.Cleanup(func() {
		udp.Close()
		tcp.Close()
		running.Wait()
	})
	return s
}

// Set gives a name its answer, a sequence from its beginning. Names that are not set do not exist.
func (s *Server) Set(name string, r Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name = canonical(name)
	s.records[name] = r
	delete(s.turns, name+" A")
	delete(s.turns, name+" AAAA")
}

// Asked counts the questions so far, by name in lower case without a last dot, and those that came over TCP.
func (s *Server) Asked(name string) (total, overTCP int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[canonical(name)+" A"] + s.asked[canonical(name)+" AAAA"], s.overTCP
}

// Names lists the names of all questions as they came, letter case included.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

func canonical(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

func (s *Server) serveUDP() {
	buf := make([]byte, 65535)
	for {
		n, from, err := s.udp.ReadFrom(buf)
		if err != nil {
			return
		}
		for _, packet := range s.answer(buf[:n], false) {
			s.udp.WriteTo(packet, from)
		}
	}
}

func (s *Server) serveTCP(running *sync.WaitGroup) {
	for {
		conn, err := s.tcp.Accept()
		if err != nil {
			return
		}
		running.Go(func() {
			defer conn.Close()
			var size [2]byte
			if _, err := io.ReadFull(conn, size[:]); err != nil {
				return
			}
			buf := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(conn, buf); err != nil {
				return
			}
			for _, packet := range s.answer(buf, true) {
				conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...))
			}
		})
	}
}

// answer gives the packets to send for a question, none to stay silent.
func (s *Server) answer(packet []byte, tcp bool) [][]byte {
	var p dnsmessage.Parser
	h, err := p.Start(packet)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	p.SkipAllQuestions()
	p.SkipAllAnswers()
	p.SkipAllAuthorities()
	_, err = p.AdditionalHeader()
	edns := err == nil

	name := canonical(q.Name.String())
	s.mu.Lock()
	r, known := s.records[name]
	key := name + " " + strings.TrimPrefix(q.Type.String(), "Type")
	turn := s.turns[key]
	s.turns[key]++
	s.asked[key]++
	s.names = append(s.names, q.Name.String())
	if tcp {
		s.overTCP++
	}
	s.mu.Unlock()
	switch {
	case !known:
		r.RCode = dnsmessage.RCodeNameError
	case r.Drop, r.DropUDP && !tcp, r.DropTCP && tcp:
		return nil
	case r.NoEDNS && edns:
		r = Record{RCode: dnsmessage.RCodeFormatError, NoQuestion: true}
	case r.RCodeAAAA != 0 && q.Type == dnsmessage.TypeAAAA:
		r.RCode = r.RCodeAAAA
	}
	if len(r.Seq) > 0 {
		r.Addrs = r.Seq[min(turn, len(r.Seq)-1)]
	}
	var out [][]byte
	if r.WrongID {
		out = append(out, build(h.ID+1, q, Record{Addrs: []string{"203.0.113.66", "2001:db8::66"}}, tcp))
	}
	if r.WrongName {
		other := q
		other.Name = dnsmessage.MustNewName("other.example.")
		out = append(out, build(h.ID, other, Record{Addrs: []string{"203.0.113.66", "2001:db8::66"}}, tcp))
	}
	if r.LowerCase {
		q.Name = dnsmessage.MustNewName(name + ".")
	}
	return append(out, build(h.ID, q, r, tcp))
}

func build(id uint16, q dnsmessage.Question, r Record, tcp bool) []byte {
	cut := r.Truncate && !tcp
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, Response: true, RecursionAvailable: true, RCode: r.RCode, Truncated: cut})
	b.EnableCompression()
	b.StartQuestions()
	if !r.NoQuestion {
		b.Question(q)
	}
	b.StartAnswers()
	if r.RCode == dnsmessage.RCodeSuccess && !cut {
		r.answers(&b, q)
	}
	packet, err := b.Finish()
	if err != nil {
		return nil
	}
	if r.Malformed {
		packet = packet[:len(packet)-3]
	}
	return packet
}

func (r Record) answers(b *dnsmessage.Builder, q dnsmessage.Question) {
	header := func(name dnsmessage.Name) dnsmessage.ResourceHeader {
		return dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: r.TTL}
	}
	owner := q.Name
	for _, next := range r.CNAME {
		to := owner
		if next != "@self" {
			to = dnsmessage.MustNewName(next + ".")
		}
		b.CNAMEResource(header(owner), dnsmessage.CNAMEResource{CNAME: to})
		owner = to
	}
	if r.ExtraAlias != "" {
		b.CNAMEResource(header(q.Name), dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(r.ExtraAlias + ".")})
	}
	if r.ChainOnly {
		return
	}
	add := func(owner dnsmessage.Name, text string) {
		a := netip.MustParseAddr(text)
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			b.AResource(header(owner), dnsmessage.AResource{A: a.As4()})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			b.AAAAResource(header(owner), dnsmessage.AAAAResource{AAAA: a.As16()})
		}
	}
	for _, text := range r.Addrs {
		add(owner, text)
	}
	for i := range r.ManyRecords {
		add(owner, netip.AddrFrom4([4]byte{93, 184, byte(i >> 8), byte(i)}).String())
	}
	if r.ExtraOwner != "" {
		add(dnsmessage.MustNewName(r.ExtraOwner+"."), r.ExtraAddr)
	}
}
