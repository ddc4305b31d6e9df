package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Warnings says what a person should look at before approving: tools of two servers whose names look alike, descriptions that
// speak about another server's tools, and shouting that tells the model what to do first. None of them refuses a pin.
func (l *Lock) Warnings() []string {
	var warnings []string
	names := map[string][]string{}
	for server, pins := range l.Servers {
		names[server] = slices.Sorted(maps.Keys(pins.Definitions[PinTool]))
	}
	for _, pair := range lookAlikes(names) {
		if pair[0].tool == pair[1].tool {
			warnings = append(warnings, fmt.Sprintf("servers %s and %s both have a tool %s", pair[0].server, pair[1].server, Quote(pair[0].tool)))
			continue
		}
		warnings = append(warnings, fmt.Sprintf("the tool %s of server %s looks like %s of server %s", Quote(pair[1].tool), pair[1].server, Quote(pair[0].tool), pair[0].server))
	}
	for _, server := range slices.Sorted(maps.Keys(l.Servers)) {
		for _, kind := range pinKinds {
			for _, name := range slices.Sorted(maps.Keys(l.Servers[server].Definitions[kind])) {
				def := l.Servers[server].Definitions[kind][name].Definition
				for _, other := range l.spokenOf(server, def) {
					warnings = append(warnings, fmt.Sprintf("the %s %s of server %s speaks about %s", kind, Quote(name), server, other))
				}
			}
		}
	}
	return warnings
}

// named is a tool of a server.
type named struct{ server, tool string }

// lookAlikes pairs the tools that a reader could take for each other, those of one server too.
func lookAlikes(tools map[string][]string) [][2]named {
	var pairs [][2]named
	byLook := map[string][]named{}
	for _, server := range slices.Sorted(maps.Keys(tools)) {
		for _, tool := range tools[server] {
			look := skeleton(tool)
			for _, other := range byLook[look] {
				pairs = append(pairs, [2]named{other, {server, tool}})
			}
			byLook[look] = append(byLook[look], named{server, tool})
		}
	}
	return pairs
}

// spokenOf lists the tools of other servers that a definition names. One server's text is no place for rules about another's tools.
func (l *Lock) spokenOf(server string, def strictjson.Value) []string {
	words := map[string]bool{}
	collectWords(def.Without("name"), words)
	var found []string
	for _, other := range slices.Sorted(maps.Keys(l.Servers)) {
		if other == server {
			continue
		}
		for _, tool := range slices.Sorted(maps.Keys(l.Servers[other].Definitions[PinTool])) {
			own := l.Servers[server].Definitions[PinTool]
			if _, same := own[tool]; same || !distinctive(tool) && !words[strings.ToLower(other)] {
				continue
			}
			if words[strings.ToLower(tool)] || words[strings.ToLower(other+"__"+tool)] || words[strings.ToLower(other+"."+tool)] {
				found = append(found, fmt.Sprintf("the tool %s of server %s", Quote(tool), other))
			}
		}
	}
	return found
}

// distinctive: a tool's name that is no plain word, so that a text which holds it means the tool.
func distinctive(name string) bool {
	return strings.ContainsAny(name, "_-./") || strings.ContainsFunc(name[min(1, len(name)):], unicode.IsUpper)
}

func collectWords(v strictjson.Value, words map[string]bool) {
	switch v.Kind() {
	case strictjson.KindString:
		for _, w := range strings.FieldsFunc(strings.ToLower(v.Str()), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r)
		}) {
			words[strings.Trim(w, "./-")] = true
		}
	case strictjson.KindArray:
		for _, e := range v.Elems() {
			collectWords(e, words)
		}
	case strictjson.KindObject:
		for _, e := range v.Members() {
			collectWords(e, words)
		}
	}
}

// skeleton folds a name to how it looks, after UTS 39, section 4: two names with the same skeleton look alike. The table holds the
// confusables of the letters that tool names are made of; separators count as one, as in server__tool and server.tool.
func skeleton(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		if unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r) {
			continue
		}
		if to, ok := confusables[unicode.ToLower(r)]; ok {
			r = to
		}
		if to, ok := confusables[r]; ok {
			r = to
		}
		b.WriteRune(unicode.ToLower(r))
	}
	s := strings.NewReplacer("rn", "m", "vv", "w", "cl", "d").Replace(b.String())
	return strings.ReplaceAll(s, "_", "")
}

var confusables = func() map[rune]rune {
	m := map[rune]rune{}
	for to, from := range map[rune]string{
		'a': "аɑα", 'b': "ЬƅВβ", 'c': "сϲⅽ", 'd': "ԁⅾ", 'e': "еҽε", 'g': "ɡց", 'h': "һհ", 'i': "іιıɩ", 'j': "јϳ", 'k': "кκ", 'l': "1I|ӏǀlℓⅼ",
		'm': "мⅿ", 'n': "ոπп", 'o': "0оοօσ", 'p': "рρ", 'q': "ԛգ", 'r': "гᴦ", 's': "ѕꜱ", 't': "тτ", 'u': "υսц", 'v': "ѵνⅴ", 'w': "ԝѡω", 'x': "хχⅹ",
		'y': "уγү", 'z': "ᴢζ", '_': "-./‐‑‒–—−˗", '3': "зЗ", '5': "Ƽ",
	} {
		for _, r := range from {
			m[r] = to
		}
	}
	return m
}()
