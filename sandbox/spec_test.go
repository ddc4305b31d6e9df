package sandbox

import (
	"slices"
	"strings"
	"testing"
)

func TestSpecRefuses(t *testing.T) {
	many := make([]string, MaxPaths+1)
	for i := range many {
		many[i] = "/x"
	}
	for why, spec := range map[string]Spec{
		"no command":                  {},
		"no command ":                 {Args: []string{""}},
		"a zero byte":                 {Args: []string{"a\x00b"}},
		"NAME=value":                  {Args: []string{"a"}, Env: []string{"novalue"}},
		"NAME=value ":                 {Args: []string{"a"}, Env: []string{"=x"}},
		"more than 1024 environment":  {Args: []string{"a"}, Env: slices.Repeat([]string{"A=b"}, MaxEnv+1)},
		"larger than 1048576 bytes":   {Args: []string{strings.Repeat("x", MaxBytes+1)}},
		"unknown preset":              {Args: []string{"a"}, Preset: 9},
		"do not go together":          {Args: []string{"a"}, Preset: ProjectRO},
		"do not go together ":         {Args: []string{"a"}, Project: "/x"},
		"unknown network":             {Args: []string{"a"}, Network: 9},
		"more than 32 ports":          {Args: []string{"a"}, Ports: slices.Repeat([]uint16{1}, MaxPorts+1)},
		"port 0":                      {Args: []string{"a"}, Ports: []uint16{0}},
		"more than 262144 bytes":      {Args: []string{"a"}, CA: make([]byte, MaxCA+1)},
		"unknown weaker mode":         {Args: []string{"a"}, Weaker: []Weaker{"none"}},
		"more than 128 paths to read": {Args: []string{"a"}, Read: many},
		"not an absolute path":        {Args: []string{"a"}, Read: []string{"x"}},
		"not an absolute path ":       {Args: []string{"a"}, Hide: []string{"/a\x00b"}},
		"not an absolute path  ":      {Args: []string{"a"}, State: "state"},
	} {
		if err := spec.validate(); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(why)) {
			t.Errorf("%s: error %v", why, err)
		}
	}
	if err := (&Spec{Args: []string{"a"}, Env: []string{"SECRET_WITHOUT_VALUE_hunter2"}}).validate(); err == nil {
		t.Error("an entry without a value passes")
	}
	if err := (&Spec{Args: []string{"a"}}).validate(); err != nil {
		t.Errorf("the zero Spec with a command: %v", err)
	}
}

var testPlaces = places{home: "/h", tmp: "/t", state: "/s"}

// The launcher's environment does not pass, the operator's does and wins.
func TestEnvironmentIsAnAllowList(t *testing.T) {
	caller := []string{"AWS_SECRET_ACCESS_KEY=planted", "LD_PRELOAD=/w/x.so", "NODE_OPTIONS=--require /w/x", "PYTHONSTARTUP=/w/x", "BASH_ENV=/w/x", "GIT_SSH_COMMAND=x",
		"PATH=/w/bin", "HOME=/root", "SSH_AUTH_SOCK=/x", "DBUS_SESSION_BUS_ADDRESS=unix:path=/x", "HTTP_PROXY=http://planted", "XDG_RUNTIME_DIR=/run/user/0",
		"LANG=fa_IR.UTF-8", "TERM=" + strings.Repeat("x", maxInherited+1), "TZ=Asia/Tehran"}
	env, notes := environment(&Spec{}, testPlaces, caller)
	for _, bad := range []string{"planted", "/w/", "/root", "unix:path", "/run/user", "xxxx"} {
		if slices.ContainsFunc(env, func(e string) bool { return strings.Contains(e, bad) }) {
			t.Errorf("%q came through: %q", bad, env)
		}
	}
	for _, want := range []string{"LANG=fa_IR.UTF-8", "TZ=Asia/Tehran", "HOME=/h", "TMPDIR=/t", "XDG_CACHE_HOME=/h/.cache", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing: %q", want, env)
		}
	}
	if len(notes) != 0 {
		t.Errorf("notes: %q", notes)
	}
	if slices.ContainsFunc(env, func(e string) bool { return strings.Contains(strings.ToUpper(e), "PROXY") }) {
		t.Errorf("proxy variables without a network: %q", env)
	}

	env, notes = environment(&Spec{Env: []string{"LD_PRELOAD=/lib/x.so", "HOME=/s", "A=b=c", "A=d"}, State: "/x", Network: Egress, CA: []byte("x")}, testPlaces, nil)
	for _, want := range []string{"LD_PRELOAD=/lib/x.so", "HOME=/s", "A=d", "HEARSAY_STATE=/s", "HTTPS_PROXY=http://127.0.0.1:3128", "ALL_PROXY=socks5h://127.0.0.1:3128",
		"NODE_USE_ENV_PROXY=1", "NO_PROXY=localhost,127.0.0.1,::1", "npm_config_proxy=http://127.0.0.1:3128", "NODE_EXTRA_CA_CERTS=" + caBundle, "SSL_CERT_FILE=" + caBundle} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing: %q", want, env)
		}
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "LD_PRELOAD") || strings.Contains(notes[0], "/lib/x.so") {
		t.Errorf("notes: %q", notes)
	}
}

func TestReportNamesWhatIsWeaker(t *testing.T) {
	full := Report{Layers: []Layer{{"seccomp", Enforced, "x"}, {"limits", Enforced, ""}}}
	if !full.Full() || (Report{}).Full() {
		t.Error("a full report is not, or an empty one is")
	}
	for _, r := range []Report{
		{Layers: []Layer{{"seccomp", Off, ""}}},
		{Layers: full.Layers, Weaker: []Weaker{NoLandlock}},
	} {
		if r.Full() {
			t.Errorf("full: %+v", r)
		}
	}
	text := Report{Layers: []Layer{{"landlock", Off, "ABI 0"}}, Weaker: []Weaker{NoLandlock}, Notes: []string{"a note"}}.String()
	for _, want := range []string{"landlock", "off", "weaker mode", "no-landlock", "a note"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if e := (Exit{Signal: 9}); e.Status() != 137 || !strings.Contains(e.String(), "9") {
		t.Errorf("%v", e)
	}
}

// Every weaker mode and preset reads back as it is written.
func TestNamesRoundTrip(t *testing.T) {
	for _, p := range []Preset{Server, ProjectRO, ProjectRW} {
		if got, err := ParsePreset(p.String()); err != nil || got != p {
			t.Errorf("%v: %v, %v", p, got, err)
		}
	}
	for _, w := range WeakerModes {
		if got, err := ParseWeaker(string(w)); err != nil || got != w {
			t.Errorf("%v: %v, %v", w, got, err)
		}
	}
}
