//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// egressProcess is the command in a process of its own, as it is used.
type egressProcess struct {
	cmd     *exec.Cmd
	log     *bufio.Reader
	client  *http.Client
	Addr    string `json:"addr"`
	Port    int    `json:"port"`
	Metrics string `json:"metrics"`
}

func startEgress(t *testing.T, args ...string) *egressProcess {
	t.Helper()
	p := &egressProcess{cmd: &exec.Cmd{Path: os.Args[0], Args: append([]string{"hearsay", "egress"}, args...)}}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.log = bufio.NewReader(stderr)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	if err := json.NewDecoder(stdout).Decode(p); err != nil {
		t.Fatal(err)
	}
	via := &url.URL{Scheme: "http", Host: p.Addr}
	p.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{Proxy: http.ProxyURL(via)}}
	return p
}

func (p *egressProcess) get(t *testing.T, url string) int {
	t.Helper()
	resp, err := p.client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// logged reads the log up to the next line with these words.
func (p *egressProcess) logged(t *testing.T, words string) string {
	t.Helper()
	for {
		l, err := p.log.ReadString('\n')
		if err != nil {
			t.Fatalf("no %q in the log: %v", words, err)
		}
		if strings.Contains(l, words) {
			return l
		}
	}
}

// TestEgressProcess follows one proxy through its life: start, a refusal, new rules, a bad file, metrics, audit, its end.
func TestEgressProcess(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer origin.Close()
	dir := t.TempDir()
	file, log := filepath.Join(dir, "hearsay.yaml"), filepath.Join(dir, "audit.log")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(fmt.Sprintf("audit: {file: %q}\n%s", log, text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	p := startEgress(t, "-c", file, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
	if p.Addr != fmt.Sprintf("127.0.0.1:%d", p.Port) || p.Metrics == "" {
		t.Errorf("started as %+v", p)
	}
	target := strings.Replace(origin.URL, "127.0.0.1", "ok.case.localhost", 1)
	if got := p.get(t, target); got != 403 {
		t.Errorf("without rules: %d", got)
	}
	line := p.logged(t, "egress decision")
	var entry map[string]any
	if err := json.Unmarshal([]byte(line), &entry); err != nil || entry["allowed"] != false || entry["reason"] != "not-allowed" || entry["protocol"] != "http" {
		t.Errorf("%v in %q", err, line)
	}
	write("egress: {allow: [\"ok.case.localhost:*\"], inward: {\"ok.case.localhost:*\": [\"127.0.0.1\", \"::1\"]}}")
	hup := func() {
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	hup()
	p.logged(t, `"egress reload","file"`)
	if got := p.get(t, target); got != 200 {
		t.Errorf("with new rules: %d", got)
	}
	write("egress: {alow: []}")
	hup()
	if l := p.logged(t, `"egress reload","error"`); !strings.Contains(l, "alow") {
		t.Errorf("a bad file: %s", l)
	}
	if got := p.get(t, target); got != 200 {
		t.Errorf("after a bad file: %d", got)
	}
	if got := p.get(t, "http://"+p.Metrics+"/metrics"); got != 403 {
		t.Errorf("its own metrics through the proxy: %d", got)
	}
	resp, err := http.Get("http://" + p.Metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	for _, want := range []string{
		`hearsay_egress_decisions_total{allowed="true",client="default",protocol="http",reason=""} 2`,
		`hearsay_egress_decisions_total{allowed="false",client="default",protocol="http",reason="not-allowed"} 2`,
		`hearsay_egress_connections{client="default"} 1`,
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the metrics lack %s in\n%s", want, page)
		}
	}
	p.client.CloseIdleConnections()
	p.logged(t, "egress closed")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	out, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]int{`"answer":"allow"`: 2, `"answer":"deny"`: 2, `"kind":"result"`: 1, `"kind":"change"`: 1} {
		if got := strings.Count(string(out), words); got != want {
			t.Errorf("%d lines with %s in the audit log, want %d\n%s", got, words, want, out)
		}
	}
	cmd := &exec.Cmd{Path: os.Args[0], Args: []string{"hearsay", "audit", "verify", log}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("audit verify: %v\n%s", err, out)
	}
}
