package egress

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Bounds of RFC 1035 section 2.3.4 in text form: without the root dot.
const (
	maxName  = 253
	maxLabel = 63
	// maxHostInput bounds the text before mapping: a name of 253 octets written in the longest UTF-8 that maps to it.
	maxHostInput = 4 * maxName
)

// lookup is UTS 46, non-transitional. Hyphens at places three and four stay legal (content networks use them) and STD3 is
// judged on the result, where an underscore is legal: ldh below is the stricter of the two on everything else.
var lookup = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.BidiRule(),
)

// canonicalHost returns the one spelling of a host. An address comes back as text and value. bareV6 allows an IPv6 address
// without brackets.
func canonicalHost(s string, bareV6 bool) (string, netip.Addr, error) {
	none := netip.Addr{}
	if s == "" {
		return "", none, refuse(ReasonEmptyHost)
	}
	if len(s) > maxHostInput {
		return "", none, refuse(ReasonLength)
	}
	if strings.ContainsAny(s, "[]") {
		return bracketed(s)
	}
	if strings.Contains(s, ":") {
		if !bareV6 {
			return "", none, refuse(ReasonBrackets)
		}
		return bracketed("[" + s + "]")
	}
	if r := oddRune(s); r != "" {
		return "", none, refuse(r)
	}
	if a, err := netip.ParseAddr(s); err == nil { // dotted decimal, four parts, no leading zeros
		return a.String(), a, nil
	}
	name, err := canonicalName(s)
	return name, none, err
}

// bracketed reads "[IPv6]": a name, an IPv4 address, an IPvFuture or a zone in brackets is refused (CVE-2022-29188 was a name
// in brackets that no rule matched and the resolver still found).
func bracketed(s string) (string, netip.Addr, error) {
	none := netip.Addr{}
	if len(s) < 2 || s[0] != '[' || s[len(s)-1] != ']' {
		return "", none, refuse(ReasonBrackets)
	}
	inner := s[1 : len(s)-1]
	if strings.Contains(inner, "%") { // also "%25": a prefix test on a zoned address answers false, so refuse before any
		return "", none, refuse(ReasonZone)
	}
	if r := oddRune(inner); r != "" {
		return "", none, refuse(r)
	}
	a, err := netip.ParseAddr(inner)
	if err != nil || !a.Is6() {
		return "", none, refuse(ReasonBrackets)
	}
	a = a.Unmap()
	return a.String(), a, nil
}

// oddRune finds what no host may hold, before any mapping could make it vanish.
func oddRune(s string) Reason {
	if !utf8.ValidString(s) {
		return ReasonCharacter
	}
	for _, r := range s {
		switch {
		case unicode.IsControl(r):
			return ReasonControl
		case unicode.IsSpace(r):
			return ReasonSpace
		case r == '@':
			return ReasonUserinfo
		case r == '%':
			return ReasonPercent
		}
	}
	return ""
}

// canonicalName returns the ASCII form of a name in lower case without its trailing dot.
func canonicalName(s string) (string, error) {
	name := lower(s)
	if !isASCII(name) || hasACE(name) {
		mapped, err := lookup.ToASCII(name)
		if err != nil {
			return "", refuse(ReasonIDNA)
		}
		name = mapped
	}
	name = strings.TrimSuffix(name, ".") // the root; a second dot leaves an empty label
	if name == "" {
		return "", refuse(ReasonEmptyHost)
	}
	if len(name) > maxName {
		return "", refuse(ReasonLength)
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if reason := badLabel(label); reason != "" {
			return "", refuse(reason)
		}
		last = label
	}
	// A name whose last label is a number is an address to some reader (WHATWG URL, inet_aton), whatever stands before it.
	if numeric(last) {
		return "", refuse(ReasonSpelling)
	}
	return name, nil
}

// badLabel holds the letters-digits-hyphen rule, with the underscore that service names use.
func badLabel(label string) Reason {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return ReasonLabel
	}
	for i := range len(label) {
		switch c := label[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return ReasonCharacter
		}
	}
	return ""
}

// numeric reports whether a reader of numbers takes the label for one: all digits, or 0x and hexadecimal digits.
func numeric(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = hex, "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func hasACE(s string) bool {
	return strings.HasPrefix(s, "xn--") || strings.Contains(s, ".xn--")
}

// lower maps ASCII letters only; other case mappings belong to UTS 46.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
