package egress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-4e9f7b04/hearsay/internal/realtest/dnstest"
)

func testResolver(t testing.TB, servers ...netip.AddrPort) *Resolver {
	t.Helper()
	o := ResolverOptions{IgnoreHosts: true}
	for _, s := range servers {
		o.Servers = append(o.Servers, s.String())
	}
	r, err := NewResolver(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		name   string
		record *dnstest.Record
		want   string // addresses by spaces
		reason Reason
		alias  string
	}{
		{name: "both families", record: &dnstest.Record{Addrs: []string{"93.184.215.14", "2606:4700::1"}}, want: "2606:4700::1 93.184.215.14"},
		{name: "IPv4 alone", record: &dnstest.Record{Addrs: []string{"93.184.215.14"}}, want: "93.184.215.14"},
		{name: "IPv6 alone", record: &dnstest.Record{Addrs: []string{"2606:4700::1"}}, want: "2606:4700::1"},
		{name: "an IPv4-mapped AAAA is the IPv4 address", record: &dnstest.Record{Addrs: []string{"::ffff:127.0.0.1", "127.0.0.1"}}, want: "127.0.0.1"},
		{name: "nothing there", record: &dnstest.Record{}, reason: ReasonNoAddresses},
		{name: "no such name", reason: ReasonNoSuchName},
		{name: "a chain of aliases", record: &dnstest.Record{Addrs: []string{"10.2.3.4"}, CNAME: []string{"a.example", "b.example"}}, want: "10.2.3.4", alias: "a.example b.example"},
		{name: "an alias of itself", record: &dnstest.Record{CNAME: []string{"@self"}}, reason: ReasonAliases},
		{name: "aliases in a ring", record: &dnstest.Record{CNAME: []string{"a.example", "b.example", "a.example"}}, reason: ReasonAliases},
		{name: "a chain without end", record: &dnstest.Record{CNAME: manyNames(maxAliases + 1), Addrs: []string{"1.1.1.1"}}, reason: ReasonAliases},
		{name: "an alias that is an address to some reader", record: &dnstest.Record{CNAME: []string{"127.1"}, Addrs: []string{"1.1.1.1"}}, reason: ReasonAliases},
		{name: "two aliases of one name", record: &dnstest.Record{CNAME: []string{"a.example"}, ExtraAlias: "b.example", Addrs: []string{"1.1.1.1"}}, reason: ReasonServerFailure},
		{name: "an alias whose end has to be asked for", record: &dnstest.Record{CNAME: []string{"end.example"}, ChainOnly: true}, want: "93.184.215.99", alias: "end.example"},
		{name: "records of another name are left out", record: &dnstest.Record{Addrs: []string{"93.184.215.14"}, ExtraOwner: "evil.example", ExtraAddr: "10.0.0.1"}, want: "93.184.215.14"},
		{name: "only records of another name", record: &dnstest.Record{ExtraOwner: "evil.example", ExtraAddr: "10.0.0.1"}, reason: ReasonNoAddresses},
		{name: "a cut answer is asked again over TCP", record: &dnstest.Record{Truncate: true, ManyRecords: 60}, want: "60 addresses"},
		{name: "more addresses than are judged", record: &dnstest.Record{Truncate: true, ManyRecords: maxAddrs + 1}, reason: ReasonTooMany},
		{name: "a server that does not keep the case is asked over TCP", record: &dnstest.Record{LowerCase: true, Addrs: []string{"93.184.215.14"}}, want: "93.184.215.14"},
		{name: "one that has no TCP either is asked in lower case", record: &dnstest.Record{LowerCase: true, DropTCP: true, Addrs: []string{"93.184.215.14"}}, want: "93.184.215.14"},
		{name: "a guess with another id is thrown away", record: &dnstest.Record{WrongID: true, Addrs: []string{"93.184.215.14"}}, want: "93.184.215.14"},
		{name: "an answer to another question is thrown away", record: &dnstest.Record{WrongName: true, Addrs: []string{"93.184.215.14"}}, want: "93.184.215.14"},
		{name: "a server from before EDNS", record: &dnstest.Record{NoEDNS: true, Addrs: []string{"93.184.215.14"}}, want: "93.184.215.14"},
		{name: "a failing server", record: &dnstest.Record{RCode: dnsmessage.RCodeServerFailure}, reason: ReasonServerFailure},
		{name: "one that refuses and echoes nothing", record: &dnstest.Record{RCode: dnsmessage.RCodeRefused, NoQuestion: true}, reason: ReasonServerFailure},
		{name: "AAAA questions fail", record: &dnstest.Record{RCodeAAAA: dnsmessage.RCodeServerFailure, Addrs: []string{"93.184.215.14"}}, want: "93.184.215.14"},
		{name: "AAAA questions fail and A has nothing", record: &dnstest.Record{RCodeAAAA: dnsmessage.RCodeServerFailure}, reason: ReasonServerFailure},
		{name: "a malformed packet", record: &dnstest.Record{Malformed: true, Addrs: []string{"93.184.215.14", "2606::1"}}, reason: ReasonServerFailure},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dns := dnstest.Start(t)
			if c.record != nil {
				dns.Set("host.example", *c.record)
			}
			dns.Set("end.example", dnstest.Record{Addrs: []string{"93.184.215.99"}})
			got, err := testResolver(t, dns.Addr).Lookup(t.Context(), "host.example")
			var re *ResolveError
			if c.reason != "" {
				if !errors.As(err, &re) || re.Reason != c.reason {
					t.Fatalf("%v %v, want %s", got.Addrs, err, c.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var addrs []string
			for _, a := range got.Addrs {
				addrs = append(addrs, a.String())
			}
			have := strings.Join(addrs, " ")
			if strings.HasSuffix(c.want, "addresses") {
				have = fmt.Sprintf("%d addresses", len(addrs))
			}
			if have != c.want || strings.Join(got.Aliases, " ") != c.alias || got.Source != dns.Addr.String() {
				t.Errorf("%s by %v from %s", have, got.Aliases, got.Source)
			}
		})
	}
}

func manyNames(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("n%d.example", i)
	}
	return out
}

func TestQuestionsAreHardToGuess(t *testing.T) {
	dns := dnstest.Start(t)
	name := "a-rather-long-name-with-letters.example"
	dns.Set(name, dnstest.Record{Addrs: []string{"93.184.215.14"}})
	for range 4 {
		if _, err := testResolver(t, dns.Addr).Lookup(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	asked := dns.Names()
	slices.Sort(asked)
	if spellings := len(slices.Compact(asked)); spellings < 8 {
		t.Errorf("eight questions were asked in %d spellings: %q", spellings, asked)
	}
}

// An answer over UDP that does not keep the random case may be a guess, even if all else is right.
func TestOtherCaseIsNotBelieved(t *testing.T) {
	dns := dnstest.Start(t)
	dns.Set("host-with-many-letters.example", dnstest.Record{LowerCase: true, Addrs: []string{"93.184.215.14"}})
	if _, err := testResolver(t, dns.Addr).Lookup(t.Context(), "host-with-many-letters.example"); err != nil {
		t.Fatal(err)
	}
	if _, overTCP := dns.Asked("host-with-many-letters.example"); overTCP != 2 {
		t.Errorf("%d questions over TCP", overTCP)
	}
}

func TestNextServerIsAsked(t *testing.T) {
	broken, works := dnstest.Start(t), dnstest.Start(t)
	broken.Set("host.example", dnstest.Record{RCode: dnsmessage.RCodeServerFailure})
	works.Set("host.example", dnstest.Record{Addrs: []string{"93.184.215.14"}})
	got, err := testResolver(t, broken.Addr, works.Addr).Lookup(t.Context(), "host.example")
	if err != nil || len(got.Addrs) != 1 || got.Source != works.Addr.String() {
		t.Errorf("%+v %v", got, err)
	}
	// A name that does not exist is an answer, not a failure of the server.
	if _, err := testResolver(t, broken.Addr, works.Addr).Lookup(t.Context(), "absent.example"); err == nil {
		t.Error("an absent name resolves")
	}
	if n, _ := works.Asked("absent.example"); n != 0 {
		t.Errorf("the second server was asked %d times after a clear answer", n)
	}
}

func TestSilentServerRefuses(t *testing.T) {
	dns := dnstest.Start(t)
	dns.Set("host.example", dnstest.Record{Drop: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := testResolver(t, dns.Addr).Lookup(ctx, "host.example")
	var re *ResolveError
	if !errors.As(err, &re) || re.Reason != ReasonResolveTimeout {
		t.Errorf("a caller that gave up gets %v", err)
	}
	r := testResolver(t, dns.Addr)
	r.conf = func() (dnsConfig, error) {
		return dnsConfig{servers: []netip.AddrPort{dns.Addr}, timeout: time.Millisecond, attempts: 1}, nil
	}
	if _, err := r.Lookup(t.Context(), "host.example"); !errors.As(err, &re) || re.Reason != ReasonResolveTimeout {
		t.Errorf("a silent server gives %v", err)
	}
}

func TestAnswersAreKeptForTheirTTL(t *testing.T) {
	dns := dnstest.Start(t)
	dns.Set("host.example", dnstest.Record{Seq: [][]string{{"93.184.215.1"}, {"93.184.215.2"}}, TTL: 60})
	dns.Set("zero.example", dnstest.Record{Seq: [][]string{{"93.184.215.1"}, {"93.184.215.2"}}})
	dns.Set("huge.example", dnstest.Record{Seq: [][]string{{"93.184.215.1"}, {"93.184.215.2"}}, TTL: 1 << 31})
	dns.Set("long.example", dnstest.Record{Seq: [][]string{{"93.184.215.1"}, {"93.184.215.2"}}, TTL: 1<<31 - 1})
	dns.Set("half.example", dnstest.Record{Seq: [][]string{{"93.184.215.1"}, {"93.184.215.2"}}, TTL: 60, RCodeAAAA: dnsmessage.RCodeServerFailure})
	r := testResolver(t, dns.Addr)
	var mu sync.Mutex
	now := time.Now()
	r.now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	first := func(name, want string) {
		t.Helper()
		got, err := r.Lookup(t.Context(), name)
		if err != nil || got.Addrs[0].String() != want {
			t.Errorf("%s: %v %v, want %s", name, got.Addrs, err, want)
		}
	}
	first("host.example", "93.184.215.1")
	pass(59 * time.Second)
	first("host.example", "93.184.215.1")
	pass(time.Second)
	first("host.example", "93.184.215.2")
	for _, name := range []string{"zero.example", "huge.example", "half.example"} { // never kept
		first(name, "93.184.215.1")
		first(name, "93.184.215.2")
	}
	first("long.example", "93.184.215.1")
	pass(maxTTL - time.Second)
	first("long.example", "93.184.215.1")
	pass(time.Second)
	first("long.example", "93.184.215.2")
}

func TestCacheIsBounded(t *testing.T) {
	r := testResolver(t, netip.MustParseAddrPort("127.0.0.1:53"))
	for i := range maxCached + 100 {
		r.keep(fmt.Sprintf("n%d.example", i), Resolved{expires: time.Now().Add(time.Hour)})
	}
	if len(r.cache) != maxCached {
		t.Errorf("%d names are kept", len(r.cache))
	}
}

func TestSameQuestionIsAskedOnce(t *testing.T) {
	dns := dnstest.Start(t)
	dns.Set("host.example", dnstest.Record{Addrs: []string{"93.184.215.14"}, TTL: 60})
	r := testResolver(t, dns.Addr)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := r.Lookup(t.Context(), "host.example"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n, _ := dns.Asked("host.example"); n != 2 { // A and AAAA; later callers find the answer kept
		t.Errorf("%d questions", n)
	}
}

func TestZeroResolverResolvesNothing(t *testing.T) {
	for _, r := range []*Resolver{nil, {}} {
		if got, err := r.Lookup(t.Context(), "localhost"); err == nil {
			t.Errorf("%+v", got)
		}
	}
}

func TestLocalhostIsNeverAsked(t *testing.T) {
	dns := dnstest.Start(t)
	for _, name := range []string{"localhost", "foo.localhost"} {
		dns.Set(name, dnstest.Record{Addrs: []string{"93.184.215.14"}})
		got, err := testResolver(t, dns.Addr).Lookup(t.Context(), name)
		if err != nil || len(got.Addrs) != 2 || !got.Addrs[0].IsLoopback() || !got.Addrs[1].IsLoopback() {
			t.Errorf("%s: %v %v", name, got.Addrs, err)
		}
		if n, _ := dns.Asked(name); n != 0 {
			t.Errorf("%s was asked for", name)
		}
	}
}

func TestHostsFile(t *testing.T) {
	table, err := parseHosts("127.0.0.1 localhost\n# 1.2.3.4 commented.example\n10.1.1.1\tDB.Example. db2.example # note\nfd00::5 db.example\n0.0.0.0 ads.example\nnonsense x.example\n127.1 short.example\n10.0.0.9\n10.0.0.8 bad..name a%b\nfe80::1%eth0 zone.example\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(table["db.example"]); got != "[10.1.1.1 fd00::5]" {
		t.Errorf("db.example: %s", got)
	}
	if got := fmt.Sprint(table["db2.example"]); got != "[10.1.1.1]" {
		t.Errorf("db2.example: %s", got)
	}
	for _, absent := range []string{"commented.example", "x.example", "short.example", "bad..name", "note", ""} {
		if a, ok := table[absent]; ok {
			t.Errorf("%s: %v", absent, a)
		}
	}
	r := testResolver(t)
	r.hosts = func(name string) ([]netip.Addr, error) { return table[name], nil }
	got, err := r.Lookup(t.Context(), "zone.example")
	if err != nil || got.Addrs[0].Zone() != "" || got.Source != "hosts file" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestResolvConf(t *testing.T) {
	c, err := parseResolvConf("# x\nnameserver 192.0.2.1\n; nameserver 192.0.2.9\nnameserver fe80::1%eth0\nsearch corp.example\nnameserver nonsense\noptions ndots:5 timeout:99 attempts:4 rotate\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.servers); got != "[192.0.2.1:53 [fe80::1%eth0]:53 192.0.2.2:53]" || c.timeout != maxTryTimeout || c.attempts != 4 {
		t.Errorf("%+v", c)
	}
	if c, _ := parseResolvConf(""); fmt.Sprint(c.servers) != "[127.0.0.1:53]" {
		t.Errorf("an empty file: %+v", c)
	}
}

func TestServersAreAddresses(t *testing.T) {
	for in, want := range map[string]string{"192.0.2.1": "192.0.2.1:53", "192.0.2.1:5353": "192.0.2.1:5353", "2001:db8::1": "[2001:db8::1]:53", "[2001:db8::1]:5353": "[2001:db8::1]:5353"} {
		if ap, err := parseServer(in); err != nil || ap.String() != want {
			t.Errorf("%s: %v %v", in, ap, err)
		}
	}
	for _, bad := range []string{"", "dns.example", "192.0.2.1:0", "192.0.2.1:x", "[192.0.2.1", "tls://192.0.2.1"} {
		if _, err := NewResolver(ResolverOptions{Servers: []string{bad}}); err == nil {
			t.Errorf("%q is a server", bad)
		}
	}
}

func TestFilesAreReadAgainWhenTheyChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	read := func() string {
		table, err := watch(path, parseHosts)()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(table["db.example"])
	}
	if got := read(); got != "[]" {
		t.Errorf("an absent file: %s", got)
	}
	if err := os.WriteFile(path, []byte("10.0.0.1 db.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != "[10.0.0.1]" {
		t.Errorf("after writing: %s", got)
	}
	if _, err := watch(t.TempDir()+"/hosts/x\x00", parseHosts)(); err == nil {
		t.Error("a file that cannot be looked at is taken for an empty one")
	}
}

func FuzzReadAnswer(f *testing.F) {
	q, _, err := asking{edns: true, mixed: true}.question("host.example", dnsmessage.TypeA)
	if err != nil {
		f.Fatal(err)
	}
	q.id = 7
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: 7, Response: true})
	b.StartQuestions()
	b.Question(q.asked)
	b.StartAnswers()
	b.CNAMEResource(dnsmessage.ResourceHeader{Name: q.asked.Name, Class: dnsmessage.ClassINET}, dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName("a.example.")})
	b.AResource(dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("a.example."), Class: dnsmessage.ClassINET}, dnsmessage.AResource{A: [4]byte{10, 0, 0, 1}})
	packet, _ := b.Finish()
	f.Add(packet)
	f.Fuzz(func(t *testing.T, packet []byte) {
		msg, err := q.read(packet, true)
		if err == nil && (msg.question != "host.example" || len(msg.addrs) > maxRecords) {
			t.Errorf("%+v", msg)
		}
	})
}
