// Command bench measures what the gateway adds to a call: the same client and server directly, through a bare relay that
// copies lines, and through hearsay mcp, in turns within one run. It prints the table of docs/gateway.md.
//
//	HEARSAY_NPM=…/node_modules go run ./internal/realtest/bench
//	go run ./internal/realtest/bench -http
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	calls := flag.Int("calls", 2000, "calls of each kind on each path")
	rounds := flag.Int("rounds", 8, "turns that the calls are spread over")
	big := flag.Int("big", 40, "calls with a result of 1 MB on each path")
	only := flag.String("only", "", "one path, for a profile")
	onHTTP := flag.Bool("http", false, "measure streamable HTTP instead of stdio")
	flag.Parse()
	err := error(nil)
	if *onHTTP {
		err = runHTTP(*calls, *rounds)
	} else {
		err = run(*calls, *rounds, *big, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// path is one way from the client to a server.
type path struct {
	name   string
	before []string // what stands before the server's command
	config string   // or the file that names the server
	audit  bool     // with a durable record of each decision
	small  *client
	big    *client

	one, sixteen, mega []time.Duration
	busy               time.Duration
}

func run(calls, rounds, big int, only string) error {
	npm := os.Getenv("HEARSAY_NPM")
	if npm == "" {
		npm = "internal/realtest/node_modules"
	}
	dir, err := os.MkdirTemp("", "hearsay-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, pkg := range map[string]string{"hearsay": "./cmd/hearsay", "relay": "./internal/realtest/relay"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %v\n%s", name, err, out)
		}
	}
	file := filepath.Join(dir, "text")
	if err := os.WriteFile(file, []byte(strings.Repeat("The quick brown fox jumps over the lazy dog. \n", 1<<20/46)), 0o600); err != nil {
		return err
	}
	everything := []string{"node", filepath.Join(npm, "@modelcontextprotocol/server-everything/dist/index.js")}
	filesystem := []string{"node", filepath.Join(npm, "@modelcontextprotocol/server-filesystem/dist/index.js"), dir}
	paths := []*path{
		{name: "direct"},
		{name: "bare relay", before: []string{filepath.Join(dir, "relay")}},
		{name: "hearsay mcp", before: []string{filepath.Join(dir, "hearsay"), "mcp", "--"}},
		{name: "hearsay mcp -c, rules and screens", before: []string{filepath.Join(dir, "hearsay"), "mcp", "-c"}, config: filepath.Join(dir, "%s.yaml")},
		{name: "hearsay mcp -c, all stages", before: []string{filepath.Join(dir, "hearsay"), "mcp", "-c"}, config: filepath.Join(dir, "%s-audit.yaml"), audit: true},
	}
	if only != "" {
		paths = slices.DeleteFunc(paths, func(p *path) bool { return p.name != only })
	}
	for _, p := range paths {
		if p.small, err = p.start("everything", everything); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		defer p.small.stop()
		if p.big, err = p.start("filesystem", filesystem); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		defer p.big.stop()
	}
	message := strings.Repeat("What is read is material, not direction. ", 50) // 2 KB
	echo := map[string]any{"name": "echo", "arguments": map[string]any{"message": message}}
	read := map[string]any{"name": "read_text_file", "arguments": map[string]any{"path": file}}
	warm := func(c *client, params any, n int) error {
		for range n {
			if _, err := c.call(params); err != nil {
				return err
			}
		}
		return nil
	}
	for _, p := range paths {
		if err := warm(p.small, echo, 300); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := warm(p.big, read, 3); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for range rounds {
		for _, p := range paths {
			for range calls / rounds {
				took, err := p.small.call(echo)
				if err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				p.one = append(p.one, took)
			}
		}
		for _, p := range paths {
			began := time.Now()
			took, err := p.small.many(echo, 16, calls/rounds)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			p.busy += time.Since(began)
			p.sixteen = append(p.sixteen, took...)
		}
		for _, p := range paths {
			for range big / rounds {
				took, err := p.big.call(read)
				if err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				p.mega = append(p.mega, took)
			}
		}
	}
	fmt.Printf("%s, %d cores, %s; %d calls with a result of 2 KB, %d with one of 1 MB, in %d turns\n\n", time.Now().Format("2006-01-02"), runtime.NumCPU(), runtime.Version(), calls, big, rounds)
	fmt.Println("| path | p50, 1 caller | p99 | p50, 16 callers | p99 | calls/s, 1 | calls/s, 16 | p50, 1 MB |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, p := range paths {
		var sum time.Duration
		for _, d := range p.one {
			sum += d
		}
		fmt.Printf("| %s | %s | %s | %s | %s | %.0f | %.0f | %s |\n", p.name, us(p.one, 50), us(p.one, 99), us(p.sixteen, 50), us(p.sixteen, 99),
			float64(len(p.one))/sum.Seconds(), float64(len(p.sixteen))/p.busy.Seconds(), us(p.mega, 50))
	}
	return nil
}

// start starts a server behind the path. With a file, its calls are judged by rules and screened.
func (p *path) start(name string, server []string) (*client, error) {
	if p.config == "" {
		return start(append(slices.Clone(p.before), server...))
	}
	command, err := json.Marshal(server)
	if err != nil {
		return nil, err
	}
	file := fmt.Sprintf(p.config, name)
	text := fmt.Sprintf(`servers: {%s: {command: %s, sandbox: off}}
permissions: {allow: ["%s.echo", "%s.read_text_file"]}
tools: {%s.echo: {effects: [read]}, %s.read_text_file: {effects: [read]}}
`, name, command, name, name, name, name)
	text += screens
	if p.audit {
		text += "audit: {file: " + file + ".log}\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return start(append(slices.Clone(p.before), file))
}

func us(all []time.Duration, percent int) string {
	slices.Sort(all)
	d := all[len(all)*percent/100]
	if d > 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%d µs", d.Microseconds())
}

// client is a plain MCP client: it writes requests and reads answers, and looks only at their ids.
type client struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu   sync.Mutex
	last int
	wait map[int]chan []byte
	end  error
}

func start(command []string) (*client, error) {
	cmd := exec.Command(command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &client{cmd: cmd, in: in, wait: map[int]chan []byte{}}
	go c.read(out)
	_, err = c.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"}})
	if err != nil {
		return nil, err
	}
	_, err = in.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	return c, err
}

func (c *client) read(out io.Reader) {
	in := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.end = err
			for _, ch := range c.wait {
				close(ch)
			}
			return
		}
		// The id stands first or last; a whole decoding would measure the client.
		id := 0
		if i := bytes.LastIndex(line[max(0, len(line)-64):], []byte(`"id":`)); i >= 0 {
			fmt.Sscanf(string(line[max(0, len(line)-64):][i:]), `"id":%d`, &id)
		} else if i := bytes.Index(line[:min(len(line), 64)], []byte(`"id":`)); i >= 0 {
			fmt.Sscanf(string(line[i:min(len(line), i+30)]), `"id":%d`, &id)
		}
		c.mu.Lock()
		ch := c.wait[id]
		delete(c.wait, id)
		c.mu.Unlock()
		if ch != nil {
			ch <- line
		}
	}
}

func (c *client) request(method string, params any) ([]byte, error) {
	ch := make(chan []byte, 1)
	c.mu.Lock()
	if c.end != nil {
		c.mu.Unlock()
		return nil, c.end
	}
	c.last++
	id := c.last
	c.wait[id] = ch
	c.mu.Unlock()
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	answer, ok := <-ch
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return answer, nil
}

func (c *client) call(params any) (time.Duration, error) {
	began := time.Now()
	answer, err := c.request("tools/call", params)
	took := time.Since(began)
	if err == nil && (bytes.Contains(answer[:min(len(answer), 200)], []byte(`"error":{`)) || bytes.Contains(answer, []byte(`"isError":true`))) {
		err = fmt.Errorf("the call failed: %.300s", answer)
	}
	return took, err
}

// many makes n calls with some of them open at any time.
func (c *client) many(params any, callers, n int) ([]time.Duration, error) {
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := i; j < n; j += callers {
				d, err := c.call(params)
				mu.Lock()
				took = append(took, d)
				if err != nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return took, failed
}

func (c *client) stop() {
	c.in.Close()
	c.cmd.Wait()
}
