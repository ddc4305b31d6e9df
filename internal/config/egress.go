package config

// Egress says where connections may go. Empty lists allow nothing.
type Egress struct {
	Allow         []string            `yaml:"allow"`
	Deny          []string            `yaml:"deny"`
	Inward        map[string][]string `yaml:"inward"`
	NAT64Prefixes []string            `yaml:"nat64_prefixes"`
	ReportOnly    bool                `yaml:"report_only"`
}
