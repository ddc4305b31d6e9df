package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// ProxyPort is where the proxy's listener is on the sandbox's own loopback.
const ProxyPort = 3128

// inherited are the variables of the caller that may pass: how text looks, never where things are or who one is.
var inherited = []string{"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "TZ", "TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "FORCE_COLOR"}

// maxInherited bounds the length of a passed value: a locale or a terminal's name is short, a smuggled text is not.
const maxInherited = 128

// steering are variables that make loaders and interpreters run code or load it from elsewhere. From the operator they are
// kept, with a note; nothing else can set them.
var steering = []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "NODE_OPTIONS", "NODE_PATH", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONINSPECT",
	"BASH_ENV", "ENV", "PROMPT_COMMAND", "PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
	"GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "EDITOR", "VISUAL", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT", "PATH"}

// places are where the sandbox's own folders are for the command.
type places struct{ home, tmp, state string }

// environment is what the command gets: the base, the way out, the certificates, and the operator's entries, which win.
func environment(s *Spec, at places, caller []string) (env, notes []string) {
	set := map[string]string{
		"PATH":            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME":            at.home,
		"USER":            userName,
		"LOGNAME":         userName,
		"SHELL":           "/bin/sh",
		"TMPDIR":          at.tmp,
		"XDG_CACHE_HOME":  at.home + "/.cache",
		"XDG_CONFIG_HOME": at.home + "/.config",
		"XDG_DATA_HOME":   at.home + "/.local/share",
		"XDG_STATE_HOME":  at.home + "/.local/state",
		"XDG_RUNTIME_DIR": at.tmp + runtimeFolder,
		"LANG":            "C.UTF-8",
		"HEARSAY_SANDBOX": "1", // lets a program or a prompt say where it is; it gives no right
	}
	for _, e := range caller {
		name, value, _ := strings.Cut(e, "=")
		if slices.Contains(inherited, name) && len(value) <= maxInherited {
			set[name] = value
		}
	}
	if s.State != "" {
		set["HEARSAY_STATE"] = at.state
		set["XDG_DATA_HOME"] = at.state + "/share"
		set["XDG_STATE_HOME"] = at.state + "/state"
	}
	if s.Network == Egress {
		proxy := fmt.Sprintf("http://127.0.0.1:%d", ProxyPort)
		socks := fmt.Sprintf("socks5h://127.0.0.1:%d", ProxyPort)
		for _, n := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy",
			"npm_config_proxy", "npm_config_https_proxy", "PIP_PROXY", "GLOBAL_AGENT_HTTP_PROXY", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"} {
			set[n] = proxy
		}
		set["ALL_PROXY"], set["all_proxy"] = socks, socks
		set["NO_PROXY"], set["no_proxy"] = "localhost,127.0.0.1,::1", "localhost,127.0.0.1,::1" // loopback only: everything else is the proxy's to judge
		set["npm_config_noproxy"] = "localhost,127.0.0.1,::1"
		set["NODE_USE_ENV_PROXY"] = "1" // Node's own fetch reads the variables only with it (22.21, 24)
	}
	if len(s.CA) > 0 {
		for _, n := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "DENO_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "npm_config_cafile"} {
			set[n] = caBundle
		}
	}
	for _, e := range s.Env {
		name, value, _ := strings.Cut(e, "=")
		set[name] = value
		if slices.Contains(steering, name) {
			notes = append(notes, fmt.Sprintf("%s is set by the operator: it changes what programs inside run", name))
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, notes
}

const (
	userName      = "user"
	runtimeFolder = "/runtime"
	caBundle      = "/etc/ssl/hearsay-ca.pem"
)

// systemBundles are where distributions keep the one file with all roots.
var systemBundles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// bundle is the system's roots and ours, in one file: some programs replace the roots by it, some add to them.
func bundle(ca []byte) []byte {
	for _, path := range systemBundles {
		if data, err := os.ReadFile(path); err == nil {
			return append(append(data, '\n'), ca...)
		}
	}
	return ca
}
