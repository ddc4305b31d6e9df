package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/realtest/dnstest"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// origin listens on an address of the loopback interface and tells every caller which one that is.
func origin(t *testing.T, host string, port string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, conn.LocalAddr().String())
			conn.Close()
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

func dialText(t *testing.T, d *Dialer, target Target) (string, error) {
	t.Helper()
	conn, err := d.Dial(t.Context(), target)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), nil
}

func withPort(t *testing.T, host string, port uint16) Target {
	t.Helper()
	target, err := NewTarget(host, port)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestDialGoesWhereItJudged(t *testing.T) {
	repotest.Need(t, "127.0.0.2 on the loopback interface (Linux)", runtime.GOOS == "linux")
	one := origin(t, "127.0.0.1", "0")
	two := origin(t, "127.0.0.2", "0")
	dns := dnstest.Start(t)
	d := &Dialer{
		Policy: mustPolicy(t, PolicyOptions{
			Allow:  []string{"*:*"},
			Deny:   []string{"127.0.0.3"},
			Inward: map[string][]string{"*.host.example": {"127.0.0.0/30", "::1"}, "only2.example": {"127.0.0.2"}},
		}),
		Resolver: testResolver(t, dns.Addr),
		Own:      noOwn,
	}
	dns.Set("a.host.example", dnstest.Record{Addrs: []string{"127.0.0.1"}})
	if got, err := dialText(t, d, withPort(t, "a.host.example", one.Port())); err != nil || got != one.String() {
		t.Errorf("an exempted name: %q %v", got, err)
	}

	// Rebinding: the second answer is inward and not exempted. What was judged first is dialled, the next use is refused.
	dns.Set("only2.example", dnstest.Record{Seq: [][]string{{"127.0.0.2"}, {"127.0.0.1"}}})
	if got, err := dialText(t, d, withPort(t, "only2.example", two.Port())); err != nil || got != two.String() {
		t.Errorf("before rebinding: %q %v", got, err)
	}
	var denied *DeniedError
	if _, err := dialText(t, d, withPort(t, "only2.example", one.Port())); !errors.As(err, &denied) || denied.Addr.String() != "127.0.0.1" || denied.Reason != ReasonInward {
		t.Errorf("after rebinding: %v", err)
	}

	// Judging and connecting apart: one resolution serves both, and the rules of the moment of connecting count.
	dns.Set("later.host.example", dnstest.Record{Seq: [][]string{{"127.0.0.2"}, {"127.0.0.9"}}})
	e := d.Judge(t.Context(), withPort(t, "later.host.example", two.Port()), nil)
	conn, err := d.Connect(t.Context(), e, nil)
	if err != nil {
		t.Fatalf("connecting to what was judged: %v", err)
	}
	conn.Close()
	later := *d
	for _, o := range []PolicyOptions{{Inward: map[string][]string{"*.host.example": {"127.0.0.2"}}}, {Allow: []string{"*:*"}}, {Allow: []string{"*:*"}, Deny: []string{"127.0.0.2"}, Inward: map[string][]string{"*.host.example": {"127.0.0.2"}}}} {
		later.Policy = mustPolicy(t, o)
		if conn, err := later.Connect(t.Context(), e, nil); !errors.As(err, &denied) {
			t.Errorf("under later rules %+v: %v %v", o, conn, err)
		}
	}

	// The answers are kept for their TTL, yet judged at each use.
	dns.Set("kept.example", dnstest.Record{Addrs: []string{"127.0.0.2"}, TTL: 300})
	for range 2 {
		if _, err := dialText(t, d, withPort(t, "kept.example", two.Port())); !errors.As(err, &denied) {
			t.Errorf("a kept answer: %v", err)
		}
	}
	if n, _ := dns.Asked("kept.example"); n != 2 {
		t.Errorf("a kept answer was asked for %d times", n)
	}

	// All addresses are tried: nothing listens on ::1 at that port.
	dns.Set("dual.host.example", dnstest.Record{Addrs: []string{"::1", "127.0.0.2"}})
	if got, err := dialText(t, d, withPort(t, "dual.host.example", two.Port())); err != nil || got != two.String() {
		t.Errorf("a dual-stack name: %q %v", got, err)
	}

	// A denied literal holds for what a name resolves to, exempted or not.
	dns.Set("b.host.example", dnstest.Record{Addrs: []string{"127.0.0.1", "127.0.0.3"}})
	if _, err := dialText(t, d, withPort(t, "b.host.example", one.Port())); !errors.As(err, &denied) || denied.Reason != ReasonDenied || denied.Rule != "127.0.0.3" {
		t.Errorf("a denied address: %v", err)
	}
}

func TestOneInwardAnswerRefusesTheSet(t *testing.T) {
	dns := dnstest.Start(t)
	d := &Dialer{Policy: mustPolicy(t, PolicyOptions{Allow: []string{"*:*"}}), Resolver: testResolver(t, dns.Addr), Own: noOwn}
	for _, c := range []struct {
		addrs  string
		refuse string // the address the error names; "" when allowed
		kind   Kind
	}{
		{"93.184.215.14 2606:4700::1", "", ""},
		{"93.184.215.14 10.0.0.5", "10.0.0.5", Special},
		{"93.184.215.14 ::1", "::1", Special},
		{"::ffff:127.0.0.1 2606:4700::1", "127.0.0.1", Special},
		{"93.184.215.14 64:ff9b::169.254.169.254", "64:ff9b::a9fe:a9fe", Metadata},
		{"8.8.8.8 168.63.129.16", "168.63.129.16", Metadata},
	} {
		dns.Set("host.example", dnstest.Record{Addrs: strings.Fields(c.addrs)})
		e := d.Judge(t.Context(), mustTarget(t, "host.example:443"), nil)
		var denied *DeniedError
		switch {
		case c.refuse == "":
			if !e.Allowed || e.Err != nil {
				t.Errorf("%s: %+v", c.addrs, e)
			}
		case e.Allowed || !errors.As(e.Err, &denied) || denied.Addr.String() != c.refuse || denied.Class.Kind != c.kind:
			t.Errorf("%s: %+v", c.addrs, e)
		case !strings.Contains(denied.Error(), "host.example:443") || !strings.Contains(denied.Error(), c.refuse):
			t.Errorf("the error does not say enough: %v", denied)
		}
	}
}

func TestResolverFailureRefuses(t *testing.T) {
	dns := dnstest.Start(t)
	d := &Dialer{Policy: mustPolicy(t, PolicyOptions{Allow: []string{"*:*"}}), Resolver: testResolver(t, dns.Addr), Own: noOwn}
	_, err := d.Dial(t.Context(), mustTarget(t, "absent.example:443"))
	var re *ResolveError
	if !errors.As(err, &re) || re.Reason != ReasonNoSuchName {
		t.Errorf("an absent name: %v", err)
	}
	if e := d.Judge(t.Context(), mustTarget(t, "absent.example:443"), nil); e.Allowed || e.Reason != ReasonNoSuchName {
		t.Errorf("an absent name: %+v", e)
	}
}

func TestRulesComeBeforeAnyQuestion(t *testing.T) {
	dns := dnstest.Start(t)
	d := &Dialer{Policy: mustPolicy(t, PolicyOptions{Allow: []string{"ok.example"}}), Resolver: testResolver(t, dns.Addr), Own: noOwn}
	d.Judge(t.Context(), mustTarget(t, "secret-data.evil.example:443"), nil)
	if names := dns.Names(); len(names) != 0 { // a question carries data out
		t.Errorf("a refused name was asked for: %q", names)
	}
}

func TestOwnListenersStayClosed(t *testing.T) {
	at := origin(t, "127.0.0.1", "0")
	d := &Dialer{
		Policy:   mustPolicy(t, PolicyOptions{Allow: []string{"*:*"}, Inward: map[string][]string{"127.0.0.1": {"127.0.0.1"}, "localhost": {"127.0.0.1", "::1"}, "own.example": {"192.0.2.7"}}}),
		Resolver: testResolver(t),
		Own:      func() ([]netip.Prefix, error) { return []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")}, nil },
	}
	if got, err := dialText(t, d, withPort(t, "127.0.0.1", at.Port())); err != nil || got != at.String() {
		t.Errorf("before: %q %v", got, err)
	}
	d.OwnPorts = func() []uint16 { return []uint16{at.Port()} }
	d.Resolver.hosts = func(string) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("192.0.2.7")}, nil }
	for _, host := range []string{"127.0.0.1", "localhost", "own.example"} {
		var denied *DeniedError
		if _, err := d.Dial(t.Context(), withPort(t, host, at.Port())); !errors.As(err, &denied) || denied.Reason != ReasonOwnPort {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// An address that becomes this host's own between the judgement and the connect is refused on the socket: no packet leaves.
func TestSocketIsJudgedAgain(t *testing.T) {
	reads := 0
	d := &Dialer{
		Policy: mustPolicy(t, PolicyOptions{Allow: []string{"*"}}),
		Own: func() ([]netip.Prefix, error) {
			if reads++; reads == 1 {
				return nil, nil
			}
			return []netip.Prefix{netip.MustParsePrefix("93.184.215.14/32")}, nil
		},
	}
	_, err := d.Dial(t.Context(), mustTarget(t, "93.184.215.14:443"))
	var denied *DeniedError
	if !errors.As(err, &denied) || denied.Class.Kind != Own || reads != 2 {
		t.Errorf("%v after %d readings", err, reads)
	}
	target := mustTarget(t, "93.184.215.14:443")
	d.Own = noOwn
	judged := netip.MustParseAddrPort("93.184.215.14:443")
	if err := d.checkSocket(target, judged, "93.184.215.14:443", nil); err != nil {
		t.Errorf("the judged address: %v", err)
	}
	for _, other := range []string{"93.184.215.15:443", "93.184.215.14:80", "[::1]:443", "example.com:443", ""} {
		if err := d.checkSocket(target, judged, other, nil); err == nil {
			t.Errorf("a socket to %q passes", other)
		}
	}
}

func TestUnknownOwnAddressesRefuse(t *testing.T) {
	d := &Dialer{Policy: mustPolicy(t, PolicyOptions{Allow: []string{"*"}}), Own: func() ([]netip.Prefix, error) { return nil, errors.New("no netlink") }}
	if e := d.Judge(t.Context(), mustTarget(t, "93.184.215.14:443"), nil); e.Allowed || e.Err == nil || e.Reason != ReasonOwnUnknown {
		t.Errorf("%+v", e)
	}
}

func TestOwnNetworks(t *testing.T) {
	addrs := []net.Addr{
		&net.IPNet{IP: net.ParseIP("203.0.113.5"), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.ParseIP("2001:db8::5"), Mask: net.CIDRMask(64, 128)},
	}
	ordinary, err := appendOwn(nil, addrs, false)
	if err != nil || fmt.Sprint(ordinary) != "[203.0.113.5/32 2001:db8::5/128]" {
		t.Errorf("an ordinary interface: %v %v", ordinary, err)
	}
	loopback, err := appendOwn(nil, addrs, true)
	if err != nil || fmt.Sprint(loopback) != "[203.0.113.0/24 2001:db8::5/128]" {
		t.Errorf("a loopback interface: %v %v", loopback, err)
	}
	if got, err := appendOwn(nil, []net.Addr{&net.TCPAddr{}}, false); err == nil {
		t.Errorf("an address of another type: %v", got)
	}
}

func TestHostAddrs(t *testing.T) {
	own, err := HostAddrs()
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		ip, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		found := false
		for _, p := range own {
			found = found || p.Contains(ip.Unmap())
		}
		if !found {
			t.Errorf("%s is missing in %v", ip, own)
		}
	}
}

func TestDialContextServesHTTP(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "here") }))
	defer srv.Close()
	d := &Dialer{Policy: mustPolicy(t, PolicyOptions{Allow: []string{"127.0.0.1:*"}, Inward: map[string][]string{"127.0.0.1": {"127.0.0.1"}}})}
	client := &http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
	res, err := client.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	client.CloseIdleConnections()
	if string(body) != "here" {
		t.Errorf("%q", body)
	}
	_, err = client.Get("http://169.254.169.254/latest/meta-data/")
	var denied *DeniedError
	if !errors.As(err, &denied) || denied.Reason != ReasonNotAllowed {
		t.Errorf("the metadata service: %v", err)
	}
	for _, bad := range [][2]string{{"udp", "127.0.0.1:53"}, {"unix", "/run/x"}, {"tcp", "127.1:80"}, {"tcp", "127.0.0.1"}} {
		if conn, err := d.DialContext(t.Context(), bad[0], bad[1]); err == nil {
			conn.Close()
			t.Errorf("%v is dialled", bad)
		}
	}
}

func TestExplanationAsJSON(t *testing.T) {
	d := &Dialer{Policy: mustPolicy(t, PolicyOptions{Allow: []string{"*"}}), Own: noOwn}
	got, err := json.Marshal(d.Judge(t.Context(), mustTarget(t, "[64:ff9b::7f00:1]:443"), nil))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"target":"[64:ff9b::7f00:1]:443","allowed":false,"reason":"inward","rule":"*","reach":"any host, by name or address, port 443 or 80","source":"literal",` +
		`"answers":[{"addr":"64:ff9b::7f00:1","class":{"kind":"special","name":"Loopback","block":"127.0.0.0/8","form":"NAT64","embedded":"127.0.0.1"},"allowed":false,"reason":"inward"}]}`
	if string(got) != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

// BenchmarkDial compares with the same dial without a judgement.
func BenchmarkDial(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	target, err := ParseTarget(l.Addr().String(), 0)
	if err != nil {
		b.Fatal(err)
	}
	d := &Dialer{Policy: mustPolicy(b, PolicyOptions{Allow: []string{"127.0.0.1:*"}, Inward: map[string][]string{"127.0.0.1": {"127.0.0.1"}}})}
	var plain net.Dialer
	for _, c := range []struct {
		name string
		dial func() (net.Conn, error)
	}{
		{"judged", func() (net.Conn, error) { return d.Dial(b.Context(), target) }},
		{"plain", func() (net.Conn, error) { return plain.DialContext(b.Context(), "tcp", target.String()) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				conn, err := c.dial()
				if err != nil {
					b.Fatal(err)
				}
				conn.Close()
			}
		})
	}
}
