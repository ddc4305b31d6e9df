package gate

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Bounds of a condition. A rule is a sentence, not a program.
const (
	maxCondition     = 4096   // characters
	maxConditionDeep = 64     // nesting
	maxConditionCost = 50_000 // CEL cost units at run time: a loop over some thousand elements
)

// condition is a compiled CEL expression of a rule.
type condition struct{ program cel.Program }

// conditionEnv is the environment of all conditions; a rule's own types are added to a copy.
var conditionEnv = sync.OnceValue(func() *cel.Env {
	return must(cel.NewEnv(
		cel.ParserExpressionSizeLimit(maxCondition),
		cel.ParserRecursionLimit(maxConditionDeep),
		cel.CrossTypeNumericComparisons(true),
		cel.EnableIdentifierEscapeSyntax(), // args.`content-type`
		cel.Variable("server", cel.StringType),
		cel.Variable("tool", cel.StringType),
		cel.Variable("principal", cel.StringType),
		cel.Variable("effects", cel.ListType(cel.StringType)),
		cel.Variable("session", cel.ObjectType(sessionType)),
		cel.Variable("@call", evalType),
		cel.Macros(
			cel.GlobalMacro("grounded", 1, expandGrounded),
			cel.GlobalMacro("within", 2, func(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
				return f.NewCall("@within", f.NewIdent("@call"), args[0], args[1]), nil
			}),
		),
		cel.Function("@grounded", cel.Overload("grounded", []*cel.Type{evalType, cel.StringType, cel.DynType}, cel.BoolType,
			cel.FunctionBinding(celGrounded))),
		cel.Function("@within", cel.Overload("within", []*cel.Type{evalType, cel.StringType, cel.StringType}, cel.BoolType,
			cel.FunctionBinding(celWithin))),
		cel.Function("host", cel.Overload("host_of_url", []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(celHost))),
	))
})

// must is for what depends on this package's own declarations only, never on a policy or a call.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// compileCondition reads the condition of a rule about the tools given. answer decides in which direction the session may
// be used: see checkSession.
func compileCondition(src Source, answer Answer, known []ToolDef) (*condition, *cel.Env, *cel.Ast, error) {
	provider := newSchemaTypes(known)
	env := must(conditionEnv().Extend(cel.CustomTypeProvider(provider), cel.CustomTypeAdapter(jsonAdapter{}), cel.Variable("args", provider.args)))
	checked, issues := env.Compile(src.Text)
	if issues.Err() != nil {
		e := issues.Errors()[0]
		return nil, nil, nil, fmt.Errorf("condition: %s%s%s", atColumn(src, e), e.Message, nearestTo(e.Message, provider))
	}
	if checked.OutputType() != cel.BoolType && checked.OutputType() != cel.DynType {
		return nil, nil, nil, fmt.Errorf("the condition gives a %s, it must be true or false", checked.OutputType())
	}
	if err := checkSession(checked.NativeRep().Expr(), answer != Allow); err != nil {
		return nil, nil, nil, err
	}
	program, err := env.Program(checked, cel.CostLimit(maxConditionCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("condition: %w", err)
	}
	return &condition{program}, env, checked, nil
}

func atColumn(src Source, e *cel.Error) string {
	if strings.Contains(strings.TrimSpace(src.Text), "\n") {
		return fmt.Sprintf("line %d of it: ", e.Location.Line())
	}
	return ""
}

var undefinedField = regexp.MustCompile(`undefined field '(\w+)'`)

// nearestTo proposes the argument nearest to one that a message says there is none of. CEL itself does so for other names.
func nearestTo(message string, provider *schemaTypes) string {
	m := undefinedField.FindStringSubmatch(message)
	if m == nil || strings.Contains(message, "did you mean") {
		return ""
	}
	return didYouMean(m[1], provider.fieldNames())
}

// errUndecided says that a condition gave neither true nor false.
var errUndecided = errors.New("the condition gave neither true nor false")

// holds evaluates the condition for one call.
func (c *condition) holds(e *evaluation) (bool, error) {
	out, _, err := c.program.Eval(e)
	if err != nil {
		return false, err
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, errUndecided
	}
	return bool(b), nil
}

// never reports whether the condition is false for every call of the tool, whatever its arguments and session.
func never(env *cel.Env, checked *cel.Ast, known map[string]any) bool {
	program := must(env.Program(checked, cel.EvalOptions(cel.OptPartialEval), cel.CostLimit(maxConditionCost)))
	out, _, err := program.Eval(must(env.PartialVars(known)))
	return err == nil && out == types.False
}

// evaluation is what the condition of a rule sees of one call. It is both the activation and the value behind @call.
type evaluation struct {
	call    Call
	state   State
	labels  ToolLabels
	effects []string
}

func (e *evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		if e.call.Args == nil {
			return map[string]any{}, true
		}
		return e.call.Args, true
	case "server":
		return e.call.Server, true
	case "tool":
		return e.call.Tool, true
	case "principal":
		return e.call.Principal, true
	case "effects":
		return e.effects, true
	case "session":
		return &e.state, true
	case "@call":
		return e, true
	}
	return nil, false
}

func (e *evaluation) Parent() cel.Activation { return nil }

var evalType = cel.OpaqueType("hearsay.call")

// The methods of a CEL value: opaque to every expression.
func (e *evaluation) Type() ref.Type { return evalType }
func (e *evaluation) Value() any     { return e }
func (e *evaluation) Equal(ref.Val) ref.Val {
	return types.False
}
func (e *evaluation) ConvertToType(ref.Type) ref.Val { return types.NewErr("a call has no other type") }

func expandGrounded(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	var names []string
	e := args[0]
	for e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
		names = append([]string{e.AsSelect().FieldName()}, names...)
		e = e.AsSelect().Operand()
	}
	if len(names) == 0 || e.Kind() != ast.IdentKind || e.AsIdent() != "args" {
		return nil, f.NewError(args[0].ID(), "grounded takes an argument of the call: grounded(args.name)")
	}
	return f.NewCall("@grounded", f.NewIdent("@call"), f.NewLiteral(types.String(strings.Join(names, "."))), args[0]), nil
}

// celGrounded asks the state about one argument. Its value is a parameter so that an absent one is an error, not grounded.
func celGrounded(args ...ref.Val) ref.Val {
	e := args[0].(*evaluation) // CEL checks the types of an overload before it is called
	bind := Binding{Path: string(args[1].(types.String))}
	for _, b := range e.labels.Bind {
		if b.Path == bind.Path {
			bind = b
		}
	}
	top, _, _ := strings.Cut(bind.Path, ".")
	labels := ToolLabels{Server: e.call.Server, Tool: e.call.Tool, Effects: Unknown, Bind: []Binding{bind}}
	for _, u := range e.state.Ungrounded(labels, map[string]any{top: e.call.Args[top]}) {
		if u.Path != "" { // a path "" speaks of the call as a whole
			return types.False
		}
	}
	return types.True
}

func celHost(arg ref.Val) ref.Val {
	l, ok := splitLink(string(arg.(types.String)))
	if !ok || l.hostName() == "" {
		return types.NewErr("host: not a link with a clear host")
	}
	return types.String(l.hostName())
}

// celWithin compares a path with a folder by whole components. What only letter case keeps outside is an error, and so is
// a path that has to be guessed at: an error fires a deny or ask rule, and never an allow rule.
func celWithin(args ...ref.Val) ref.Val {
	e := args[0].(*evaluation)
	in, err := within(string(args[1].(types.String)), string(args[2].(types.String)), e.call.Paths)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(in)
}

var errPathCase = errors.New("within: inside the folder only if letter case does not count")

func within(p, dir string, resolved map[string]string) (bool, error) {
	if err := checkPath(p); err != nil {
		return false, err
	}
	if real, ok := resolved[p]; ok {
		p = real
		if err := checkPath(p); err != nil {
			return false, err
		}
	}
	if err := checkPath(dir); err != nil {
		return false, err
	}
	p, dir = path.Clean(p), path.Clean(dir)
	if under(p, dir) {
		return true, nil
	}
	if under(foldText(p), foldText(dir)) {
		return false, errPathCase
	}
	return false, nil
}

func under(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}

func checkPath(p string) error {
	switch {
	case !strings.HasPrefix(p, "/"):
		return errors.New("within: a path that does not start at the root")
	case !plainText(p) || strings.Contains(p, "%"):
		return errors.New("within: a path with encoded or control characters")
	}
	return nil
}

// checkSession makes sure that untrusted content cannot widen what a rule allows: as more is read, an allow rule may only
// stop to match and a deny or ask rule only start to. rising is what the expression may do.
func checkSession(e ast.Expr, rising bool) error {
	return sessionUse(e, true, rising)
}

func sessionUse(e ast.Expr, positive, rising bool) error {
	fits := func() error {
		if positive == rising {
			return nil
		}
		if rising {
			return errors.New("a deny or ask rule must not stop to match because something was read: use session without a negation")
		}
		return errors.New("an allow rule must not start to match because something was read: write !session.tainted")
	}
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr:
			for _, a := range call.Args() {
				if err := sessionUse(a, positive, rising); err != nil {
					return err
				}
			}
			return nil
		case operators.LogicalNot:
			return sessionUse(call.Args()[0], !positive, rising)
		case operators.In:
			if isSession(call.Args()[1], "reads") && !mentionsSession(call.Args()[0]) {
				return fits()
			}
		}
	case ast.SelectKind:
		if isSession(e, "tainted") {
			return fits()
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		step := c.LoopStep()
		if isSession(c.IterRange(), "reads") && step.Kind() == ast.CallKind && step.AsCall().FunctionName() == operators.LogicalOr &&
			!mentionsSession(step) {
			return fits() // session.reads.exists(r, …)
		}
	}
	if mentionsSession(e) {
		return errors.New("the session may stand only as session.tainted, x in session.reads or session.reads.exists(…), joined by !, && and ||")
	}
	return nil
}

func isSession(e ast.Expr, field string) bool {
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() || e.AsSelect().FieldName() != field {
		return false
	}
	op := e.AsSelect().Operand()
	return op.Kind() == ast.IdentKind && op.AsIdent() == "session"
}

func mentionsSession(e ast.Expr) bool {
	found := false
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && e.AsIdent() == "session"
	}))
	return found
}
