package egress

import "net/netip"

// metadataServices are the addresses at which clouds hand their machines credentials, start-up data or host control. They are
// kept by address since some lie in public-looking space, where no registry row catches them, and since an exemption for the
// range around them must not open them. Source: what each provider documents for its machines. All but Azure's lie in inward
// blocks, so that one which a provider has given up costs nothing.
var metadataServices = map[netip.Addr]string{
	addr("169.254.169.254"):    "instance metadata", // Amazon, Azure, Google, Oracle, DigitalOcean, Hetzner, Akamai, IBM, OpenStack, …
	addr("fd00:ec2::254"):      "Amazon EC2 instance metadata",
	addr("169.254.169.253"):    "Amazon VPC resolver",
	addr("fd00:ec2::253"):      "Amazon VPC resolver",
	addr("169.254.169.123"):    "Amazon time service",
	addr("fd00:ec2::123"):      "Amazon time service",
	addr("169.254.169.249"):    "Amazon instance services",
	addr("169.254.169.250"):    "Amazon instance services",
	addr("169.254.169.251"):    "Amazon instance services",
	addr("fd00:ec2::250"):      "Amazon instance services",
	addr("fd00:ec2::251"):      "Amazon instance services",
	addr("169.254.170.2"):      "Amazon ECS task credentials",
	addr("169.254.170.23"):     "Amazon EKS pod identity",
	addr("fd00:ec2::23"):       "Amazon EKS pod identity",
	addr("169.254.169.252"):    "Google GKE metadata",
	addr("fd20:ce::254"):       "Google Compute Engine metadata",
	addr("168.63.129.16"):      "Azure WireServer",
	addr("192.0.0.192"):        "Oracle Cloud Classic metadata",
	addr("fd00:c1::a9fe:a9fe"): "Oracle Cloud metadata",
	addr("100.100.100.200"):    "Alibaba Cloud metadata",
	addr("169.254.0.23"):       "Tencent Cloud metadata",
	addr("100.96.0.96"):        "Volcengine metadata",
	addr("100.80.80.80"):       "UCloud metadata",
	addr("169.254.42.42"):      "Scaleway metadata",
	addr("fd00:42::42"):        "Scaleway metadata",
	addr("fd00:a9fe:a9fe::1"):  "Akamai metadata",
	addr("fe80::a9fe:a9fe"):    "OpenStack metadata",
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func metadataService(a netip.Addr) Class {
	name, ok := metadataServices[a]
	if !ok {
		return Class{}
	}
	return Class{Kind: Metadata, Name: name, Prefix: netip.PrefixFrom(a, a.BitLen())}
}
