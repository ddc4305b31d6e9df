package gate

// anyLeaf reports whether any value at the argument's place matches in the wide reading. Names are compared without case:
// a server may read them so. Without a name every value of the call counts. The names of members inside an argument count as
// values: {"/etc/passwd": "…"} says which file.
func anyLeaf(c *Call, a *argPattern) bool {
	args := c.Args
	if a.name == "" {
		for k, v := range args {
			if leafDenied(v, a, c.Paths, 0) || !fieldName(k) && leafDenied(k, a, c.Paths, 0) {
				return true
			}
		}
		return false
	}
	if v, ok := args[a.name]; ok && leafDenied(v, a, c.Paths, 0) {
		return true
	}
	return pathDenied(args, a.path, a, c.Paths)
}

func pathDenied(v any, path []string, a *argPattern, paths map[string]string) bool {
	if len(path) == 0 {
		return leafDenied(v, a, paths, 0)
	}
	switch v := v.(type) {
	case map[string]any:
		if sub, ok := v[path[0]]; ok && pathDenied(sub, path[1:], a, paths) {
			return true
		}
		for k, sub := range v {
			if k != path[0] && foldText(k) == foldText(path[0]) && pathDenied(sub, path[1:], a, paths) {
				return true
			}
		}
	case []any:
		for _, sub := range v {
			if pathDenied(sub, path, a, paths) {
				return true
			}
		}
	}
	return false
}

func leafDenied(v any, a *argPattern, paths map[string]string, depth int) bool {
	if depth > maxDepth {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for k, sub := range v {
			if leafDenied(k, a, paths, depth+1) || leafDenied(sub, a, paths, depth+1) {
				return true
			}
		}
		return false
	case []any:
		for _, sub := range v {
			if leafDenied(sub, a, paths, depth+1) {
				return true
			}
		}
		return false
	}
	text, isString, ok := scalar(v)
	if !ok || a.quoted && !isString {
		return !ok
	}
	if !isString && a.value.number != "" && a.value.number == canonicalNumber(text) {
		return true
	}
	if a.value.denies(text) {
		return true
	}
	real, known := paths[text]
	return known && (real == "" && a.value.pathLike() || a.value.denies(real)) // "" leads nobody knows where
}

// maxDepth bounds the nesting of a value that is judged.
const maxDepth = 128

// allLeaves reports whether the argument is there and every value at its place matches exactly as typed.
func allLeaves(c *Call, a *argPattern) bool {
	args := c.Args
	if a.name == "" {
		if len(args) != 1 {
			return false
		}
		for _, v := range args {
			return leafAllowed(v, a, c.Paths, 0)
		}
	}
	if ambiguous(args, a.path[0]) {
		return false
	}
	if v, ok := args[a.name]; ok {
		return leafAllowed(v, a, c.Paths, 0)
	}
	return pathAllowed(args, a.path, a, c.Paths)
}

// ambiguous reports whether another key of args is the same name to a reader without letter case.
func ambiguous(args map[string]any, name string) bool {
	if len(args) < 2 {
		return false
	}
	folded := foldText(name)
	for k := range args {
		if k != name && foldText(k) == folded {
			return true
		}
	}
	return false
}

func pathAllowed(v any, path []string, a *argPattern, paths map[string]string) bool {
	if len(path) == 0 {
		return leafAllowed(v, a, paths, 0)
	}
	switch v := v.(type) {
	case map[string]any:
		sub, ok := v[path[0]]
		return ok && !ambiguous(v, path[0]) && pathAllowed(sub, path[1:], a, paths)
	case []any:
		for _, sub := range v {
			if !pathAllowed(sub, path, a, paths) {
				return false
			}
		}
		return len(v) > 0
	}
	return false
}

func leafAllowed(v any, a *argPattern, paths map[string]string, depth int) bool {
	if list, ok := v.([]any); ok && depth < maxDepth {
		for _, sub := range list {
			if !leafAllowed(sub, a, paths, depth+1) {
				return false
			}
		}
		return len(list) > 0
	}
	text, isString, ok := scalar(v)
	switch {
	case !ok:
		return false
	case isString:
		return a.value.allows(text) && a.value.allowsReal(text, paths)
	case a.quoted:
		return false
	case a.value.number != "":
		return a.value.number == canonicalNumber(text)
	case a.value.text.exact():
		return text == a.value.text.lits[0]
	}
	return a.value.text.all()
}

// has reports whether there is anything at a path.
func has(v any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		sub, ok := v[path[0]]
		return ok && has(sub, path[1:])
	case []any:
		for _, sub := range v {
			if has(sub, path) {
				return true
			}
		}
	}
	return false
}

// allowsReal reports whether a wildcard that a path matched also matches what the path leads to. A path that the operator
// spelt out may be a link.
func (v *valuePattern) allowsReal(text string, paths map[string]string) bool {
	if v.text.exact() || v.url != nil || !v.pathLike() {
		return true
	}
	real, known := paths[text]
	return !known || real != "" && v.allows(real)
}
