package streamhttp

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Guard refuses requests for other names (a name of the attacker's that resolves here: DNS rebinding) and from other pages.
// It gives the reason, "" for none.
func (h *Handler) Guard(r *http.Request) string {
	if !slices.Contains(h.opt.Hosts, r.Host) && !loopbackName(r.Host) {
		return "This name is not one the gateway answers to; list it under serve.hosts."
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return ""
	}
	if len(origins) > 1 || !slices.Contains(h.opt.Origins, origins[0]) && !loopbackOrigin(origins[0]) {
		return "Pages of this origin may not use the gateway; list it under serve.origins."
	}
	return ""
}

// loopbackName takes the names a loopback listener is reached by, whatever the port. 0.0.0.0 and [::] are none of them.
func loopbackName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return name == "localhost" || name == "127.0.0.1" || name == "::1"
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Path == "" && loopbackName(u.Host)
}
