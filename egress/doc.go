// Package egress decides where a connection may go: host rules, address classes, and a dialer that resolves once, judges
// every address and dials a judged one.
//
// [NewPolicy] compiles an operator's rules; [Dialer.Dial] opens a connection under them or returns a [*DeniedError]:
//
//	policy, err := egress.NewPolicy(egress.PolicyOptions{Allow: []string{"api.example.com"}})
//	dialer := &egress.Dialer{Policy: policy}
//	conn, err := dialer.Dial(ctx, target)
//
// # Limits
//
// It judges destinations, not what is said to them: data can still be sent to any listed host, and a listed host may send it
// on. Names are trusted to be the host the operator meant once they resolve to an outward address; only TLS proves that.
// A shared service (a content network, an object store) is one destination for all its customers. A network-specific NAT64
// prefix is known only when it is configured, and an address the local network routes in a private way is seen as what the
// registries say of it. Paths of HTTPS requests are not visible. UDP and ICMP are not dialled at all.
package egress

//go:generate go run ../tools/registry -o registry.go
