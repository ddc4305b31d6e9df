package screen

import (
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxMatch bounds how far a match reaches from its keyword, in bytes, where the pattern itself sets no bound: a private key of
// 16 Kibit in PEM has about 13,000, a block of PGP keys some more.
const maxMatch = 64 << 10

// A rule is a pattern that is only tried where one of its keywords stands.
type rule struct {
	ID       string      `json:"id"`
	Regex    string      `json:"regex"`
	Keywords []string    `json:"keywords"` // in lower case
	Entropy  float64     `json:"entropy"`  // bits per byte that the secret must exceed; 0 is no bound
	Group    int         `json:"group"`    // the capture that is the secret; 0 is the first that is not empty
	Allow    []allowlist `json:"allow"`

	tuning
	once sync.Once
	pattern
}

// tuning says of a rule what its pattern does not tell by itself.
type tuning struct {
	start string   // how every match begins that begins with a keyword, as a pattern
	reach int      // how far most matches reach, where the pattern sets no bound
	needs []string // what the text must hold as well, in any case
	apart bool     // a match may stand anywhere in a text that holds a keyword
}

// An allowlist names matches that are none.
type allowlist struct {
	Target    string   `json:"target"` // what the patterns look at: "" the secret, "match", "line"
	Regexes   []string `json:"regexes"`
	Stopwords []string `json:"stopwords"` // in the secret

	compiled []*regexp.Regexp
	stop     *matcher
}

// pattern is the compiled form of a rule. It is made when a keyword of the rule is met first: most rules of a large set never are.
type pattern struct {
	full *regexp.Regexp
	// begins is tried at the keyword alone, and so is cheaper to refuse with; nil where a match may begin elsewhere.
	begins *regexp.Regexp
	after  [256]bool // begins: the bytes that can follow a keyword
	word   bool      // begins: not after a letter, a digit or a low line
	equals bool      // begins: something like an equals sign follows the name that the keyword is
	before int       // bytes of a match in front of the keyword, at most
	from   int       // bytes of a match from the keyword on, at most
}

// A match is where a rule holds: the whole of it and the secret within.
type match struct {
	rule                   *rule
	start, end             int
	secretStart, secretEnd int
}

// A ruleset tries many rules in one pass over a text.
type ruleset struct {
	rules    []*rule
	keywords *matcher
	words    []string
	users    [][]*rule // keyword → rules
	allow    allowlist
}

func newRuleset(rules []*rule, allow allowlist) *ruleset {
	set := &ruleset{rules: rules, allow: allow}
	index := map[string]int{}
	for _, r := range rules {
		for _, word := range r.Keywords {
			i, known := index[word]
			if !known {
				i = len(set.words)
				index[word] = i
				set.words, set.users = append(set.words, word), append(set.users, nil)
			}
			set.users[i] = append(set.users[i], r)
		}
	}
	set.keywords = newMatcher(set.words)
	set.allow.compile()
	return set
}

// find returns the matches of all rules in text, in the order of the rules. It asks stopped now and then: true ends the search.
func (set *ruleset) find(text string, stopped func() bool) []match {
	windows := map[*rule][]window{}
	hits := 0
	set.keywords.each(text, func(word, start int) bool {
		if hits++; hits%256 == 0 && stopped() {
			return false
		}
		end := start + len(set.words[word])
		for _, r := range set.users[word] {
			r.once.Do(r.compile)
			if r.full == nil || !r.mayBegin(text, start, end) {
				continue
			}
			w := window{max(0, start-r.before-utf8.UTFMax), min(len(text), start+r.from+utf8.UTFMax)}
			if r.apart {
				w = window{0, len(text)}
			}
			all := windows[r]
			if n := len(all); n > 0 && w.from <= all[n-1].to { // one that is found later may begin earlier
				all[n-1].from, all[n-1].to = min(all[n-1].from, w.from), max(all[n-1].to, w.to)
			} else {
				windows[r] = append(all, w)
			}
		}
		return true
	})
	var found []match
	if len(windows) == 0 {
		return found
	}
	for _, r := range set.rules {
		if len(windows[r]) == 0 || !r.hasNeeds(text) {
			continue
		}
		done := 0
		for _, w := range windows[r] {
			if stopped() {
				return found
			}
			if w.from = max(w.from, done); w.from < w.to {
				found, done = set.confirm(found, r, text, w)
			}
		}
	}
	return found
}

// A window is a part of the text in which a rule is tried.
type window struct{ from, to int }

// mayBegin reports whether a match can begin with the keyword at start: the quick no for nearly every keyword of honest text.
func (r *rule) mayBegin(text string, start, end int) bool {
	if r.begins == nil {
		return true
	}
	if end < len(text) && !r.after[text[end]] || r.word && start > 0 && isWord(text[start-1]) {
		return false
	}
	if r.equals && !assigns(text[end:]) {
		return false
	}
	return r.begins.MatchString(text[start:min(len(text), start+min(r.from, maxBegins))])
}

// assigns reports whether s goes on, after part of a name and quotes, with what assigns a value to it.
func assigns(s string) bool {
	for i := range min(len(s), 64) {
		switch c := s[i]; {
		case c == '=' || c == ':' || c == '>' || c == ',' || c == '|' || c == '?':
			return true
		case !isWord(c) && !strings.ContainsRune("-. \t\r\n\f'\"", rune(c)):
			return false
		}
	}
	return false
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func (r *rule) hasNeeds(text string) bool {
	for _, need := range r.needs {
		if !containsFold(text, need) {
			return false
		}
	}
	return true
}

// confirm appends the matches of r within w that no allowlist takes back, and returns where it looked up to. A match that
// reaches the end of the window may go on behind it: then the window grows.
func (set *ruleset) confirm(found []match, r *rule, text string, w window) ([]match, int) {
	var all [][]int
	for {
		all = r.full.FindAllStringSubmatchIndex(text[w.from:w.to], -1)
		if n := len(all); n == 0 || w.to == len(text) || all[n-1][1] < w.to-w.from {
			break
		}
		w.to = min(len(text), w.to+(w.to-w.from))
	}
	for _, at := range all {
		if at[0] == 0 && w.from > 0 { // the beginning of the window is not that of the text
			continue
		}
		m := match{rule: r, start: w.from + at[0], end: w.from + at[1], secretStart: w.from + at[0], secretEnd: w.from + at[1]}
		for group := 1; group < len(at)/2; group++ {
			if from, to := at[2*group], at[2*group+1]; to > from && (r.Group == 0 || r.Group == group) {
				m.secretStart, m.secretEnd = w.from+from, w.from+to
				break
			}
		}
		secret := text[m.secretStart:m.secretEnd]
		if secret == "" || r.Entropy > 0 && entropy(secret) <= r.Entropy {
			continue
		}
		if set.allow.allows(text, m) || slices.ContainsFunc(r.Allow, func(a allowlist) bool { return a.allows(text, m) }) {
			continue
		}
		found = append(found, m)
	}
	return found, w.to
}

func (a *allowlist) compile() {
	for _, pattern := range a.Regexes {
		a.compiled = append(a.compiled, regexp.MustCompile(pattern))
	}
	if len(a.Stopwords) > 0 {
		a.stop = newMatcher(a.Stopwords)
	}
}

func (a *allowlist) allows(text string, m match) bool {
	target := text[m.secretStart:m.secretEnd]
	if a.stop != nil && a.stop.any(target) {
		return true
	}
	switch a.Target {
	case "match":
		target = text[m.start:m.end]
	case "line":
		from := strings.LastIndexByte(text[max(0, m.start-maxMatch):m.start], '\n') + 1 + max(0, m.start-maxMatch)
		target = text[from:m.end]
		rest := text[m.end:min(len(text), m.end+maxMatch)]
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			rest = rest[:i]
		}
		target += rest
	}
	return slices.ContainsFunc(a.compiled, func(re *regexp.Regexp) bool { return re.MatchString(target) })
}

// containsFold reports whether s holds word, which is in lower case, in any ASCII case.
func containsFold(s, word string) bool {
	for i := 0; ; i++ {
		next := strings.IndexAny(s[i:], word[:1]+strings.ToUpper(word[:1]))
		if next < 0 || len(s)-i-next < len(word) {
			return false
		}
		if i += next; strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
}

// entropy is Shannon's, in bits per byte, over the characters of s.
func entropy(s string) float64 {
	counts := map[rune]int{}
	for _, r := range s {
		counts[r]++
	}
	sum := 0.0
	for _, n := range counts {
		p := float64(n) / float64(len(s))
		sum -= p * math.Log2(p)
	}
	return sum
}

// The patterns of the rule set that look for a name, then something like an equals sign, then a secret, are put together of the
// same pieces. What they allow in front of the name is not part of the secret.
const (
	nameFront = `[\w.-]{0,50}?`
	nameEnd   = `(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)`
)

// compile makes the pattern.
func (r *rule) compile() {
	for i := range r.Allow {
		r.Allow[i].compile()
	}
	if r.Regex == "" {
		return
	}
	r.full = regexp.MustCompile(r.Regex)
	source, before := r.Regex, 0
	if flags, rest, ok := strings.Cut(r.Regex, nameFront); ok && (flags == "" || flags == "(?i)") {
		source, before = flags+rest, 50
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		panic(err) // the full pattern compiled
	}
	r.before, r.from = before, width(tree)
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		panic(err)
	}
	if r.reach > 0 {
		r.from = r.reach
	}
	tooFar := r.from > maxBegins && r.start == ""
	r.from = min(r.from, maxMatch)
	if tooFar || !beginsWithKeyword(prog, r.Keywords) {
		r.before = max(before, r.from)
		return
	}
	for _, word := range r.Keywords {
		follow(prog, word, &r.after)
	}
	r.word = tree.Op == syntax.OpConcat && tree.Sub[0].Op == syntax.OpWordBoundary
	r.equals = before > 0 && tree.Op == syntax.OpConcat && strings.Contains(source, nameEnd)
	if r.start != "" {
		source = r.start
	}
	r.begins = regexp.MustCompile(`\A(?:` + source + `)`)
}

// maxBegins bounds how far a pattern is tried at every keyword: what is longer is tried once, in one pass.
const maxBegins = 2 << 10

// width is the length of the longest match of re in bytes, or more than maxMatch.
func width(re *syntax.Regexp) int {
	const unbounded = maxMatch + 1
	switch re.Op {
	case syntax.OpLiteral:
		n := 0
		for _, c := range re.Rune {
			n += runeWidth(c, re.Flags)
		}
		return n
	case syntax.OpCharClass:
		if n := len(re.Rune); n > 0 {
			return utf8.RuneLen(re.Rune[n-1])
		}
		return 0
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax
	case syntax.OpStar, syntax.OpPlus:
		return unbounded
	case syntax.OpRepeat:
		if re.Max < 0 {
			return unbounded
		}
		return min(unbounded, re.Max*width(re.Sub[0]))
	case syntax.OpAlternate:
		n := 0
		for _, sub := range re.Sub {
			n = max(n, width(sub))
		}
		return n
	}
	n := 0 // captures, concatenations, options; what is empty is 0
	for _, sub := range re.Sub {
		n = min(unbounded, n+width(sub))
	}
	return n
}

// runeWidth has room for the letters that fold to ASCII ones: the long s and the Kelvin sign.
func runeWidth(c rune, flags syntax.Flags) int {
	if flags&syntax.FoldCase != 0 {
		return utf8.RuneLen('\u212A')
	}
	return utf8.RuneLen(c)
}

// beginsWithKeyword reports whether every match of prog begins with one of the keywords, in any case.
func beginsWithKeyword(prog *syntax.Prog, keywords []string) bool {
	var walk func(states []uint32, begun string) bool
	walk = func(states []uint32, begun string) bool {
		if slices.Contains(keywords, begun) {
			return true
		}
		going := slices.DeleteFunc(slices.Clone(keywords), func(word string) bool { return !strings.HasPrefix(word, begun) })
		if len(going) == 0 || accepts(prog, states) {
			return false
		}
		for c := range utf8.RuneSelf {
			next := step(prog, states, rune(c))
			if len(next) == 0 || c >= 'A' && c <= 'Z' && len(step(prog, states, rune(c|0x20))) > 0 {
				continue // the lower case goes the same way, or nothing does
			}
			if !walk(next, begun+strings.ToLower(string(rune(c)))) {
				return false
			}
		}
		return true
	}
	return walk(closure(prog, []uint32{uint32(prog.Start)}), "")
}

// follow adds to set the bytes that can follow the keyword at the beginning of a match.
func follow(prog *syntax.Prog, word string, set *[256]bool) {
	lower, upper := closure(prog, []uint32{uint32(prog.Start)}), []uint32(nil)
	for _, c := range word {
		upper = step(prog, lower, c-('a'-'A'))
		if c < 'a' || c > 'z' {
			upper = nil
		}
		lower = closure(prog, append(step(prog, lower, c), upper...))
	}
	if accepts(prog, lower) {
		for i := range set {
			set[i] = true
		}
	}
	for c := range set {
		if c >= utf8.RuneSelf || len(step(prog, lower, rune(c))) > 0 {
			set[c] = true
		}
	}
}

// closure returns the states that are reached from states without a character. What an empty assertion wants is taken as given.
func closure(prog *syntax.Prog, states []uint32) []uint32 {
	var out []uint32
	seen := map[uint32]bool{}
	for len(states) > 0 {
		pc := states[len(states)-1]
		states = states[:len(states)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch inst := &prog.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			states = append(states, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstNop:
			states = append(states, inst.Out)
		default:
			out = append(out, pc)
		}
	}
	return out
}

func step(prog *syntax.Prog, states []uint32, c rune) []uint32 {
	var next []uint32
	for _, pc := range states {
		switch inst := &prog.Inst[pc]; inst.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if inst.MatchRune(c) {
				next = append(next, inst.Out)
			}
		}
	}
	return closure(prog, next)
}

func accepts(prog *syntax.Prog, states []uint32) bool {
	return slices.ContainsFunc(states, func(pc uint32) bool { return prog.Inst[pc].Op == syntax.InstMatch })
}
