package egress

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	defaultTryTimeout = 3 * time.Second
	maxTryTimeout     = 10 * time.Second
	defaultAttempts   = 2
	maxAttempts       = 5
	maxServers        = 3        // as glibc reads
	maxHostsFile      = 16 << 20 // block lists of a million names are kept in hosts files
	recheckAfter      = 5 * time.Second
	dnsPort           = 53
)

// dnsConfig is where names are asked and how patiently.
type dnsConfig struct {
	servers  []netip.AddrPort
	timeout  time.Duration // of one try
	attempts int           // rounds over the servers
}

// parseServer reads "ADDR" or "ADDR:PORT", IPv6 with brackets when a port follows.
func parseServer(s string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(a, dnsPort), nil
	}
	ap, err := netip.ParseAddrPort(s)
	if err != nil || ap.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("DNS server %q is no address; write it as in 192.0.2.53 or [2001:db8::53]:5353", s)
	}
	return ap, nil
}

// parseResolvConf reads nameservers and the options timeout and attempts (resolv.conf(5)). Search domains are left out: a name
// that a policy judged must be the name that is asked.
func parseResolvConf(text string) (dnsConfig, error) {
	c := dnsConfig{timeout: defaultTryTimeout, attempts: defaultAttempts}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || strings.ContainsAny(f[0][:1], "#;") {
			continue
		}
		switch f[0] {
		case "nameserver":
			if a, err := netip.ParseAddr(f[1]); err == nil && len(c.servers) < maxServers {
				c.servers = append(c.servers, netip.AddrPortFrom(a, dnsPort))
			}
		case "options":
			for _, o := range f[1:] {
				key, value, _ := strings.Cut(o, ":")
				n, err := strconv.Atoi(value)
				if err != nil || n < 1 {
					continue
				}
				switch key {
				case "timeout":
					c.timeout = min(time.Duration(n)*time.Second, maxTryTimeout)
				case "attempts":
					c.attempts = min(n, maxAttempts)
				}
			}
		}
	}
	if len(c.servers) == 0 { // as resolv.conf(5) says for an absent file
		c.servers = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), dnsPort)}
	}
	return c, nil
}

// parseHosts reads a hosts file into addresses by canonical name. Names and lines that are none are skipped.
func parseHosts(text string) (map[string][]netip.Addr, error) {
	table := map[string][]netip.Addr{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		a, err := netip.ParseAddr(f[0])
		if err != nil {
			continue
		}
		for _, n := range f[1:] {
			if name, err := canonicalName(n); err == nil {
				table[name] = append(table[name], a)
			}
		}
	}
	return table, nil
}

// watch reads and parses a small file, again when it has changed, looking at most every few seconds. An absent file is empty;
// one that cannot be read or is too large is an error, and the error refuses.
func watch[T any](path string, parse func(string) (T, error)) func() (T, error) {
	var mu sync.Mutex
	var value T
	var checked, modified time.Time
	var size int64
	return func() (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if !checked.IsZero() && time.Since(checked) < recheckAfter {
			return value, nil
		}
		var none T
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if value, err = parse(""); err != nil {
				return none, err
			}
			checked, modified, size = time.Now(), time.Time{}, 0
			return value, nil
		case err != nil:
			return none, err
		}
		if !checked.IsZero() && info.ModTime().Equal(modified) && info.Size() == size {
			checked = time.Now()
			return value, nil
		}
		text, err := readBounded(path)
		if err != nil {
			return none, err
		}
		fresh, err := parse(text)
		if err != nil {
			return none, err
		}
		value, checked, modified, size = fresh, time.Now(), info.ModTime(), info.Size()
		return value, nil
	}
}

func readBounded(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxHostsFile+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxHostsFile {
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxHostsFile)
	}
	return string(data), nil
}
