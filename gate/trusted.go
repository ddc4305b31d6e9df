package gate

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// How values enter the index. Each value is kept in a space: the name of its kind, or one of these.
const (
	spaceRun   = "run"   // names: runs of whole words of the user's text, and whole fields
	spaceWord  = "word"  // single words, for what an entry may be called
	spaceToken = "token" // exact words, for ids and secrets
	spaceOwner = "owner" // the halves of "owner/name", and of the path of a link
	spaceRepo  = "repo"
	spaceNum   = "num" // short numbers with the noun that they count as: "file\x0013"
)

func numKey(noun, number string) string { return noun + "\x00" + strings.TrimPrefix(number, "#") }

// addWords reads the user's text: the values in it, exact words, names as runs of words, and short numbers with their noun.
func addWords(a *adder, text string, from origin) {
	if len(text) > maxScan {
		text = text[:maxScan]
	}
	for _, v := range scan(text) {
		addValue(a, v, from)
	}
	for _, q := range quoted(text) {
		addWhole(a, q, Any, from)
	}
	n := 0
	for _, clause := range clauses(text) {
		w, t := words(clause), tokens(clause)
		if n += len(w); n > maxWords {
			break
		}
		for _, word := range w {
			if plain(word) {
				a.add(spaceWord, word, from)
			}
		}
		for i := range t {
			for j := i + 1; j <= len(t) && j-i <= maxRun && plain(t[j-1]); j++ {
				if run := t[i:j]; j-i > 1 || !stopWords[t[i]] && hasLetter(t[i]) {
					a.add(spaceRun, strings.Join(run, " "), from)
				}
			}
		}
		addNumbers(a, w, from)
		addDates(a, w, from)
	}
	for token := range strings.FieldsSeq(text) {
		if token = trimPunct(token); plain(token) && !likeShortNumber(token) && len(token) <= maxValue {
			a.add(spaceToken, token, from)
			addReference(a, token, from)
		}
	}
}

// addReference reads "owner/name" and links that lead below one: tools take the halves as two arguments, and the number of
// an issue as a third.
func addReference(a *adder, token string, from origin) {
	parts := strings.Split(strings.ToLower(token), "/")
	if _, rest, ok := strings.Cut(token, "://"); ok {
		parts = strings.Split(strings.ToLower(rest), "/")[1:]
	} else if len(parts) != 2 {
		return
	}
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" || !isToken(parts[0]) || !isToken(parts[1]) {
		return
	}
	a.add(spaceOwner, parts[0], from)
	a.add(spaceRepo, parts[1], from)
	for i := 2; i+1 < len(parts); i++ {
		if shortNumber(parts[i+1]) {
			a.add(spaceNum, numKey(singular(parts[i]), parts[i+1]), from)
		}
	}
}

// addNumbers keeps a short number together with the noun before it: "file 13", "file with id 13", "files 3, 4 and 5".
// "June 13" keeps 13 for the noun june, which no argument is called.
func addNumbers(a *adder, w []string, from origin) {
	var nouns []string
	for i, word := range w {
		if !shortNumber(word) {
			if word != "and" && word != "or" {
				nouns = nil
			}
			continue
		}
		if i > 0 && nouns == nil {
			switch prev := singular(w[i-1]); {
			case idWords[prev]:
				for k := i - 2; k >= 0 && k >= i-4 && !shortNumber(w[k]); k-- {
					if !stopWords[w[k]] {
						nouns = append(nouns, singular(w[k]))
					}
				}
			case !stopWords[prev]:
				nouns = append(nouns, prev)
				if prev == "request" && i > 1 { // a pull request's number is also called the pull's
					nouns = append(nouns, singular(w[i-2]))
				}
			}
		}
		for _, noun := range nouns {
			a.add(spaceNum, numKey(noun, word), from)
		}
	}
}

func addDates(a *adder, w []string, from origin) {
	for i := range w {
		for _, n := range []int{3, 2} {
			if i+n > len(w) {
				continue
			}
			if d, ok := wordDate(w[i : i+n]); ok {
				a.add(Time.String(), d, from)
				break
			}
		}
	}
}

// addWhole adds one text that is one value.
func addWhole(a *adder, s string, kind Kind, from origin) {
	if v, ok := parseValue(s, kind); ok {
		addValue(a, v, from)
	}
	if s = strings.TrimSpace(s); !plain(s) || len(s) > maxValue {
		return
	}
	if likeShortNumber(s) {
		if from == fromApproved {
			a.add(spaceNum, numKey("", s), from) // a person saw the call it stands in
		}
		return
	}
	for _, word := range words(s) {
		a.add(spaceWord, word, from)
	}
	t := tokens(s)
	if hasLetter(s) {
		a.add(spaceRun, strings.Join(t, " "), from)
	}
	for i := 0; len(t) > maxRun && i+maxRun <= len(t); i++ {
		a.add(spaceRun, strings.Join(t[i:i+maxRun], " "), from)
	}
	a.add(spaceToken, s, from)
}

func addValue(a *adder, v value, from origin) {
	switch v.kind {
	case Name, Text:
		a.add(spaceRun, v.canon, from)
	case ID, Secret:
		if !shortNumber(v.canon) {
			a.add(spaceToken, v.canon, from)
		}
	case Link:
		a.add(Link.String(), v.canon, from)
		bare := bareLink(v.canon)
		a.add(Link.String(), bare, from)
		if v.canon == bare { // no scheme was written: both of the web's are meant
			a.add(Link.String(), "http"+bare, from)
			a.add(Link.String(), "https"+bare, from)
		}
		if host := bare[len("://"):]; !strings.ContainsAny(host, "/?#") {
			a.add(Host.String(), host, from)
		}
	case Host: // the host's own address, not what lies below it
		a.add(Host.String(), v.canon, from)
		for _, scheme := range []string{"", "http", "https"} {
			a.add(Link.String(), scheme+"://"+v.canon, from)
		}
	default:
		a.add(v.kind.String(), v.canon, from)
	}
}

// addStore reads the operator's store: lists of values under labels. The label says what short numbers count as ("file_ids":
// files), and "own" marks what belongs to the user, which vouches for a recipient but not for what is done.
func addStore(a *adder, o Observation) {
	from := fromStore
	if slices.Contains(camel(o.Source), "own") {
		from |= fromSelf
	}
	if o.Text != "" {
		addEntry(a, camel(o.Source), o.Text, from)
	}
	walk(o.Source, o.Data, 0, func(path, leaf string) {
		label := camel(path)
		f := from
		if slices.Contains(label, "own") {
			f |= fromSelf
		}
		addEntry(a, label, leaf, f)
	})
}

func addEntry(a *adder, label []string, s string, from origin) {
	addWhole(a, s, Any, from)
	if shortNumber(s) {
		for _, noun := range label {
			if !idWords[noun] {
				a.add(spaceNum, numKey(noun, s), from)
			}
		}
	}
}

// addResult reads a trusted result by whole fields. What the agent itself passed before does not count: a server that
// repeats a value does not vouch for it. Two fields are worth more, as much as the user's words: the fields of the one
// record that the user named ("rent", in a list with one record of that title), and the id of a record this session made.
func (s State) addResult(a *adder, o Observation) {
	named := s.namedRecords(o.Data)
	made := map[string]bool{}
	if top, ok := o.Data.(map[string]any); ok && makes(o.Tool) {
		for key := range top {
			if w := camel(key); len(w) > 0 && idWords[w[len(w)-1]] {
				made[key] = true
			}
		}
	}
	records(o.Data, "", 0, func(path string, rec map[string]any) {
		for key, v := range rec {
			leaf, ok := leafText(v)
			if !ok || s.wasSaid(leaf) {
				continue
			}
			from := fromFirst
			if named[path] || path == "" && made[key] {
				from |= fromUser
			}
			addWhole(a, leaf, Any, from)
			if label := camel(key); shortNumber(leaf) && len(label) > 0 && idWords[label[len(label)-1]] {
				for _, noun := range nouns(key, o.Tool) {
					a.add(spaceNum, numKey(o.Source+"\x00"+noun, leaf), from)
				}
			}
		}
	})
	walkLists(o.Data, 0, func(leaf string) {
		if !s.wasSaid(leaf) {
			addWhole(a, leaf, Any, fromFirst)
		}
	})
}

// namedRecords finds the records that the user named: a naming field is a run of the user's words, and no other record
// of the result has the same name.
func (s State) namedRecords(data any) map[string]bool {
	count := map[string]int{}
	where := map[string][]string{}
	records(data, "", 0, func(path string, rec map[string]any) {
		for key, v := range rec {
			text, ok := v.(string)
			label := camel(key)
			if !ok || len(label) == 0 || !namingFields[label[len(label)-1]] || s.wasSaid(text) {
				continue
			}
			run := foldName(text)
			if len(run) >= 3 && !stopWords[run] && s.known[digestOf(spaceRun, run)]&ownWords != 0 {
				count[run]++
				where[run] = append(where[run], path)
			}
		}
	})
	out := map[string]bool{}
	for run, n := range count {
		if n == 1 {
			out[where[run][0]] = true
		}
	}
	return out
}

// saidIn lists everything the arguments of a call could be read as; whole is false where that was too much.
func saidIn(args map[string]any) (out []digest, whole bool) {
	whole = true
	seen := map[string]bool{}
	add := func(canon string) {
		if !seen[canon] {
			seen[canon] = true
			out = append(out, digestOf(spaceSaid, canon))
		}
	}
	walk("", args, 0, func(_, leaf string) {
		add(foldWords(leaf))
		for _, v := range scan(leaf) {
			add(foldWords(v.canon))
		}
		n := 0
		for line := range strings.Lines(leaf) {
			if len(line) < len(leaf) {
				add(foldWords(line))
			}
			if _, after, ok := strings.Cut(line, ":"); ok {
				add(foldWords(after))
			}
			for _, w := range words(line) {
				if n++; n > maxWords {
					whole = false
					return
				}
				add(w)
			}
		}
	})
	return out, whole
}

const spaceSaid = "said"

func (s State) wasSaid(leaf string) bool {
	has := func(text string) bool { _, ok := s.said[digestOf(spaceSaid, foldWords(text))]; return ok }
	return has(leaf) || slices.ContainsFunc(scan(leaf), func(v value) bool { return has(v.canon) })
}

// walk calls f for every string and number of a structured value, with the dotted path of fields to it.
func walk(path string, v any, depth int, f func(path, leaf string)) {
	if depth > maxNest {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			p := key
			if path != "" {
				p = path + "." + key
			}
			walk(p, v[key], depth+1, f)
		}
	case []any:
		for _, e := range v {
			walk(path, e, depth+1, f)
		}
	default:
		if leaf, ok := leafText(v); ok {
			f(path, leaf)
		}
	}
}

// walkNames calls f for the name of every member of a structured value.
func walkNames(v any, depth int, f func(name string)) {
	if depth > maxNest {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			f(key)
			walkNames(v[key], depth+1, f)
		}
	case []any:
		for _, e := range v {
			walkNames(e, depth+1, f)
		}
	}
}

// tooDeep reports whether walk does not reach all of v.
func tooDeep(v any, depth int) bool {
	if depth > maxNest {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, sub := range v {
			if tooDeep(sub, depth+1) {
				return true
			}
		}
	case []any:
		for _, sub := range v {
			if tooDeep(sub, depth+1) {
				return true
			}
		}
	}
	return false
}

// maxFieldDigits is how many digits the name of a field may hold, as in sha256; one with more is an id.
const maxFieldDigits = 3

// fieldName reports whether the name of a member looks like the name of a field, and not like a value: an address, a path, a
// link or an id can stand there as well.
func fieldName(s string) bool {
	digits := 0
	for i, r := range s {
		switch {
		case unicode.IsLetter(r), unicode.IsMark(r), r == '_', r == '$' && i == 0, r == '-' && i > 0:
		case '0' <= r && r <= '9':
			if digits++; digits > maxFieldDigits {
				return false
			}
		default:
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// records calls f for every object, with a path that tells it from its siblings.
func records(v any, path string, depth int, f func(path string, rec map[string]any)) {
	if depth > maxNest {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		f(path, v)
		for _, key := range sortedKeys(v) {
			records(v[key], path+"."+key, depth+1, f)
		}
	case []any:
		for i, e := range v {
			records(e, path+"["+strconv.Itoa(i)+"]", depth+1, f)
		}
	}
}

// walkLists calls f for every string or number that stands in a list, or is the whole value.
func walkLists(v any, depth int, f func(leaf string)) {
	if depth > maxNest {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if _, leaf := leafText(v[key]); !leaf {
				walkLists(v[key], depth+1, f)
			}
		}
	case []any:
		for _, e := range v {
			walkLists(e, depth+1, f)
		}
	default:
		if leaf, ok := leafText(v); ok {
			f(leaf)
		}
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// leafText is the text of a string or number.
func leafText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	}
	return "", false
}
