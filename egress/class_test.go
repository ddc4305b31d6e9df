package egress

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// TestClassifyTable reads testdata/classes.txt: an address, its kind, and a part of its description.
func TestClassifyTable(t *testing.T) {
	f, err := os.Open("testdata/classes.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	var nat64 []netip.Prefix
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if fields[0] == "nat64" {
			nat64 = nil
			for _, p := range fields[1:] {
				nat64 = append(nat64, netip.MustParsePrefix(p))
			}
			continue
		}
		rows++
		a := netip.MustParseAddr(fields[0])
		got := Classify(a, nat64...)
		if string(got.Kind) != fields[1] {
			t.Errorf("%s: %s (%s), want %s", a, got.Kind, got, fields[1])
		}
		if want := strings.Join(fields[2:], " "); !strings.Contains(got.String(), want) {
			t.Errorf("%s: %q, want %q in it", a, got, want)
		}
	}
	if rows < 150 {
		t.Errorf("only %d rows were read", rows)
	}
}

// csvRow is a row of IANA's own file, read here a second time and apart from the generator.
type csvRow struct {
	prefix netip.Prefix
	global bool
}

func readRegistries(t *testing.T) []csvRow {
	t.Helper()
	var rows []csvRow
	for _, name := range []string{"iana-ipv4-special-registry-1.csv", "iana-ipv6-special-registry-1.csv"} {
		data, err := os.ReadFile(filepath.Join(repotest.Root(t), "tools", "registry", name))
		if err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records[1:] {
			for _, p := range regexp.MustCompile(`[0-9a-f:.]+/[0-9]+`).FindAllString(rec[0], -1) {
				rows = append(rows, csvRow{netip.MustParsePrefix(p), strings.HasPrefix(rec[8], "True")})
			}
		}
	}
	if len(rows) < 50 {
		t.Fatalf("only %d rows", len(rows))
	}
	return rows
}

// TestRegistryEdges takes the first and last address of every row and both neighbours, and compares with a plain reading of
// the registries: the longest row decides; elsewhere unicast IPv4 and 2000::/3 are outward.
func TestRegistryEdges(t *testing.T) {
	rows := readRegistries(t)
	outward := func(a netip.Addr) bool {
		best := csvRow{global: a.Is4() && !a.IsMulticast() || a.Is6() && a.As16()[0]>>5 == 1}
		bits := -1
		for _, r := range rows {
			if r.prefix.Contains(a) && r.prefix.Bits() > bits {
				best, bits = r, r.prefix.Bits()
			}
		}
		return best.global
	}
	for _, r := range rows {
		first, last := r.prefix.Addr(), lastOf(r.prefix)
		for _, a := range []netip.Addr{first.Prev(), first, last, last.Next()} {
			if !a.IsValid() || a.Is4In6() || wellKnownNAT64.Contains(a) { // these are judged by what they carry
				continue
			}
			if got := Classify(a); got.Outward() != outward(a) {
				t.Errorf("%s at the edge of %s: %s", a, r.prefix, got)
			}
		}
	}
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func TestOwnAddressesAreInward(t *testing.T) {
	own := Classifier{Own: []netip.Prefix{netip.MustParsePrefix("93.184.215.14/32"), netip.MustParsePrefix("2606:4700::1/128")}}
	for _, s := range []string{"93.184.215.14", "::ffff:93.184.215.14", "64:ff9b::93.184.215.14", "2606:4700::1", "2600::5efe:93.184.215.14"} {
		if got := own.Classify(netip.MustParseAddr(s)); got.Kind != Own {
			t.Errorf("%s: %s", s, got)
		}
	}
	if got := own.Classify(netip.MustParseAddr("93.184.215.15")); !got.Outward() {
		t.Errorf("the neighbour is %s", got)
	}
	if got := (Classifier{Own: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}).Classify(netip.MustParseAddr("127.0.0.1")); got.Kind != Special {
		t.Errorf("loopback is named %s", got)
	}
}

func TestZeroClassIsRefused(t *testing.T) {
	if (Class{}).Outward() || Classify(netip.Addr{}).Outward() {
		t.Error("the zero value is outward")
	}
	if got := Classify(netip.MustParseAddr("fe80::1%eth0")); got.Name != "Link-Local Unicast" {
		t.Errorf("a zone hides the class: %s", got)
	}
}

// embed puts an IPv4 address into each known form, with filler where the form leaves room.
func embed(v4 netip.Addr, fill [8]byte) map[string]netip.Addr {
	b := v4.As4()
	at := func(head string, i int) netip.Addr {
		a := netip.MustParseAddr(head).As16()
		copy(a[i:], b[:])
		return netip.AddrFrom16(a)
	}
	teredo := at("2001:0:4136:e378::", 12).As16()
	for i := 12; i < 16; i++ {
		teredo[i] ^= 0xff
	}
	copy(teredo[8:12], fill[:4])
	sixToFour := at("2002::", 2).As16()
	copy(sixToFour[6:14], fill[:])
	isatap := netip.MustParseAddr("2600::5efe:0:0").As16()
	copy(isatap[2:8], fill[:6])
	isatap[8] = fill[6] & 0x03
	copy(isatap[12:], b[:])
	out := map[string]netip.Addr{
		"mapped": at("::ffff:0:0", 12), "NAT64": at("64:ff9b::", 12), "SIIT": at("::ffff:0:0:0", 12),
		"6to4": netip.AddrFrom16(sixToFour), "Teredo server": at("2001::", 4), "Teredo client": netip.AddrFrom16(teredo), "ISATAP": netip.AddrFrom16(isatap),
		"local NAT64": at("64:ff9b:1::", 12),
	}
	if v4.Compare(netip.MustParseAddr("0.0.0.2")) >= 0 {
		out["compatible"] = at("::", 12)
	}
	for _, p := range nat64Samples {
		a := p.Addr().As16()
		i := p.Bits() / 8
		for _, x := range b {
			if i == 8 {
				i++
			}
			a[i] = x
			i++
		}
		if i < 16 {
			copy(a[max(i, 9):], fill[:])
		}
		out[p.String()] = netip.AddrFrom16(a)
	}
	return out
}

var nat64Samples = []netip.Prefix{
	netip.MustParsePrefix("2a00:1111::/32"), netip.MustParsePrefix("2a00:2222:3300::/40"), netip.MustParsePrefix("2a00:2222:4444::/48"),
	netip.MustParsePrefix("2a00:2222:5555:5500::/56"), netip.MustParsePrefix("2a00:2222:6666:6666::/64"), netip.MustParsePrefix("2a00:2222:7777:7777::/96"),
}

// FuzzEmbedded holds that an inward IPv4 address is never outward in any form, and that a public one is wherever a packet is
// delivered to it.
func FuzzEmbedded(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", "100.64.0.1", "0.0.0.0", "8.8.8.8", "255.255.255.255", "224.0.0.1"} {
		b := netip.MustParseAddr(s).As4()
		f.Add(b[:], []byte{1, 2, 3, 4, 5, 6, 7, 8})
	}
	delivered := []string{"mapped", "NAT64", "ISATAP"}
	for _, p := range nat64Samples {
		delivered = append(delivered, p.String())
	}
	f.Fuzz(func(t *testing.T, v4Bytes, fillBytes []byte) {
		if len(v4Bytes) != 4 || len(fillBytes) != 8 {
			t.Skip()
		}
		v4 := netip.AddrFrom4([4]byte(v4Bytes))
		plain := Classify(v4)
		for form, a := range embed(v4, [8]byte(fillBytes)) {
			got := Classify(a, nat64Samples...)
			if !plain.Outward() && got.Outward() {
				t.Errorf("%s is %s, but as %s (%s) it is outward", v4, plain, form, a)
			}
			if plain.Kind == Metadata && got.Kind != Metadata {
				t.Errorf("%s is metadata, but as %s (%s) it is %s", v4, form, a, got)
			}
			if plain.Outward() && slices.Contains(delivered, form) && !got.Outward() && got.Form != "ISATAP" {
				t.Errorf("%s is outward, but as %s (%s) it is %s", v4, form, a, got)
			}
		}
	})
}

// FuzzClassify holds that nothing outside unicast IPv4, 2000::/3 and translated forms is ever outward.
func FuzzClassify(f *testing.F) {
	for _, r := range registry {
		b := r.prefix.Addr().As16()
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			t.Skip()
		}
		if !Classify(a).Outward() {
			return
		}
		a = a.Unmap()
		switch {
		case a.IsPrivate(), a.IsLoopback(), a.IsMulticast(), a.IsUnspecified(), a.IsLinkLocalUnicast():
			t.Errorf("%s is outward", a)
		case a.Is6() && !globalUnicast.Contains(a) && !wellKnownNAT64.Contains(a):
			t.Errorf("%s is outward", a)
		}
	})
}

func BenchmarkClassify(b *testing.B) {
	for _, s := range []string{"93.184.215.14", "2606:4700::6810:84e5", "64:ff9b::808:808"} {
		a := netip.MustParseAddr(s)
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !Classify(a).Outward() {
					b.Fatal("inward")
				}
			}
		})
	}
}

func noOwn() ([]netip.Prefix, error) { return nil, nil }
