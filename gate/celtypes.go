package gate

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

const (
	sessionType = "hearsay.session"
	argsType    = "@args" // a name no condition can write, nor those of its fields
)

// schemaTypes gives CEL the types of the arguments of one tool, from its input schema, so that a misspelt argument or a
// number compared with a text is an error at load.
type schemaTypes struct {
	types.Provider
	args    *cel.Type // the type of the variable args
	structs map[string]map[string]*types.FieldType
}

// newSchemaTypes reads the schema where the rule is about exactly one known tool; otherwise arguments are of any type.
func newSchemaTypes(known []ToolDef) *schemaTypes {
	t := &schemaTypes{
		Provider: types.NewEmptyRegistry(),
		args:     cel.MapType(cel.StringType, cel.DynType),
		structs: map[string]map[string]*types.FieldType{sessionType: {
			"tainted": sessionField(cel.BoolType, func(s *State) any { return s.Tainted() }),
			"reads":   sessionField(cel.ListType(cel.StringType), func(s *State) any { return s.Reads() }),
		}},
	}
	if len(known) == 1 {
		t.args = t.object(argsType, known[0].InputSchema, 0)
	}
	return t
}

func sessionField(typ *cel.Type, get func(*State) any) *types.FieldType {
	return &types.FieldType{
		Type:  typ,
		IsSet: func(any) bool { return true },
		GetFrom: func(target any) (any, error) {
			s, ok := target.(*State)
			if !ok {
				return nil, fmt.Errorf("not a session")
			}
			return get(s), nil
		},
	}
}

// object makes a struct type of an object's schema; a map where the schema does not list its properties plainly.
func (t *schemaTypes) object(name string, schema any, depth int) *cel.Type {
	s, _ := schema.(map[string]any)
	props, _ := s["properties"].(map[string]any)
	_, composed := s["$ref"]
	if len(props) == 0 || composed || s["patternProperties"] != nil || depth > 8 {
		return cel.MapType(cel.StringType, cel.DynType)
	}
	fields := map[string]*types.FieldType{}
	t.structs[name] = fields
	for prop, sub := range props {
		typ := t.field(name+"."+prop, sub, depth+1)
		fields[prop] = &types.FieldType{
			Type: typ,
			IsSet: func(target any) bool {
				m, _ := target.(map[string]any)
				_, ok := m[prop]
				return ok
			},
			GetFrom: func(target any) (any, error) {
				m, _ := target.(map[string]any)
				v, ok := m[prop]
				if !ok {
					return nil, fmt.Errorf("the call has no argument %q", prop)
				}
				return typed(v, typ)
			},
		}
	}
	return cel.ObjectType(name)
}

func (t *schemaTypes) field(name string, schema any, depth int) *cel.Type {
	s, _ := schema.(map[string]any)
	switch s["type"] {
	case "string":
		return cel.StringType
	case "integer":
		return cel.IntType
	case "number":
		return cel.DoubleType
	case "boolean":
		return cel.BoolType
	case "array":
		return cel.ListType(t.field(name+"[]", s["items"], depth+1))
	case "object":
		return t.object(name, schema, depth)
	}
	return cel.DynType
}

// typed gives a JSON value as the type the schema promised, or an error: a call that breaks its schema is not guessed at.
func typed(v any, typ *cel.Type) (any, error) {
	switch typ.Kind() {
	case types.StringKind:
		if s, ok := v.(string); ok {
			return s, nil
		}
	case types.BoolKind:
		if b, ok := v.(bool); ok {
			return b, nil
		}
	case types.IntKind:
		if i, ok := number(v).(int64); ok {
			return i, nil
		}
	case types.DoubleKind:
		switch n := number(v).(type) {
		case int64:
			return float64(n), nil
		case float64:
			return n, nil
		}
	case types.ListKind:
		if list, ok := v.([]any); ok {
			out := make([]any, len(list))
			for i, e := range list {
				var err error
				if out[i], err = typed(e, typ.Parameters()[0]); err != nil {
					return nil, err
				}
			}
			return out, nil
		}
	case types.MapKind, types.StructKind:
		if m, ok := v.(map[string]any); ok {
			return m, nil
		}
	case types.DynKind:
		return v, nil
	}
	return nil, fmt.Errorf("an argument is not the %s its schema promises", typ)
}

// number gives a JSON number as int64 where it is a whole one, else as float64; nil for what is none.
func number(v any) any {
	switch n := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
			return i
		}
		f, err := strconv.ParseFloat(string(n), 64)
		if err != nil {
			return nil
		}
		return number(f)
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n)
		}
		return n
	case int:
		return int64(n)
	case int64:
		return n
	}
	return nil
}

func (t *schemaTypes) fieldNames() []string {
	var names []string
	for _, fields := range t.structs {
		for f := range fields {
			names = append(names, f)
		}
	}
	slices.Sort(names)
	return names
}

func (t *schemaTypes) FindStructType(name string) (*types.Type, bool) {
	if t.structs[name] != nil {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return t.Provider.FindStructType(name)
}

func (t *schemaTypes) FindStructFieldNames(name string) ([]string, bool) {
	if fields := t.structs[name]; fields != nil {
		var names []string
		for f := range fields {
			names = append(names, f)
		}
		return names, true
	}
	return t.Provider.FindStructFieldNames(name)
}

func (t *schemaTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if fields := t.structs[name]; fields != nil {
		f, ok := fields[field]
		return f, ok
	}
	return t.Provider.FindStructFieldType(name, field)
}

// jsonAdapter gives CEL the values of a call: numbers as numbers, everything else as CEL's own adapter does.
type jsonAdapter struct{}

func (a jsonAdapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case json.Number:
		switch n := number(v).(type) {
		case int64:
			return types.Int(n)
		case float64:
			return types.Double(n)
		}
		return types.NewErr("a number out of range")
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

func (e *evaluation) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("a call has no other type")
}
