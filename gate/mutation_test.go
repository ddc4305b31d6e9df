//go:build mutation

package gate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutations break one kind of rule or one bound each. A test must notice every one:
//
//	go test -tags mutation -run Mutations -timeout 30m ./gate
var mutations = []struct{ what, file, old, new string }{
	{"allow before deny", "decide.go", "	for _, r := range rs.deny {\n", "	if d := permit(&q); d.Answer == Allow {\n\t\treturn d\n\t}\n	for _, r := range rs.deny {\n"},
	{"ask rules are not asked", "decide.go", "range rs.ask {", "range rs.ask[:0] {"},
	{"deny rules are not asked", "decide.go", "range rs.deny {\n\t\tif", "range rs.deny[:0] {\n\t\tif"},
	{"the default allows", "decide.go", "Decision{Answer: Ask, Reason: NoRule", "Decision{Answer: Allow, Reason: NoRule"},
	{"a nil policy asks", "decide.go", "Decision{Answer: Deny, Reason: NoRule", "Decision{Answer: Ask, Reason: NoRule"},
	{"an error in a deny condition is quiet", "rules.go", "return holds || err != nil, err != nil", "return holds, err != nil"},
	{"an error in an allow condition allows", "rules.go", "err != nil || !holds", "err == nil && !holds"},
	{"rules follow a tool's name to another server", "compile.go", `(r.pat.server == "*" || r.pat.server == key.server) && r.about(key.tool)`, `r.about(key.tool)`},
	{"a tool's letter case passes a deny", "rules.go", "return r.tool.match(foldText(tool))", "return r.pat.tool.match(tool)"},
	{"a tool's letter case passes a deny of an unknown tool", "rules.go", "q.folded = foldText(c.Tool)", "q.folded = c.Tool"},
	{"a rule without server loads", "pattern.go", `return "", "", errNoServer`, `return "*", name, nil`},
	{"an allow of every server loads", "compile.go", `r.answer == Allow && r.pat.server == "*"`, `false`},
	{"a server's wildcard loads", "pattern.go", `case strings.Contains(server, "*"):`, `case false:`},
	{"allow ignores letter case", "pattern.go", "return s == v.text.lits[0]", "return strings.EqualFold(s, v.text.lits[0])"},
	{"deny minds letter case", "spelling.go", "	s = foldText(s)\n	if yield(s)", "	if yield(s)"},
	{"deny does not clean paths", "spelling.go", "	clean = path.Clean(clean)\n", "	clean = s\n"},
	{"deny does not decode", "spelling.go", "for range 3 {", "for range 0 {"},
	{"allow's star crosses slashes", "pattern.go", "newGlob(src, true); err != nil {\n\t\treturn v", "newGlob(src, false); err != nil {\n\t\treturn v"},
	{"allow's star takes steps up", "pattern.go", "return plainPath(s) && v.text.match(s)", "return v.text.match(s)"},
	{"allow's star takes encoded steps", "spelling.go", "splits(s[i+1], s[i+2])", "false"},
	{"a star in data is a wildcard", "glob.go", "lit.WriteByte(src[i])\n\t\tcase '*'", "g.lits = append(g.lits, lit.String())\n\t\t\tg.stars = append(g.stars, true)\n\t\t\tlit.Reset()\n\t\tcase '*'"},
	{"a link's host is text", "pattern.go", "return v.url.match(s)", "return v.text.match(s)"},
	{"a link's user name passes", "link.go", "return r != '.' && r != '-'", "return r != '@' && r != '.' && r != '-'"},
	{"allow by any element of a list", "leaves.go", "if !leafAllowed(sub, a, paths, depth+1) {\n\t\t\t\treturn false", "if leafAllowed(sub, a, paths, depth+1) {\n\t\t\t\treturn true"},
	{"allow of an empty list", "leaves.go", "		return len(list) > 0\n", "		return true\n"},
	{"deny by the first element of a list", "leaves.go", "	case []any:\n\t\tfor _, sub := range v {\n\t\t\tif leafDenied", "	case []any:\n\t\tfor _, sub := range v[:1] {\n\t\t\tif leafDenied"},
	{"a link leads out of an allowed folder", "leaves.go", "a.value.allows(text) && a.value.allowsReal(text, paths)", "a.value.allows(text)"},
	{"a link leads to what is denied", "leaves.go", `return known && (real == "" && a.value.pathLike() || a.value.denies(real))`, `return known && real == "" && a.value.pathLike()`},
	{"names of arguments mind case in a deny", "leaves.go", "foldText(k) == foldText(path[0])", "false"},
	{"allow with two spellings of a name", "leaves.go", "	if ambiguous(args, a.path[0]) {", "	if false {"},
	{"numbers are text", "leaves.go", "return a.value.number == canonicalNumber(text)", "return a.value.number == text"},
	{"a quoted number is a number", "leaves.go", "	case a.quoted:\n\t\treturn false\n", ""},
	{"deep values pass a deny", "leaves.go", "	if depth > maxDepth {\n\t\treturn true", "	if depth > maxDepth {\n\t\treturn false"},
	{"one part of a chain is enough", "decide.go", "		if r == nil {\n", "		if r == nil && i > 0 {\n\t\t\tcontinue\n\t\t}\n		if r == nil {\n"},
	{"what is not resolved is allowed", "decide.go", `case l.script.unresolved != "":`, `case false:`},
	{"an empty command is allowed", "decide.go", "case len(l.script.parts) == 0:", "case false:"},
	{"substitutions are text", "word.go", "case next == '(':", "case next == 0xff:"},
	{"backquotes are text", "word.go", "		case c == '`':\n\t\t\tw.known = false\n\t\t\tp.backquote()\n", ""},
	{"redirections are nothing", "shell.go", `p.doubt("a redirection to or from a file")`, ``},
	{"variables are text", "word.go", "		p.doubt(\"a variable\")\n\t\tfor", "		for"},
	{"assignments are nothing", "shell.go", `p.doubt("a variable is set for the command")`, ``},
	{"wildcards of the shell are text", "word.go", `unknown("a wildcard for file names")`, ``},
	{"here-documents are nothing", "shell.go", "case *d.commands:", "case false:"},
	{"groups are text", "shell.go", "case c == '(' && len(cmd.words) == 0:", "case false:"},
	{"control structures are resolved", "shell.go", `p.doubt("a control structure")`, ``},
	{"wrappers are programs", "wrapper.go", "	pt.runs = true\n", ""},
	{"wrappers are resolved", "wrapper.go", `p.doubt("a program that runs its arguments")`, ``},
	{"sh -c is a program", "wrapper.go", "p.nested(rest[i+1].text)", ""},
	{"eval is a program", "wrapper.go", `case name == "eval":`, `case false:`},
	{"find -exec is a search", "wrapper.go", `w.text == "-exec" ||`, ``},
	{"a path hides the program", "command.go", "slash >= 0 && matchAny(v.folded, word[slash+1:])", "slash > 1<<20"},
	{"an unnamed program hides another", "line.go", "!q.guarded() || !l.hides(i, q)", "true"},
	{"a whole tool allows what is denied by text", "decide.go", "case command == nil && !q.guarded():", "case command == nil:"},
	{"too many parts pass", "shell.go", "if len(p.out.parts) >= maxParts {", "if false {"},
	{"too deep passes", "shell.go", "p.depth > maxNesting", "false"},
	{"too long passes", "line.go", "if len(text) > maxCommand {", "if false {"},
	{"an environment is nothing", "line.go", "if here && setsContext(args) {", "if here && false {"},
	{"the limit asks", "decide.go", "Decision{Answer: Deny, Reason: Limit", "Decision{Answer: Ask, Reason: Limit"},
	{"too many words of a runner pass", "command.go", "	if n > maxInner {\n\t\t\treturn true", "	if n > maxInner {\n\t\t\treturn false"},
	{"commands in lists are not read", "line.go", "r.argv(v, isPlural(name))", ""},
	{"commands in objects are not read", "line.go", "depth+1)\n\t\t\tcontinue", "depth+1000)\n\t\t\tcontinue"},
	{"commands in objects are not looked for", "line.go", "	if !holdsCommand(args, \"\", commands, 0) {", "	if args[\"command\"] == nil && args[\"cmd\"] == nil {"},
	{"an allow of a command by another name", "rules.go", `if q.isCommand(a) && (a.name == "" || has(q.call.Args, a.path)) {`, `if q.isCommand(a) {`},
	{"arguments beside the program are not read", "line.go", "p.argv(append([]any{text}, list...), false)", "p.argv(append([]any{text}, list[:0]...), false)"},
	{"allow may open by taint", "cel.go", "if err := checkSession(checked.NativeRep().Expr(), answer != Allow); err != nil {\n\t\treturn nil, nil, nil, err\n\t}", ""},
	{"negation is no negation", "cel.go", "sessionUse(call.Args()[0], !positive, rising)", "sessionUse(call.Args()[0], positive, rising)"},
	{"within compares text", "cel.go", `strings.HasPrefix(p, dir) && p[len(dir)] == '/'`, `strings.HasPrefix(p, dir)`},
	{"within does not clean", "cel.go", "p, dir = path.Clean(p), path.Clean(dir)", "dir = path.Clean(dir)"},
	{"within knows no case", "cel.go", "return false, errPathCase", "return false, nil"},
	{"within follows no links", "cel.go", "real, ok := resolved[p]; ok", "real, ok := resolved[p]; ok && false"},
	{"within guesses encodings", "cel.go", `!plainText(p) || strings.Contains(p, "%")`, `false`},
	{"host guesses", "cel.go", `!ok || l.hostName() == ""`, `!ok && l.hostName() == ""`},
	{"an absent argument is grounded", "cel.go", `f.NewLiteral(types.String(strings.Join(names, "."))), args[0])`, `f.NewLiteral(types.String(strings.Join(names, "."))), f.NewLiteral(types.True))`},
	{"grounded is always true", "cel.go", "			return types.False\n\t\t}\n\t}\n\treturn types.True", "			return types.True\n\t\t}\n\t}\n\treturn types.True"},
	{"a broken schema is guessed at", "celtypes.go", `if i, ok := number(v).(int64); ok {`, `if s, ok := v.(string); ok {
			return int64(len(s)) + 100, nil
		}
		if i, ok := number(v).(int64); ok {`},
	{"conditions cost nothing", "cel.go", "env.Program(checked, cel.CostLimit(maxConditionCost), cel.EvalOptions(cel.OptOptimize))", "env.Program(checked, cel.EvalOptions(cel.OptOptimize))"},
	{"the taint is not looked at", "mode.go", "if !s.Tainted() {", "if true {"},
	{"grounding is not looked at", "mode.go", "case len(d.Ungrounded) == 0:", "case true:"},
	{"taint_only lets grounded calls go", "mode.go", "case p.mode == TaintOnly:", "case false:"},
	{"isolation lets new tools go", "mode.go", "p.mode == Isolation && !s.Committed(c.Server, c.Tool)", "false"},
	{"the task is not looked at", "mode.go", "	if !p.inTask(c) {", "	if false {"},
	{"filter without a task allows", "mode.go", "p.mode == Filter && len(p.tasks) == 0", "false"},
	{"a second task widens", "mode.go", "append(slices.Clip(p.tasks), task)", "[][]pattern{task}"},
	{"ungrounded: deny asks", "mode.go", "	if p.denyBare {", "	if false {"},
	{"the budget never ends", "gate.go", "return b.Used >= limit", "return false"},
	{"a signature of another text is good", "signed.go", "!hmac.Equal(mac, wordsMAC(key, principal, text, unix))", "len(mac) != 32"},
	{"a signature lives for ever", "signed.go", "age > SignedFor ||", ""},
	{"a short key is good", "signed.go", "if len(key) < MinKey || len(text) > MaxWords {", "if len(text) > MaxWords {"},
	{"shadowed rules load", "advice.go", "if !earlier.covers(later) {", "if true {"},
	{"misspelt arguments load", "checks.go", "		case possible:\n", "		case possible || true:\n"},
	{"rules of no tool load", "compile.go", "	if !ok {\n\t\tbad(", "	if !ok && false {\n\t\tbad("},
	{"failing tests load", "compile.go", "if d.Answer != t.Expect {", "if false {"},
	{"conditions that never hold load", "compile.go", "if never(env, checked, fixed) {", "if never(env, checked, fixed) && false {"},
	{"allow everything beside a deny by text loads", "advice.go", "open != nil && !sandboxed", "open != nil && sandboxed && !sandboxed"},
}

func TestMutations(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.what, func(t *testing.T) {
			path, err := filepath.Abs(m.file)
			if err != nil {
				t.Fatal(err)
			}
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), m.old); n != 1 {
				t.Fatalf("%s holds the text %d times; the mutation must name one place: %q", m.file, n, m.old)
			}
			dir := t.TempDir()
			broken := filepath.Join(dir, m.file)
			if err := os.WriteFile(broken, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: broken}})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(file, overlay, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("go", "test", "-overlay", file, "-vet=off", "-failfast", "-timeout", "120s", ".").CombinedOutput()
			if err == nil {
				t.Fatalf("no test notices")
			}
			if strings.Contains(string(out), "[build failed]") {
				t.Fatalf("the mutation does not compile:\n%s", out)
			}
		})
	}
}
