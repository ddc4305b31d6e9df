//go:build real && linux

package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/internal/realtest/corpus"
	"github.com/seed-4e9f7b04/hearsay/internal/realtest/dnstest"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// inNamespace tells the test binary that it runs inside the namespaces of [TestCorpus].
const inNamespace = "HEARSAY_CORPUS_NAMESPACE"

// TestCorpus asks a proxy for every destination of the handed cases and of egress/testdata/cases.json, over CONNECT, absolute-form
// HTTP and SOCKS5. It runs in a network namespace in which every address is local, so that an origin can say which one was
// dialled and nothing can leave, and in a mount namespace whose resolv.conf names a DNS server of the test. It prints the
// table of protocol and group:
//
//	go test -tags real -run TestCorpus -v ./egress/proxy
func TestCorpus(t *testing.T) {
	if os.Getenv(inNamespace) != "" {
		runCorpus(t)
		return
	}
	_, err := exec.LookPath("ip")
	repotest.Need(t, "the ip command (iproute2)", err == nil)
	handed := repotest.Shared(t, "cases/egress-cases.json")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestCorpus$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), inNamespace+"="+handed)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	err = cmd.Start()
	repotest.Need(t, "user, network and mount namespaces", !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOSPC))
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	fmt.Print(out.String())
	if err != nil {
		t.Fatal("the cases did not all come out right, see above")
	}
}

// tally counts how the cases of one group came out over one protocol.
type tally struct{ right, alt, leak, over, none int }

func runCorpus(t *testing.T) {
	enterCorpusNetwork(t)
	dns := dnstest.StartOn(t, "127.0.0.1:53")
	far := startFar(t)
	l, err := net.Listen("tcp", "127.0.0.1:"+corpus.ProxyPort)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := proxy.New(proxy.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(t.Context(), l, proxy.Client{Name: "corpus"})

	protocols := []struct {
		name string
		ask  func(corpus.Case) (asked bool, err error)
	}{{"CONNECT", askCONNECT}, {"absolute HTTP", askAbsolute}, {"SOCKS5", askSOCKS}}
	for _, set := range []string{os.Getenv(inNamespace), filepath.Join(repotest.Root(t), "egress", "testdata", "cases.json")} {
		cases := corpus.Read(t, set, 100)
		totals := map[string][]tally{}
		var before corpus.Case
		for _, c := range cases {
			if totals[c.Group] == nil {
				totals[c.Group] = make([]tally, len(protocols))
			}
			for i, p := range protocols {
				srv.Update(proxy.Client{Name: "corpus", Dialer: corpusDialer(t, c)})
				if target, err := egress.ParseTarget(c.Target, 80); err == nil || c.ResolvesTo != nil {
					name := target.Host()
					if u, err := egress.ParseURL(c.Target); err == nil {
						name = u.Target.Host()
					}
					if _, err := netip.ParseAddr(name); err != nil && name != "" && c.ResolvesTo != nil {
						dns.Set(name, dnstest.Record{Addrs: c.ResolvesTo, CNAME: c.CNAME, Seq: c.Seq})
					}
				}
				far.begin()
				asked, err := p.ask(c)
				// The loser of a race between two addresses may be accepted only now: it belongs to the case before.
				dialled := slices.DeleteFunc(far.dialled(), func(a netip.Addr) bool {
					return slices.Contains(before.ResolvesTo, a.String()) && !slices.Contains(c.ResolvesTo, a.String())
				})
				before = c
				n := &totals[c.Group][i]
				if !asked {
					n.none++
					continue
				}
				got := "allow"
				if err != nil {
					got = "deny"
				}
				bad := corpusVerdict(c, got, dialled)
				switch {
				case bad == "" && got == c.Expect:
					n.right++
				case bad == "":
					n.alt++
				case got == "deny":
					n.over++
				default:
					n.leak++
				}
				if bad != "" {
					t.Errorf("%s over %s: %q: %s (%s); dialled %v, error %v", c.ID, p.name, c.Target, bad, c.Why, dialled, err)
				}
			}
		}
		names := make([]string, len(protocols))
		for i, p := range protocols {
			names[i] = p.name
		}
		printTallies(filepath.Base(set), len(cases), names, totals)
	}
}

// corpusVerdict says what is wrong with an outcome, "" if nothing.
func corpusVerdict(c corpus.Case, got string, dialled []netip.Addr) string {
	for _, a := range dialled {
		switch {
		case slices.Contains(c.MustNot, a):
			return "dialled " + a.String()
		case got == "allow" && len(c.Dials) > 0 && !slices.Contains(c.Dials, a):
			return "dialled another address than it should"
		}
	}
	switch {
	case got != c.Expect && got != c.Alt:
		return "want " + c.Expect
	case got == "deny" && len(dialled) > 0:
		return "refused, but dialled"
	case got == "allow" && len(dialled) == 0:
		return "allowed, but nothing was dialled"
	}
	return ""
}

func printTallies(set string, cases int, protocols []string, totals map[string][]tally) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s: %d cases (right / contested, other reading / leak / over-block / not expressible)\n\ngroup", set, cases)
	for _, p := range protocols {
		fmt.Fprintf(w, "\t%s", p)
	}
	fmt.Fprintln(w)
	sum := make([]tally, len(protocols))
	row := func(name string, ts []tally) {
		fmt.Fprint(w, name)
		for _, n := range ts {
			fmt.Fprintf(w, "\t%d / %d / %d / %d / %d", n.right, n.alt, n.leak, n.over, n.none)
		}
		fmt.Fprintln(w)
	}
	for _, g := range slices.Sorted(maps.Keys(totals)) {
		row(g, totals[g])
		for i, n := range totals[g] {
			s := &sum[i]
			s.right, s.alt, s.leak, s.over, s.none = s.right+n.right, s.alt+n.alt, s.leak+n.leak, s.over+n.over, s.none+n.none
		}
	}
	row("all", sum)
	fmt.Fprintln(w)
	w.Flush()
}

// corpusDialer resolves as the host does: the namespace's resolv.conf and hosts file.
func corpusDialer(t *testing.T, c corpus.Case) *egress.Dialer {
	p, err := egress.NewPolicy(egress.PolicyOptions{Allow: c.Policy.Allow, Deny: c.Policy.Deny, Inward: c.Policy.Inward, NAT64: c.Policy.NAT64})
	if err != nil {
		t.Fatalf("%s: %v", c.ID, err)
	}
	return &egress.Dialer{Policy: p, Timeout: 20 * time.Second}
}

// enterCorpusNetwork makes every address local to the namespace and points the resolver at the test.
func enterCorpusNetwork(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{"/etc/resolv.conf": "nameserver 127.0.0.1\n", "/etc/hosts": "127.0.0.1 localhost\n"} {
		from := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(from, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount(from, file, "", syscall.MS_BIND, ""); err != nil {
			t.Fatalf("mounting %s: %v", file, err)
		}
		t.Cleanup(func() { syscall.Unmount(file, syscall.MNT_DETACH) })
	}
	for _, args := range []string{"link set lo up", "route add local 0.0.0.0/0 dev lo", "-6 route add local ::/0 dev lo"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
}

// farSide answers on every address of the namespace, whatever is asked, with the address that was dialled.
type farSide struct {
	mu    sync.Mutex
	addrs []netip.Addr
}

const farWord = "reached "

func startFar(t *testing.T) *farSide {
	f := &farSide{}
	for _, port := range []string{"22", "80", "443", "8080", "8443"} {
		l, err := net.Listen("tcp", ":"+port)
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
				at := netip.MustParseAddrPort(conn.LocalAddr().String()).Addr().Unmap().WithZone("")
				f.mu.Lock() // before the next is accepted: a connection that was made but never spoken on counts too
				f.addrs = append(f.addrs, at)
				f.mu.Unlock()
				go answerFar(conn, at)
			}
		}()
	}
	return f
}

func answerFar(conn net.Conn, at netip.Addr) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	first, err := r.Peek(1)
	if err != nil {
		return
	}
	if first[0] == 'G' {
		for line := ""; line != "\r\n"; {
			if line, err = r.ReadString('\n'); err != nil {
				return
			}
		}
		body := farWord + at.String() + "\n"
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
		return
	}
	fmt.Fprintf(conn, "%s%s\n", farWord, at)
	io.Copy(io.Discard, r)
}

func (f *farSide) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addrs = nil
}

func (f *farSide) dialled() []netip.Addr {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.addrs)
}

// isAuthority reports whether a target is written without scheme and path, as CONNECT and SOCKS5 want it.
func isAuthority(target string) bool {
	return !strings.Contains(target, "/") && !strings.HasPrefix(target, "http:")
}

func toProxy() (*net.TCPConn, error) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+corpus.ProxyPort)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(time.Minute))
	return conn.(*net.TCPConn), nil
}

// readsFarWord reads to the end and reports whether the origin was reached.
func readsFarWord(r io.Reader) error {
	all, err := io.ReadAll(io.LimitReader(r, 64<<10))
	if !bytes.Contains(all, []byte(farWord)) {
		return fmt.Errorf("not reached: %q %v", all, err)
	}
	return nil
}

func askCONNECT(c corpus.Case) (bool, error) {
	if !isAuthority(c.Target) && c.Expect == "allow" {
		return false, nil
	}
	conn, err := toProxy()
	if err != nil {
		return true, err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", c.Target, c.Target)
	r := bufio.NewReader(conn)
	status, err := r.ReadString('\n')
	if err != nil || !strings.HasPrefix(status, "HTTP/1.1 200 ") {
		return true, fmt.Errorf("%q %v", status, err)
	}
	for line := ""; line != "\r\n"; {
		if line, err = r.ReadString('\n'); err != nil {
			return true, err
		}
	}
	return true, throughTunnel(c, conn, r)
}

// throughTunnel says what the port's protocol wants to hear and listens for the origin.
func throughTunnel(c corpus.Case, conn *net.TCPConn, r io.Reader) error {
	t, err := egress.ParseTarget(c.Target, 0)
	if err != nil {
		return err
	}
	var first []byte
	switch t.Port() {
	case 443:
		name := t.Host()
		if _, literal := t.Addr(); literal {
			name = ""
		}
		first = clientHello(name)
	case 80:
		first = fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", t)
	default:
		first = []byte("HELLO\n")
	}
	if _, err := conn.Write(first); err != nil {
		return err
	}
	conn.CloseWrite()
	return readsFarWord(r)
}

// clientHello is what a TLS client says first.
func clientHello(name string) []byte {
	ours, theirs := net.Pipe()
	go func() {
		tls.Client(theirs, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		theirs.Close()
	}()
	defer ours.Close()
	buf := make([]byte, 16<<10)
	n, _ := ours.Read(buf)
	return buf[:n]
}

func askAbsolute(c corpus.Case) (bool, error) {
	target, host := c.Target, c.HostHeader
	if isAuthority(target) {
		target = "http://" + target + "/"
	}
	if host == "" {
		_, rest, _ := strings.Cut(target, "//")
		host, _, _ = strings.Cut(rest, "/")
	}
	conn, err := toProxy()
	if err != nil {
		return true, err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, host)
	return true, readsFarWord(conn)
}

// askSOCKS sends a literal as an address and everything else as a name. What cannot be said in SOCKS5 is not asked.
func askSOCKS(c corpus.Case) (bool, error) {
	at := strings.LastIndexByte(c.Target, ':')
	if !isAuthority(c.Target) || at < 0 {
		return false, nil
	}
	host := c.Target[:at]
	port, err := strconv.ParseUint(c.Target[at+1:], 10, 16)
	if err != nil || c.Target[at+1:] != strconv.FormatUint(port, 10) || len(host) > 255 {
		return false, nil
	}
	request := []byte{5, 1, 0}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	switch {
	case err == nil && a.Zone() == "" && a.Is6() && strings.HasPrefix(host, "["):
		request = append(append(request, 4), a.AsSlice()...)
	case err == nil && a.Is4() && host == a.String():
		request = append(append(request, 1), a.AsSlice()...)
	default:
		request = append(append(request, 3, byte(len(host))), host...)
	}
	request = append(request, byte(port>>8), byte(port))
	conn, err := toProxy()
	if err != nil {
		return true, err
	}
	defer conn.Close()
	conn.Write([]byte{5, 1, 0})
	r := bufio.NewReader(conn)
	hello := make([]byte, 2)
	if _, err := io.ReadFull(r, hello); err != nil || hello[1] != 0 {
		return true, fmt.Errorf("method %v %v", hello, err)
	}
	conn.Write(request)
	reply := make([]byte, 10)
	if _, err := io.ReadFull(r, reply); err != nil || reply[1] != 0 {
		return true, fmt.Errorf("reply %v %v", reply, err)
	}
	return true, throughTunnel(c, conn, r)
}
