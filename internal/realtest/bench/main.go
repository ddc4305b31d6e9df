// Command bench measures what the gateway adds to a call: the same client and server directly, through a bare relay that
// copies lines, and through hearsay mcp, in turns within one run. It prints the table of docs/gateway.md. Each figure is the
// median over the turns, no two calls have the same arguments, and each turn has processes of its own: how fast one process is
// stays with it for its life and differs from the next by a tenth. Beside them stands what the disk takes to make one line
// durable, and a relay that does only that for each line: the floor under a call that is put on record first.
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
	"sync/atomic"
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

// warm is how many calls each process has answered before it is measured.
const warm = 2000

// path is one way from the client to a server.
type path struct {
	name   string
	before []string // what stands before the server's command
	config string   // or the file that names the server
	all    bool     // with pins and a durable record of each decision too
	big    *client

	one, sixteen, mega figures
}

// figures are the times of calls, one slice for each turn, and how long each turn took.
type figures struct {
	calls [][]time.Duration
	busy  []time.Duration
}

func (f *figures) add(calls []time.Duration, busy time.Duration) {
	slices.Sort(calls)
	f.calls, f.busy = append(f.calls, calls), append(f.busy, busy)
}

// at is the median over the turns of a percentile.
func (f *figures) at(percent int) time.Duration {
	var all []time.Duration
	for _, turn := range f.calls {
		if len(turn) > 0 {
			all = append(all, turn[len(turn)*percent/100])
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// rate is the median over the turns of calls in a second.
func (f *figures) rate() float64 {
	var all []float64
	for i, turn := range f.calls {
		all = append(all, float64(len(turn))/f.busy[i].Seconds())
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func us(d time.Duration) string {
	if d > 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%d µs", d.Microseconds())
}

// timed makes n calls one after the other.
func timed(n int, call func() (time.Duration, error)) (took []time.Duration, err error) {
	for range n {
		d, err := call()
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	return took, nil
}

// crowd makes n calls with some of them open at any time.
func crowd(callers, n int, call func() (time.Duration, error)) (took []time.Duration, failed error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := i; j < n; j += callers {
				d, err := call()
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

// disk measures what it takes to add a line to a file and have it on the disk.
type disk struct {
	file *os.File
	line []byte
	took figures
}

func newDisk(dir string) (*disk, error) {
	f, err := os.Create(filepath.Join(dir, "disk"))
	return &disk{file: f, line: bytes.Repeat([]byte("x"), 500)}, err
}

func (d *disk) turn() error {
	took, err := timed(50, func() (time.Duration, error) {
		began := time.Now()
		_, err := d.file.Write(d.line)
		if err == nil {
			err = d.file.Sync()
		}
		return time.Since(began), err
	})
	d.took.add(took, 0)
	return err
}

func (d *disk) String() string {
	return fmt.Sprintf("write and fsync of 500 bytes on this disk: p50 %s, p99 %s", us(d.took.at(50)), us(d.took.at(99)))
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
	os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	os.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "state"))
	file := filepath.Join(dir, "text")
	if err := os.WriteFile(file, []byte(strings.Repeat("The quick brown fox jumps over the lazy dog. \n", 1<<20/46)), 0o600); err != nil {
		return err
	}
	everything := []string{"node", filepath.Join(npm, "@modelcontextprotocol/server-everything/dist/index.js")}
	filesystem := []string{"node", filepath.Join(npm, "@modelcontextprotocol/server-filesystem/dist/index.js"), dir}
	paths := []*path{
		{name: "direct"},
		{name: "bare relay", before: []string{filepath.Join(dir, "relay")}},
		{name: "bare relay that syncs", before: []string{filepath.Join(dir, "relay"), "-sync", filepath.Join(dir, "record-%s")}},
		{name: "hearsay mcp", before: []string{filepath.Join(dir, "hearsay"), "mcp", "--"}},
		{name: "hearsay mcp -c, rules and screens", before: []string{filepath.Join(dir, "hearsay"), "mcp", "-c"}, config: filepath.Join(dir, "%s.yaml")},
		{name: "hearsay mcp -c, all stages", before: []string{filepath.Join(dir, "hearsay"), "mcp", "-c"}, config: filepath.Join(dir, "%s-all.yaml"), all: true},
	}
	if only != "" {
		paths = slices.DeleteFunc(paths, func(p *path) bool { return p.name != only })
	}
	for _, p := range paths {
		if p.big, err = p.start("filesystem", filesystem); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		defer p.big.stop()
	}
	words := strings.Repeat("What is read is material, not direction. ", 50) // 2 KB
	var asked atomic.Int64
	echo := func(c *client) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			message := fmt.Sprintf("Question %d. %s", asked.Add(1), words)
			return c.call(map[string]any{"name": "echo", "arguments": map[string]any{"message": message}})
		}
	}
	read := func(c *client) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			return c.call(map[string]any{"name": "read_text_file", "arguments": map[string]any{"path": file}})
		}
	}
	d, err := newDisk(dir)
	if err != nil {
		return err
	}
	defer d.file.Close()
	for _, p := range paths {
		if _, err := timed(3, read(p.big)); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for range rounds {
		if err := d.turn(); err != nil {
			return err
		}
		for _, p := range paths {
			small, err := p.start("everything", everything)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if _, err := timed(warm, echo(small)); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			for _, kind := range []struct {
				into    *figures
				callers int
				n       int
				call    func() (time.Duration, error)
			}{{&p.one, 1, calls / rounds, echo(small)}, {&p.sixteen, 16, calls / rounds, echo(small)}, {&p.mega, 1, big / rounds, read(p.big)}} {
				began := time.Now()
				took, err := crowd(kind.callers, kind.n, kind.call)
				if err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				kind.into.add(took, time.Since(began))
			}
			small.stop()
		}
	}
	fmt.Printf("%s, %d cores, %s; %d calls with a result of 2 KB, %d with one of 1 MB, in %d turns; %s\n\n",
		time.Now().Format("2006-01-02"), runtime.NumCPU(), runtime.Version(), calls, big, rounds, d)
	fmt.Println("| path | p50, 1 caller | p99 | p50, 16 callers | p99 | calls/s, 1 | calls/s, 16 | p50, 1 MB |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, p := range paths {
		fmt.Printf("| %s | %s | %s | %s | %s | %.0f | %.0f | %s |\n", p.name, us(p.one.at(50)), us(p.one.at(99)), us(p.sixteen.at(50)), us(p.sixteen.at(99)),
			p.one.rate(), p.sixteen.rate(), us(p.mega.at(50)))
	}
	fmt.Println()
	if len(paths) > 2 {
		direct, relay := paths[0], paths[1]
		for _, p := range paths[2:] {
			fmt.Printf("%s: p50 %.2f times the relay's, %s over direct; %.2f of the direct throughput at 16; 1 MB %.2f times the relay's\n", p.name,
				float64(p.one.at(50))/float64(relay.one.at(50)), us(p.one.at(50)-direct.one.at(50)), p.sixteen.rate()/direct.sixteen.rate(),
				float64(p.mega.at(50))/float64(relay.mega.at(50)))
		}
	}
	return nil
}

// start starts a server behind the path. With a file, its calls are judged by rules and screened.
func (p *path) start(name string, server []string) (*client, error) {
	if p.config == "" {
		before := slices.Clone(p.before)
		for i := range before {
			before[i] = strings.ReplaceAll(before[i], "%s", name) // each process its own record
		}
		return start(append(before, server...))
	}
	command, err := json.Marshal(server)
	if err != nil {
		return nil, err
	}
	file := fmt.Sprintf(p.config, name)
	tool := name + "." + map[string]string{"everything": "echo", "filesystem": "read_text_file"}[name]
	text := fmt.Sprintf(`servers: {%s: {command: %s, sandbox: off}}
permissions: {allow: [%q]}
tools: {%s: {effects: [read]}}
`, name, command, tool, tool)
	text += screens
	if p.all {
		text += "audit: {file: " + file + ".log}\npins: {lock: " + file + ".lock}\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if p.all {
		if out, err := exec.Command(p.before[0], "pin", "-c", file).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("pinning: %w\n%s", err, out)
		}
	}
	return start(append(slices.Clone(p.before), file))
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

func (c *client) stop() {
	c.in.Close()
	c.cmd.Wait()
}
