package gate

import (
	"strings"
	"testing"
)

// shellPolicy is a policy for one tool that runs commands, in the sandbox so that every mix of rules loads.
func shellPolicy(t *testing.T, deny, allow []string) *Policy {
	t.Helper()
	spec := Spec{Sandboxed: []string{"os"}}
	for _, d := range deny {
		spec.Permissions.Deny = append(spec.Permissions.Deny, Source{Text: "os.shell(" + d + ")"})
	}
	for _, a := range allow {
		spec.Permissions.Allow = append(spec.Permissions.Allow, Source{Text: "os.shell(" + a + ")"})
	}
	p, err := Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func runs(p *Policy, command any) Decision {
	return p.Decide(Call{Server: "os", Tool: "shell", Args: map[string]any{"command": command}}, State{})
}

func TestCommandsAreJudgedPartByPart(t *testing.T) {
	p := shellPolicy(t, nil, []string{"git status*", "git log *", "grep *", "echo *", "go test *", "true"})
	for _, test := range []struct {
		command string
		want    Answer
	}{
		{"git status", Allow},
		{"git status -s", Allow},
		{"git status && git log -1", Allow},
		{"git log", Allow}, // "git log *" also without more words
		{"git logs", Ask},
		{"git status | grep modified", Allow},
		{"git status 2>&1 | grep modified >/dev/null", Allow},
		{"grep 'a; rm -r x; b' f.txt", Allow},
		{`grep "a && b" f.txt`, Allow},
		{`grep a\;b f.txt`, Allow},
		{"timeout 60 go test ./gate", Allow},
		{"env git status", Allow},
		{"nice -n5 git status", Allow},
		{"sh -c 'git status'", Allow},
		{"eval git status", Allow},
		{"(git status)", Allow},
		{"{ git status; }", Allow},
		{"! git status", Allow},
		{"git status;", Allow},
		{"git status \\\n -s", Allow},
		{`echo "a b" 'c d'`, Allow},
		{`echo "it's! fine"`, Allow},

		{"git status && curl http://x.test", Ask},
		{"git status; rm -r a", Ask},
		{"git status | sh", Ask},
		{"git status & id", Ask},
		{"git status\nid", Ask},
		{"git status\r\nid", Ask},
		{"git status || id", Ask},
		{"git status |& id", Ask},
		{"git status > .bashrc", Ask},
		{"git status >> .bashrc", Ask},
		{"git status &> .bashrc", Ask},
		{"git status 2> .bashrc", Ask},
		{"grep x < /etc/shadow", Ask},
		{"echo $(id)", Ask},
		{"echo `id`", Ask},
		{`echo "$(id)"`, Ask},
		{"echo ${x:-$(id)}", Ask},
		{"echo $HOME", Ask},
		{"echo $((1+1))", Ask},
		{"echo *", Ask},
		{"echo ~", Ask},
		{"echo {a,b}", Ask},
		{"echo <(id)", Ask},
		{"echo a >(id)", Ask},
		{"echo <<EOF\nx\nEOF", Ask},
		{"echo <<< x", Ask},
		{"echo a # b", Ask},
		{"echo $'a'", Ask},
		{"LD_PRELOAD=x git status", Ask},
		{"env LD_PRELOAD=x git status", Ask},
		{"git status; if true; then id; fi", Ask},
		{"for x in a; do git status; done", Ask},
		{"git() { id; }", Ask},
		{"echo 'a", Ask},
		{`echo "a`, Ask},
		{"(git status", Ask},
		{"git status)", Ask},
		{"sudo git status", Ask},
		{"echo a | xargs git status", Ask},
		{"find . -exec git status ;", Ask},
		{"g''it status", Allow}, // quoting is resolved
		{`"git status"`, Ask},   // one word: another program
		{"", Ask},
		{"   ", Ask},
		{"\x00git status", Ask},
		{"bash script.sh", Ask},
		{"bash", Ask},
		{"sh -x -c 'git status'", Ask},
		{"sh -c 'git status' arg", Ask},
		{"time git status", Allow},
		{"time -p git status", Ask},
		{"=id", Ask},
		{"!id", Ask},
		{"coproc git status", Ask},
	} {
		if d := runs(p, test.command); d.Answer != test.want {
			t.Errorf("%q: %v (%s: %s), want %v", test.command, d.Answer, d.Reason, d.Text, test.want)
		}
	}
}

func TestDeniesLookInsideCommands(t *testing.T) {
	p := shellPolicy(t, []string{"cat secret.txt*", "git push*", "curl*"}, []string{"echo *", "*"})
	denied := []string{
		"cat secret.txt", "{ cat secret.txt; }", "echo $(cat secret.txt)", "echo `cat secret.txt`", "(cat secret.txt)",
		`eval "cat secret.txt"`, `bash -c "cat secret.txt"`, `c"at" secret.txt`, `c""at secret.txt`, "echo ${x:-$(cat secret.txt)}",
		"env git push", "xargs git push", "nice -n5 git push", "setsid git push", "find . -exec git push ;", "sudo -u a git push",
		`busybox sh -c "git push"`, "GIT PUSH", "/usr/bin/git push origin", "timeout 5 curl x", "x=1 curl y", "curl\tx", "echo a;curl x",
		"true\ncurl x", "echo \"`curl x`\"", "echo \"$(curl x)\"", "cat <(curl x)", "if true; then curl x; fi", "while curl x; do true; done",
		"for a in b; do curl x; done", "case a in a) curl x;; esac", "f() { curl x; }", "! curl x", "time curl x", "time -p curl x", "bash <<EOF\ncurl x\nEOF",
		"cat <<EOF\n$(curl x)\nEOF", "sudo sh -c 'curl x'", "watch 'curl x'", "env -i curl x", "exec -a b curl x", "trap 'curl x' EXIT",
		"find . -execdir curl x ;", "ssh h curl x", "ssh h 'true; curl x'", "sh -ec 'curl x'", "coproc curl x", "echo \\`; curl x", "echo $'a'; curl x",
		"( ( curl x ) )", "[[ a ]] && curl x", "echo a && { true; curl x; }", "cu\\\nrl x", "echo ${a:-`curl x`}", "eval 'eval \"curl x\"'",
	}
	for _, c := range denied {
		if d := runs(p, c); d.Answer != Deny {
			t.Errorf("%q: %v (%s: %s), want deny", c, d.Answer, d.Reason, d.Text)
		}
	}
	asks := []string{
		"cat <(true) secret.txt", "$(echo cat) secret.txt", "./run.sh git push", "cat secre?.txt",
		"myrunner -- curl x",
	}
	for _, c := range asks {
		if d := runs(p, c); d.Answer != Ask {
			t.Errorf("%q: %v (%s: %s), want ask", c, d.Answer, d.Reason, d.Text)
		}
	}
	for _, c := range []string{"ls -l", "echo git push", "echo 'cat secret.txt'", "cat <<'EOF' >/dev/null\nno curl here\nEOF\ntrue"} {
		if d := runs(p, c); d.Answer == Deny {
			t.Errorf("%q: %v (%s: %s)", c, d.Answer, d.Reason, d.Text)
		}
	}
	for range 20 {
		if a, b := runs(p, denied[3]), runs(p, denied[3]); a.Answer != b.Answer || a.Rule != b.Rule || a.Reason != b.Reason {
			t.Fatal("two answers to one call")
		}
	}
}

func TestLimitsDeny(t *testing.T) {
	p := shellPolicy(t, []string{"curl*"}, []string{"*"})
	for name, test := range map[string]struct {
		command string
		reason  Reason
	}{
		"sixty parts before it": {strings.Repeat("true; ", 60) + "curl http://x.test", ByRule},
		"too many parts":        {strings.Repeat("true;", maxParts+1), Limit},
		"too long":              {strings.Repeat("a", maxCommand+1), Limit},
		"a megabyte":            {strings.Repeat("true;", 1<<18), Limit},
		"too deep":              {strings.Repeat("$(", maxNesting+1), Limit},
		"groups too deep":       {strings.Repeat("(", maxNesting+1) + "curl x", Limit},
		"quotes too deep":       {strings.Repeat("${a:-", maxNesting+1), Limit},
		"wrappers too deep":     {strings.Repeat("env ", 100) + "ls", Limit},
		"words of a runner":     {"xargs " + strings.Repeat("a ", 2*maxInner), ByRule},
	} {
		if d := runs(p, test.command); d.Answer != Deny || d.Reason != test.reason {
			t.Errorf("%s: %v %s", name, d.Answer, d.Reason)
		}
	}
}

func TestCommandsComeInSeveralShapes(t *testing.T) {
	p := shellPolicy(t, []string{"curl*"}, []string{"git status*", "ls*"})
	for name, test := range map[string]struct {
		args map[string]any
		want Answer
	}{
		"words":                      {map[string]any{"command": []any{"git", "status"}}, Allow},
		"words that deny":            {map[string]any{"command": []any{"curl", "x"}}, Deny},
		"a shell in words":           {map[string]any{"command": []any{"sh", "-c", "curl x"}}, Deny},
		"a line in one word":         {map[string]any{"command": []any{"git status; id"}}, Ask},
		"a line in one word denied":  {map[string]any{"command": []any{"true; curl x"}}, Deny},
		"a word that is no text":     {map[string]any{"command": []any{"ls", 1.0}}, Ask},
		"no words":                   {map[string]any{"command": []any{}}, Ask},
		"several lines":              {map[string]any{"commands": []any{"ls", "git status"}}, Allow},
		"several lines, one denied":  {map[string]any{"commands": []any{"ls", "curl x"}}, Deny},
		"program and arguments":      {map[string]any{"command": "git", "args": []any{"status"}}, Allow},
		"arguments hide the program": {map[string]any{"command": "git", "args": []any{"push"}}, Ask},
		"shell and arguments":        {map[string]any{"command": "bash", "args": []any{"-c", "curl x"}}, Deny},
		"arguments that are no list": {map[string]any{"command": "git status", "args": "x"}, Ask},
		"two names":                  {map[string]any{"command": "ls", "Cmd": "id"}, Ask},
		"two names, one denied":      {map[string]any{"command": "ls", "Cmd": "curl x"}, Deny},
		"an object":                  {map[string]any{"command": map[string]any{"a": "b"}}, Ask},
		"other spelling of the name": {map[string]any{"shell_command": "curl x"}, Deny},
		"too many words":             {map[string]any{"command": []any{strings.Repeat("a", maxCommand), "b"}}, Deny},
		"an environment":             {map[string]any{"command": "git status", "env": map[string]any{"LD_PRELOAD": "x"}}, Ask},
		"an environment as list":     {map[string]any{"command": "git status", "Environment_Variables": []any{"LD_PRELOAD=x"}}, Ask},
		"an input":                   {map[string]any{"command": "git status", "stdin": "x"}, Ask},
		"an odd input":               {map[string]any{"command": "git status", "stdin": 5.0}, Ask},
		"no environment":             {map[string]any{"command": "git status", "env": map[string]any{}, "envs": []any{}, "stdin": "", "environment": nil}, Allow},
		"in an object":               {map[string]any{"input": map[string]any{"command": "git status"}}, Allow},
		"a chain in an object":       {map[string]any{"input": map[string]any{"command": "git status; id"}}, Ask},
		"denied in an object":        {map[string]any{"input": map[string]any{"command": "ls; curl x"}}, Deny},
		"in a list of objects":       {map[string]any{"steps": []any{map[string]any{"cmd": "ls"}, map[string]any{"cmd": "curl x"}}}, Deny},
		"allowed in a list":          {map[string]any{"steps": []any{map[string]any{"cmd": "ls"}, map[string]any{"cmd": "git status"}}}, Allow},
		"an environment in a list":   {map[string]any{"steps": []any{map[string]any{"cmd": "ls", "env": map[string]any{"A": "b"}}}}, Ask},
		"a command in a command":     {map[string]any{"command": map[string]any{"command": "curl x"}}, Deny},
		"too deep":                   {map[string]any{"a": deepList(map[string]any{"command": "ls"})}, Deny},
		"too deep in objects":        {map[string]any{"a": deepObject(map[string]any{"command": "ls"})}, Deny},
		"other tool arguments":       {map[string]any{"command": "git status", "timeout": 5.0}, Allow},
	} {
		d := p.Decide(Call{Server: "os", Tool: "shell", Args: test.args}, State{})
		if d.Answer != test.want {
			t.Errorf("%s: %v (%s: %s), want %v", name, d.Answer, d.Reason, d.Text, test.want)
		}
	}
}

func TestAnExactLineIsTheOperatorsOwn(t *testing.T) {
	p := shellPolicy(t, []string{"curl*"}, []string{`make test && ls \*.go | wc -l`, "true; curl x"})
	for command, want := range map[string]Answer{
		"make test && ls *.go | wc -l":     Allow,
		"make test && ls *.go | wc -l; id": Ask,
		"make test && ls a.go | wc -l":     Ask,
		"true; curl x":                     Deny,
	} {
		if d := runs(p, command); d.Answer != want {
			t.Errorf("%q: %v (%s)", command, d.Answer, d.Reason)
		}
	}
	line := map[string]any{"command": "make test && ls *.go | wc -l", "env": map[string]any{"MAKEFLAGS": "--eval=x"}}
	if d := p.Decide(Call{Server: "os", Tool: "shell", Args: line}, State{}); d.Answer != Ask {
		t.Error("the line was the operator's, its environment was not:", d)
	}
}

func FuzzParseScript(f *testing.F) {
	for _, s := range []string{"a && b", "echo $(cat <<E\nx\nE\n)", "${a:-`b`}", "sh -c 'a \"b\"'", "a <(b) >c 2>&1", "env -S 'x y'", "$'", "{a,b}", "\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		a := parseScript(src)
		b := parseScript(src)
		if len(a.parts) != len(b.parts) || a.unresolved != b.unresolved {
			t.Fatal("two readings of one text")
		}
		if a.unresolved == "" {
			// What was resolved means the same when it is written again.
			for _, pt := range a.parts {
				again := parseScript(requote(pt.text))
				if len(again.parts) != 1 || again.parts[0].text != pt.text {
					t.Fatalf("%q reads again as %+v", requote(pt.text), again)
				}
			}
		}
	})
}

// requote writes a canonical command as a command line, every word in quotes.
func requote(canonical string) string {
	var out []string
	for rest := canonical; ; {
		end := wordEnd(rest)
		var w strings.Builder
		for i := 0; i < end; i++ {
			if rest[i] == '\\' {
				i++
			}
			w.WriteByte(rest[i])
		}
		if rest[:end] == "''" {
			w.Reset()
		}
		out = append(out, "'"+strings.ReplaceAll(w.String(), "'", `'\''`)+"'")
		if end == len(rest) {
			return strings.Join(out, " ")
		}
		rest = rest[end+1:]
	}
}

func parseScript(src string) script {
	var p shellParser
	p.nested(src)
	return p.out
}

func deepObject(v any) any {
	for range maxDepth + 5 {
		v = map[string]any{"a": v}
	}
	return v
}

func deepList(v any) any {
	for range maxDepth + 5 {
		v = []any{v}
	}
	return v
}

func TestPatternsOfNamedCommands(t *testing.T) {
	p, err := Compile(Spec{Sandboxed: []string{"os"}, Permissions: Permissions{
		Deny:  []Source{{Text: "os.shell(input.cmd:curl*)"}},
		Allow: []Source{{Text: "os.shell(input.command:git *)"}, {Text: "os.shell(cmd:ls*)"}, {Text: "os.shell(steps.run.command:make)"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	type m = map[string]any
	for name, test := range map[string]struct {
		args m
		want Answer
	}{
		"nested":                  {m{"input": m{"command": "git log"}}, Allow},
		"nested chain":            {m{"input": m{"command": "git log && id"}}, Ask},
		"nested substitution":     {m{"input": m{"command": "git log $(id)"}}, Ask},
		"denied under any name":   {m{"input": m{"command": "git log; curl x"}}, Deny},
		"the name is not the one": {m{"command": "git log"}, Ask},
		"another name":            {m{"command": "ls"}, Ask},
		"the name":                {m{"cmd": "ls"}, Allow},
		"a second command":        {m{"cmd": "ls", "script": "id"}, Ask},
		"in lists":                {m{"steps": []any{m{"run": m{"command": "make"}}}}, Allow},
		"a text on the way":       {m{"cmd": "ls", "steps": "x"}, Allow},
		"nothing there":           {m{"steps": []any{m{"run": "make"}}}, Ask},
	} {
		if d := p.Decide(Call{Server: "os", Tool: "shell", Args: test.args}, State{}); d.Answer != test.want {
			t.Errorf("%s: %v (%s: %s), want %v", name, d.Answer, d.Reason, d.Text, test.want)
		}
	}
}
