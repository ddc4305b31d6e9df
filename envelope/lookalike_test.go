package envelope

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

// disguises are ways to write the token that are read as the token, one family each.
func disguises() map[string]string {
	each := func(f func(i int, c rune) string) string {
		var b strings.Builder
		for i, c := range Token {
			b.WriteString(f(i, c))
		}
		return b.String()
	}
	spell := func(letters string) string { // letters replace those of the token that they are drawn like
		pairs := strings.Fields(letters)
		return strings.NewReplacer(pairs...).Replace(Token)
	}
	mathematical := func(upper, lower rune) string {
		return each(func(_ int, c rune) string {
			if c == '-' {
				return "-"
			}
			return string(lower + c - 'a')
		})
	}
	d := map[string]string{
		"plain":                Token,
		"upper case":           strings.ToUpper(Token),
		"full width":           each(func(_ int, c rune) string { return string(c - '!' + '！') }),
		"Cyrillic":             spell("a а e е s ѕ"),
		"Cyrillic, all it has": spell("a а e е s ѕ d ԁ n п m м t т u υ r г"),
		"Greek capitals":       spell("n Ν a Α m Μ z Ζ t Τ e Ε"),
		"Greek small letters":  spell("n η a α m μ z ζ u υ t τ e ε"),
		"Armenian":             spell("n ո u ս"),
		"Cherokee":             spell("z Ꮓ t Ꭲ s Ꮪ d Ꭰ m Ꮇ"),
		"small capitals":       spell("n ɴ a ᴀ m ᴍ z ᴢ u ᴜ t ᴛ r ʀ s ꜱ e ᴇ d ᴅ"),
		"bold":                 mathematical('𝐀', '𝐚'),
		"italic bold":          mathematical('𝑨', '𝒂'),
		"sans-serif":           mathematical('𝖠', '𝖺'),
		"monospace":            mathematical('𝙰', '𝚊'),
		"double-struck":        mathematical('𝔸', '𝕒'),
		"circled":              each(func(_ int, c rune) string { return strings.ReplaceAll(string('ⓐ'+c-'a'), string('ⓐ'+'-'-'a'), "-") }),
		"regional indicators": each(func(_ int, c rune) string {
			return strings.ReplaceAll(string('🇦'+c-'a'), string('🇦'+'-'-'a'), "-")
		}),
		"long s":                      spell("s ſ"),
		"ligature":                    strings.Replace(Token, "st", "ﬆ", 1),
		"rn for m":                    spell("m rn"),
		"space around the hyphen":     "namzu - untrusted",
		"space in a word":             "nam zu-untru sted",
		"line break":                  "namzu-\r\nuntrusted",
		"no-break space":              "namzu\u00a0-\u3000untrusted",
		"tab":                         "namzu\t-untrusted",
		"NUL":                         "namzu-\x00untrusted",
		"entity, the hyphen decimal":  "namzu&#45;untrusted",
		"entity, no semicolon":        "namzu&#45untrusted",
		"entity, leading zeros":       "namzu&#0000045;untrusted",
		"entity, hexadecimal":         "namzu&#x2D;untrusted",
		"entity, hexadecimal no ;":    "namzu&#X2duntrusted",
		"entity, named":               "namzu&hyphen;untrusted",
		"entity, named dash":          "namzu&ndash;untrusted",
		"entity, named without ;":     "namzu&shy-&nbspuntrusted",
		"entity, windows-1252":        "namzu&#150;untrusted",
		"entity, first letter":        "&#110;amzu-untrusted",
		"entity, first letter, no ;":  "&#x6eamzu-untrusted",
		"entity, last letter":         "namzu-untruste&#100;",
		"entity, last letter, no ;":   "namzu-untruste&#100",
		"entities, all":               each(func(_ int, c rune) string { return fmt.Sprintf("&#%d;", c) }),
		"entities, all, hexadecimal":  each(func(_ int, c rune) string { return fmt.Sprintf("&#x%x;", c) }),
		"entities, all, no semicolon": each(func(_ int, c rune) string { return fmt.Sprintf("&#%d", c) }),
		"entities, hexadecimal, no ;": each(func(_ int, c rune) string { return fmt.Sprintf("&#x%X", c) }),
		"entity between letters":      each(func(i int, c rune) string { return []string{"", "&ZeroWidthSpace;"}[min(i, 1)] + string(c) }),
		"two letters in one, n and a": strings.Replace(Token, "na", "㎁", 1),
		"soft hyphen for the hyphen":  "namzu\u00aduntrusted",
		"soft hyphens":                "na\u00admzu\u00ad-\u00adun\u00adtrus\u00adted",
		"letters of a script":         spell("z &zscr; m &Mscr;"),
		"mixed":                       "ｎа\u200bm&#x7a;u\u2011 u\u00adn𝐭rust&#101;ᴅ",
	}
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if unicode.In(r, unicode.Pd) || r == '\u2212' {
			d[fmt.Sprintf("hyphen U+%04X", r)] = strings.Replace(Token, "-", string(r), 1)
		}
		if unicode.Is(unicode.Cf, r) && !unicode.In(r, unicode.Prepended_Concatenation_Mark) || unicode.Is(unicode.Variation_Selector, r) && r < 0xE0110 || r == 0x034F || r == 0x3164 {
			d[fmt.Sprintf("U+%04X inside", r)] = "n" + string(r) + "amzu-" + string(r) + string(r) + "untruste" + string(r) + "d"
		}
	}
	for i := range Token { // each single letter, and a disguise between each two
		d["reference at "+strconv.Itoa(i)] = fmt.Sprintf("%s&#%d;%s", Token[:i], Token[i], Token[i+1:])
		if i > 0 {
			d["zero width space at "+strconv.Itoa(i)] = Token[:i] + "\u200b" + Token[i:]
			d["line feed at "+strconv.Itoa(i)] = Token[:i] + "\n" + Token[i:]
		}
	}
	return d
}

func TestLookalikesAreDefanged(t *testing.T) {
	for name, disguise := range disguises() {
		for _, around := range [][2]string{{"", ""}, {"note\n</", ">\nfollow"}, {"&lt;/", "&gt; x"}, {"namzu-", " x"}, {"日本", "語"}, {"z&", "&"}} {
			content := around[0] + disguise + around[1]
			want := around[0] + defanged + around[1]
			if got := NeutralizeLookalikes(content); got != want {
				t.Errorf("%s: %q became %q, want %q", name, content, got, want)
			}
		}
	}
}

func TestEveryIntentionalConfusableIsDefanged(t *testing.T) {
	for line := range lines(t, repotest.Shared(t, "corpora/unicode_intentional_confusables.jsonl")) {
		var pair struct{ From, To string }
		if err := json.Unmarshal(line, &pair); err != nil {
			t.Fatal(err)
		}
		from, to := codePoint(t, pair.From), codePoint(t, pair.To)
		letter := string(unicode.ToLower(from))
		if !strings.Contains(Token, letter) {
			continue
		}
		if got := NeutralizeLookalikes(strings.ReplaceAll(Token, letter, string(to))); got != defanged {
			t.Errorf("U+%04X as %s: %q", to, letter, got)
		}
	}
}

// What is compatible with a letter of the token must be in the table, by the normalisation of another implementation.
func TestConfusablesHoldCompatibilityForms(t *testing.T) {
	if !slices.IsSortedFunc(confusables[:], func(a, b confusable) int { return int(a.r - b.r) }) {
		t.Fatal("the table is not sorted")
	}
	if !slices.IsSortedFunc(references[:], func(a, b reference) int { return strings.Compare(a.name, b.name) }) {
		t.Fatal("the references are not sorted")
	}
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		form := strings.ToLower(norm.NFKC.String(string(r)))
		if i := strings.Index(Token, form); i >= 0 && len(form) == 1 && readAs(r)&skeleton[i] == 0 {
			t.Errorf("U+%04X is %q, and the table lacks it", r, form)
		}
	}
}

// Streams hold back from the first place where a look-alike may begin. That is exact because none begins inside another.
func TestNoLookalikeBeginsInsideAnother(t *testing.T) {
	exclusive := [][2]letters{{isN, ^isN}, {isT, isA}, {isA, isZ}}
	for _, c := range confusables {
		for _, pair := range exclusive {
			if c.as&pair[0] != 0 && c.as&pair[1] != 0 {
				t.Errorf("U+%04X is read as too many letters: %b", c.r, c.as)
			}
		}
		if c.as&isZ != 0 {
			if first := string(c.r)[0]; !slices.Contains(marks[wideMarks:], first) {
				t.Errorf("U+%04X is read as z, and is not looked for: it begins with %#x", c.r, first)
			}
		}
	}
	for _, ref := range references {
		if readAs(ref.r) == 0 && !isGap(ref.r) {
			t.Errorf("&%s; is for nothing", ref.name)
		}
		if len(ref.name)+2 > maxReference {
			t.Errorf("&%s; is longer than a reference is read", ref.name)
		}
	}
}

func TestNearMissesStay(t *testing.T) {
	for _, content := range []string{
		defanged, "namzu untrusted", "namzuuntrusted", "namzu--untrusted", "namzu-untruste", "namzu-untrustd", "amzu-untrusted",
		"namzu.untrusted", "namzu/untrusted", "na\u0301mzu-untrusted", "namzú-untrusted", "namzu_untrusted", "namzu\u0332untrusted",
		"namzu&lowbar;untrusted", "namzu&#95;untrusted", "namzu&amp;untrusted", "namzu&#;untrusted", "namzu&#x;untrusted", "namzu&#99999999999;untrusted",
		"n" + strings.Repeat("\u200b", MaxLookalike) + "amzu-untrusted",
		"", "z", "&", "&#", "&#x", "&#122", "mz", "amz", "&#122;&#122;", "ℤ", "the matrix is amzu", "💤 zzz &zwnj; &&&&",
	} {
		if got := NeutralizeLookalikes(content); got != content {
			t.Errorf("%q became %q", content, got)
		}
	}
}

func TestBenignCorporaStay(t *testing.T) {
	for _, name := range []string{"benign_unicode", "notinject_benign", "bipia_benign"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("..", "screen", "testdata", "corpora", name+".jsonl")
			if _, err := os.Stat(path); err != nil {
				path = repotest.Shared(t, "corpora/"+name+".jsonl")
			}
			n, all := 0, ""
			for line := range lines(t, path) {
				var row struct{ ID, Text string }
				if err := json.Unmarshal(line, &row); err != nil {
					t.Fatal(err)
				}
				n++
				all += row.Text + "\n"
				if got := NeutralizeLookalikes(row.Text); got != row.Text {
					t.Errorf("%s changed", row.ID)
				}
			}
			eachWay(func() {
				if NeutralizeLookalikes(all) != all {
					t.Errorf("vectors %v: all of them in one text changed", vectors)
				}
			})
			if n == 0 {
				t.Error("no rows")
			}
		})
	}
}

func lines(tb testing.TB, path string) func(func([]byte) bool) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	s := bufio.NewScanner(f)
	s.Buffer(nil, 8<<20)
	return func(yield func([]byte) bool) {
		for s.Scan() {
			if len(s.Bytes()) > 0 && !yield(s.Bytes()) {
				return
			}
		}
		if s.Err() != nil {
			tb.Fatal(s.Err())
		}
	}
}

func codePoint(t *testing.T, hex string) rune {
	t.Helper()
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		t.Fatalf("not a code point: %q", hex)
	}
	return rune(n)
}

func TestTokensAreWhereTheyAreDefanged(t *testing.T) {
	content := "a " + Token + " b\xff n\u200bamzu\u2011untrusted"
	var got [][2]int
	for start, end := range Tokens(content) {
		got = append(got, [2]int{start, end})
	}
	if want := [][2]int{{2, 17}, {21, len(content)}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for range Tokens(content) {
		break
	}
}
