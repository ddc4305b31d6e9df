package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-4e9f7b04/hearsay/gate"
)

func look(args map[string]any) map[string]string {
	found := pathsIn(args)
	resolvePaths(found, resolvePath)
	return found
}

func TestPathsAreFollowedAsTheKernelWould(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, d := range []string{in, filepath.Join(out, "deep")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"away": filepath.Join(out, "deep"), "loop": filepath.Join(in, "loop"), "dangling": filepath.Join(out, "nothing")} {
		if err := os.Symlink(to, filepath.Join(in, link)); err != nil {
			t.Fatal(err)
		}
	}
	for p, want := range map[string]string{
		in:                       in,
		in + "/new":              in + "/new",
		in + "/new/sub/":         in + "/new/sub",
		in + "/away":             out + "/deep",
		in + "/away/new":         out + "/deep/new",
		in + "/away/..":          out,
		in + "/away/../in":       out + "/in",
		in + "/new/../../out":    "",
		in + "/dangling":         "",
		in + "/dangling/x":       "",
		in + "/loop":             "",
		in + "/loop/x":           "",
		in + "/a\x00b":           "",
		"/":                      "/",
		"/no-such-folder-here/x": "/no-such-folder-here/x",
	} {
		if got := look(map[string]any{"a": []any{map[string]any{"b": p}}})[p]; got != want {
			t.Errorf("%q: %q, want %q", p, got, want)
		}
	}
	if got := look(map[string]any{"a": "relative", "n": 1.0}); len(got) != 0 {
		t.Error(got)
	}
	many := map[string]any{}
	for i := range maxPaths + 10 {
		many[fmt.Sprint(i)] = fmt.Sprintf("%s/%d", in, i)
	}
	none := 0
	for _, to := range look(many) {
		if to == "" {
			none++
		}
	}
	if none != 10 {
		t.Error(none, "paths were not looked up")
	}
}

func TestALinkLeadsOutOfTheFolder(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]gate.Spec{
		"a condition": {Rules: []gate.Rule{{Answer: gate.Allow, Tool: gate.Source{Text: "srv.send"}, When: gate.Source{Text: fmt.Sprintf("within(args.to, %q)", dir)}}}},
		"a pattern":   {Permissions: gate.Permissions{Allow: []gate.Source{{Text: "srv.send(to:" + dir + "/**)"}}}},
	} {
		policy, err := gate.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, Options{Policy: policy, Launch: launcher(nil, mailServer)})
		r.ask(sayHello)
		for i, test := range []struct {
			path string
			want bool
		}{{dir + "/file", true}, {dir + "/link/passwd", false}, {dir + "/../x", false}} {
			if passed(r, i+1, "send", test.path) != test.want {
				t.Errorf("%s: %s: passed %v", name, test.path, !test.want)
			}
		}
	}
}

// A path on a disk that does not answer holds up its own call alone.
func TestASlowDiskHoldsUpNobodyElse(t *testing.T) {
	policy, err := gate.Compile(gate.Spec{Permissions: gate.Permissions{Allow: []gate.Source{{Text: "srv.send(to:/far/**)"}, {Text: "srv.read"}}},
		Tools: []gate.ToolSpec{{Labels: gate.ToolLabels{Server: "srv", Tool: "read", Effects: gate.Read}}}})
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan struct{})
	r := newRig(t, Options{Policy: policy, Launch: launcher(nil, mailServer)}, func(g *Gateway) {
		g.lookFor = time.Millisecond
		g.follow = func(p string) string {
			<-answers
			return p
		}
	})
	r.ask(sayHello)
	r.send(fmt.Sprintf(sendMail, 1, "send", "/far/file"))
	if got := string(r.ask(fmt.Sprintf(readMail, 2)).Append(nil)); !strings.Contains(got, "done") {
		t.Errorf("another call: %s", got)
	}
	close(answers)
	if got := r.next(); !strings.Contains(got, `"id":1`) {
		t.Errorf("the call itself: %s", got)
	}
}
