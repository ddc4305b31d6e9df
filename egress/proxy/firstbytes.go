package proxy

// protocol is what a connection's first byte announces.
type protocol uint8

const (
	protoUnknown protocol = iota
	protoHTTP
	protoSOCKS5
	protoSOCKS4
	protoTLS
)

// detect tells the protocol by the first byte, which never is the same in two of them: a method begins with a token
// character, a SOCKS greeting with its version, a TLS record with type 22.
func detect(first byte) protocol {
	switch {
	case first == 5:
		return protoSOCKS5
	case first == 4:
		return protoSOCKS4
	case first == 0x16:
		return protoTLS
	case tokenChars[first]:
		return protoHTTP
	}
	return protoUnknown
}
