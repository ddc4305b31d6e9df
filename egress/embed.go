package egress

import (
	"net/netip"
	"slices"
)

// embedding is an IPv4 address inside an IPv6 one.
type embedding struct {
	form       string
	v4         netip.Addr   // invalid: the form is there but malformed
	prefix     netip.Prefix // of a translator
	translator bool         // a packet to the address is delivered to v4, so an outward v4 makes it outward
	guess      bool         // one of several possible readings: only a metadata service counts
}

var (
	wellKnownNAT64 = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052 section 2.1
	localNAT64     = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215: any length inside it
	lengths6052    = []int{32, 40, 48, 56, 64, 96}           // RFC 6052 section 2.2
)

// embedded lists every IPv4 address that a carries.
func embedded(a netip.Addr, nat64 []netip.Prefix) []embedding {
	b := a.As16()
	v4 := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	var out []embedding
	for _, p := range nat64 {
		if p.Contains(a) {
			out = append(out, embedding{form: "NAT64", v4: from6052(b, p.Bits()), prefix: p, translator: true})
		}
	}
	switch {
	case wellKnownNAT64.Contains(a):
		out = append(out, embedding{form: "NAT64", v4: v4(12), prefix: wellKnownNAT64, translator: true})
	case localNAT64.Contains(a):
		for _, bits := range lengths6052[2:] {
			if in := from6052(b, bits); in.IsValid() {
				out = append(out, embedding{form: "NAT64", v4: in, guess: true})
			}
		}
	case zero(b[:12]): // RFC 4291 section 2.5.5.1; ::1 and :: are addresses of their own
		if !zero(b[12:15]) || b[15] > 1 {
			out = append(out, embedding{form: "IPv4-compatible", v4: v4(12)})
		}
	case zero(b[:8]) && b[8] == 0xff && b[9] == 0xff && zero(b[10:12]): // ::ffff:0:a.b.c.d, RFC 2765
		out = append(out, embedding{form: "SIIT", v4: v4(12)})
	case b[0] == 0x20 && b[1] == 0x02: // RFC 3056
		out = append(out, embedding{form: "6to4", v4: v4(2)})
	case b[0] == 0x20 && b[1] == 0x01 && zero(b[2:4]): // RFC 4380 section 4: server, then the client with its bits turned
		client := netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})
		out = append(out, embedding{form: "Teredo server", v4: v4(4)}, embedding{form: "Teredo client", v4: client})
	}
	// RFC 5214 section 6.1: interface identifier 0000:5efe or 0200:5efe, under any prefix.
	if b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		out = append(out, embedding{form: "ISATAP", v4: v4(12)})
	}
	return out
}

// from6052 takes the IPv4 address out of an address under a prefix of the given length (RFC 6052 section 2.2): it goes round
// bits 64 to 71, which must be zero. The suffix after it is ignored, as a translator does. The zero Addr stands for no such form.
func from6052(b [16]byte, bits int) netip.Addr {
	switch {
	case !slices.Contains(lengths6052, bits), bits < 96 && b[8] != 0:
		return netip.Addr{}
	case bits == 96:
		return netip.AddrFrom4([4]byte(b[12:16]))
	}
	var v4 [4]byte
	at := bits / 8
	for i := range v4 {
		if at == 8 {
			at++
		}
		v4[i] = b[at]
		at++
	}
	return netip.AddrFrom4(v4)
}

func zero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
