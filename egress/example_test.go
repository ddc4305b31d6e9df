package egress_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

func ExampleParseTarget() {
	for _, spelling := range []string{"API.Example.com.:443", "bücher.example:443", "[::ffff:8.8.8.8]:443", "0x7f.1:80", "user@example.com:443"} {
		t, err := egress.ParseTarget(spelling, 0)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(t)
	}
	// Output:
	// api.example.com:443
	// xn--bcher-kva.example:443
	// 8.8.8.8:443
	// no usable target (address-spelling): an IPv4 address is four decimal numbers without leading zeros, and no name ends in a number
	// no usable target (userinfo): something stands before an @
}

func ExampleClassify() {
	for _, a := range []string{"93.184.215.14", "64:ff9b::7f00:1", "168.63.129.16", "fec0::1"} {
		c := egress.Classify(netip.MustParseAddr(a))
		fmt.Println(a, c.Outward(), c)
	}
	// Output:
	// 93.184.215.14 true outward
	// 64:ff9b::7f00:1 false Loopback 127.0.0.0/8, as NAT64 of 127.0.0.1
	// 168.63.129.16 false Azure WireServer 168.63.129.16/32
	// fec0::1 false outside global unicast 2000::/3
}

func ExampleDialer_Judge() {
	policy, err := egress.NewPolicy(egress.PolicyOptions{
		Allow: []string{"*.example.com", "10.1.2.3:5432"},
		Deny:  []string{"bad.example.com"},
	})
	if err != nil {
		panic(err)
	}
	d := &egress.Dialer{Policy: policy}
	for _, s := range []string{"bad.example.com:443", "example.com:443", "10.1.2.3:5432"} {
		t, _ := egress.ParseTarget(s, 0)
		fmt.Println(d.Judge(context.Background(), t, nil).Err)
	}
	// Output:
	// bad.example.com:443 is refused by policy (denied): deny entry "bad.example.com"
	// example.com:443 is refused by policy (not-allowed): no allow entry covers it
	// 10.1.2.3:5432 is refused by policy (inward): 10.1.2.3 is Private-Use 10.0.0.0/8
}

func ExampleNewPolicy() {
	_, err := egress.NewPolicy(egress.PolicyOptions{Allow: []string{"*example.com"}})
	fmt.Println(err)
	// Output:
	// allow entry "*example.com" would match look-alikes such as "evilexample.com"; write "*.example.com" for subdomains or ".example.com" for the domain too
}
