package gate

import (
	"errors"
	"testing"

	"cel.dev/cel-go/common/types"
)

func TestCornersOfShells(t *testing.T) {
	p := shellPolicy(t, []string{"curl*"}, []string{"echo *", "ls", `printf "a b" *`, `test ""`, `say 'a b'`, "time-it**"})
	for command, want := range map[string]Answer{
		`printf "a b" c`:                       Allow,
		`printf 'a b'`:                         Allow,
		"printf a b":                           Ask,
		`test ''`:                              Allow,
		`test`:                                 Ask,
		`say 'a b'`:                            Allow,
		`say "a\ b"`:                           Ask, // in double quotes the backslash stays
		`echo "a\"b\\c\$d"`:                    Allow,
		"echo \"a\\\nb\"":                      Allow,
		`echo "a\`:                             Ask,
		"echo \"$\\\n(curl x)\"":               Ask,
		"echo a | time ls":                     Ask,
		"echo a |& ls":                         Allow,
		"echo a | ! ls":                        Ask,
		`echo "!x"`:                            Ask,
		`echo $`:                               Allow,
		`echo "$ "`:                            Allow,
		`echo a$`:                              Allow,
		"echo $[1+1]":                          Ask,
		"echo $1":                              Ask,
		"echo $?":                              Ask,
		`echo $"a"`:                            Ask,
		"echo a # b\ncurl x":                   Deny,
		"echo a # it's\nls":                    Ask,
		"echo a >":                             Ask,
		"echo a > ;curl x":                     Deny,
		"echo a >b":                            Ask,
		"echo a>b":                             Ask,
		"cat <<-EOF\n\tcurl x\n\tEOF\nls":      Ask,
		"bash <<-EOF\n\tcurl x\n\tEOF\nls":     Deny,
		"cat <<EOF\n\\$(curl x) `curl x`\nEOF": Deny,
		"cat <<EOF\n\\$(curl x)\nEOF":          Ask,
		"cat <<EOF\n$HOME ${a}\nEOF":           Ask,
		"echo ${a\\}b}; curl x":                Deny,
		"echo ${a:-<(curl x)}":                 Deny,
		"echo ${a<b}":                          Ask,
		"echo ${a":                             Ask,
		"echo ${a:-$(ls)`curl x`}":             Deny,
		"echo `echo \\`curl x\\``":             Deny,
		"echo `ls":                             Ask,
		"a+=b echo x":                          Ask,
		"a[0]=b echo x":                        Ask,
		"a[0] x":                               Ask,
		"+=b":                                  Ask,
		"FOO=bar":                              Ask,
		"nice -n 5 ls":                         Allow,
		"nice -n5 ls":                          Allow,
		"nice --adjustment=5 ls":               Ask,
		"timeout 5 ls":                         Allow,
		"timeout -k 1 5 ls":                    Allow,
		"timeout -s KILL 5 ls":                 Allow,
		"timeout":                              Ask,
		"timeout 5":                            Ask,
		"nohup $x":                             Ask,
		"env A=b ls":                           Ask,
		"env - ls":                             Ask,
		"sh":                                   Ask,
		"sh -":                                 Ask,
		"sh -i":                                Ask,
		"sh $x":                                Ask,
		"sh --posix -c ls":                     Ask,
		"sh -c":                                Ask,
		"eval $x":                              Ask,
		"eval":                                 Ask,
		"busybox ls":                           Allow,
		"- ls":                                 Ask,
		"-p ls":                                Ask,
		"<(ls)":                                Ask,
		"echo a{b":                             Ask,
		"echo {}":                              Allow,
		"echo [":                               Allow,
		"echo [a":                              Ask,
		"echo a=~/b":                           Ask,
		"echo a:~":                             Ask,
		"echo a~":                              Allow,
		"echo a=b":                             Allow,
		"echo \x7f":                            Ask,
		"time-it now":                          Allow,
		"echo a 2>&1":                          Allow,
		"echo a 2>&-":                          Allow,
		"echo a >&b":                           Ask,
		"ls <>/dev/null":                       Ask,
		"ls </dev/null":                        Allow,
		"1&>x ls":                              Ask,
		"find . -name curl":                    Ask,
		"find . -ok curl x ;":                  Deny,
	} {
		if d := runs(p, command); d.Answer != want {
			t.Errorf("%q: %v (%s: %s), want %v", command, d.Answer, d.Reason, d.Text, want)
		}
	}
}

func TestCommandsByTheOperatorsWord(t *testing.T) {
	spec := Spec{
		Tools:       []ToolSpec{{Labels: ToolLabels{Server: "pty", Tool: "send"}, Commands: []string{"input"}}},
		Known:       []ToolDef{{Server: "pty", Name: "send", InputSchema: args{"properties": args{"input": args{"type": "string"}, "id": args{"type": "string"}}}}},
		Permissions: Permissions{Deny: src("pty.send(input:curl*)", "pty.send(id:x)"), Allow: src("pty.send(ls *)")},
	}
	p := compile(t, spec)
	for name, test := range map[string]struct {
		args args
		want Answer
	}{
		"allowed":        {args{"input": "ls -l", "id": "1"}, Allow},
		"chain":          {args{"input": "ls -l; id", "id": "1"}, Ask},
		"denied inside":  {args{"input": "ls; curl x", "id": "1"}, Deny},
		"other argument": {args{"input": "ls", "id": "x"}, Deny},
		"none":           {args{"id": "1"}, Ask},
	} {
		if d := p.Decide(call("pty.send", test.args), State{}); d.Answer != test.want {
			t.Errorf("%s: %v (%s)", name, d.Answer, d.Reason)
		}
	}
	// A program the rule does not spell out may run what another rule denies; one that is spelt out is the operator's word.
	p = compile(t, Spec{Sandboxed: []string{"os"}, Permissions: Permissions{Deny: src("os.shell(curl*)", "os.shell(cwd:/x)"), Allow: src("os.shell(*)")}})
	if d := runs(p, "runner curl x"); d.Answer != Ask {
		t.Error(d)
	}
	if d := runs(p, "runner x"); d.Answer != Allow {
		t.Error(d)
	}
	// A tool that is allowed whole is still guarded by what is denied by text.
	p = compile(t, Spec{Sandboxed: []string{"os"}, Permissions: Permissions{Deny: src("os.shell(curl*)"), Allow: src("os.shell")}})
	for command, want := range map[string]Answer{
		"ls; true": Allow, "curl x": Deny, "runner curl x": Ask, "$x curl": Ask, "$x y": Ask, "echo $(ls)": Ask, "echo $HOME": Ask, "echo > x": Ask,
	} {
		if d := runs(p, command); d.Answer != want {
			t.Errorf("%q: %v (%s)", command, d.Answer, d.Reason)
		}
	}
	// Rules about other tools of the server guard nothing here.
	p = compile(t, Spec{Sandboxed: []string{"os"}, Permissions: Permissions{Deny: src("os.shell(curl*)", "os.stop", "os.e*(git push*)"), Ask: src("os.sh*(cwd:x)"), Allow: src("os.r*", "os.e*(*)")}})
	for tool, command := range map[string]string{"run": "$x", "exec": "runner curl x"} {
		if d := p.Decide(Call{Server: "os", Tool: tool, Args: args{"command": command}}, State{}); d.Answer != Allow {
			t.Errorf("%s: %v (%s)", tool, d.Answer, d.Reason)
		}
	}
	if isCommandName("a-name-that-is-much-longer-than-any-of-them") {
		t.Error("a long name")
	}
}

func TestRulesOfOneServerForToolsNobodyNamed(t *testing.T) {
	p := compile(t, Spec{Permissions: Permissions{Deny: src("a.x*", "*.y*"), Allow: src("a.z*")}})
	for tool, want := range map[string]Answer{"a.x1": Deny, "a.y1": Deny, "a.z1": Allow, "a.w": Ask, "b.y": Deny, "b.z1": Ask} {
		if d := p.Decide(call(tool, nil), State{}); d.Answer != want {
			t.Errorf("%s: %v", tool, d)
		}
	}
	if v := p.Labels("a", "z1"); v.Effects != 0 {
		t.Error(v)
	}
}

func TestDenyLooksIntoObjects(t *testing.T) {
	p := compile(t, deny("s.t(a:x)"))
	for _, a := range []any{args{"b": "x"}, args{"b": args{"c": []any{"y", "x"}}}} {
		if d := p.Decide(call("s.t", args{"a": a}), State{}); d.Answer != Deny {
			t.Error(a, d)
		}
	}
	if d := p.Decide(call("s.t", args{"a": args{"b": "y"}}), State{}); d.Answer == Deny {
		t.Error(d)
	}
}

func TestEncodings(t *testing.T) {
	for s, want := range map[string]bool{"a%2e": false, "a%2E": false, "a%5C": false, "a%00": false, "a%7f": false, "a%41": true, "a%zz": true, "a%4": true, "a%": true, "a\\": false, "a\x7f": false, "é": true} {
		if plainText(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
	for s, want := range map[string]string{"%41%4a%4A": "AJJ", "%4": "%4", "%zz": "%zz", "%": "%", "a": "a"} {
		if got := percentDecode(s); got != want {
			t.Errorf("%q: %q", s, got)
		}
	}
}

// A call and its session are opaque to conditions: nothing can be read from them but what is declared.
func TestOpaqueValues(t *testing.T) {
	e := &evaluation{}
	if v, ok := e.ResolveName("other"); ok {
		t.Error(v)
	}
	if e.Value() != any(e) || e.Equal(e) != types.False || !types.IsError(e.ConvertToType(types.StringType)) {
		t.Error("not opaque")
	}
	if _, err := e.ConvertToNative(nil); err == nil {
		t.Error("not opaque")
	}
	s := newSchemaTypes([]ToolDef{{InputSchema: args{"properties": args{"a": args{"type": "string"}}}}})
	tainted, _ := s.FindStructFieldType(sessionType, "tainted")
	if _, err := tainted.GetFrom("x"); err == nil || !tainted.IsSet("x") {
		t.Error("a session that is none")
	}
	if names, ok := s.FindStructFieldNames(sessionType); !ok || len(names) != 2 {
		t.Error(names)
	}
	if _, ok := s.FindStructFieldNames("other"); ok {
		t.Error("a type of nobody")
	}
	if _, ok := s.FindStructFieldType("other", "x"); ok {
		t.Error("a field of nobody")
	}
	defer func() {
		if recover() == nil {
			t.Error("an error of this package's own was passed over")
		}
	}()
	must(0, errors.New("x"))
}
