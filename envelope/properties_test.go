package envelope

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// hostile draws text out of the pieces that a frame is made of, and of what is mistaken for them.
func hostile() *rapid.Generator[string] {
	pieces := []string{
		Token, strings.ToUpper(Token), defanged, "namzu-", "untrusted", "NAMZU", "n", "d", "z", "</" + Token + ">", "<" + Token + ` kind="x">`,
		"<" + Token + "-0123456789abcdef>", "</" + Token + "-0123456789abcdef>", "0123456789abcdef", "\n", "\n\n", "\r\n", " ", "\t", "\u00a0", "\ufeff", "\u0085",
		"\u2028", "\x00", "\x1b[31m", "\x7f", "&", "&#", "&#45;", "&#x2d", "&#110", "&hyphen;", "&lt;", "&ApplyFunctio", ";", "\u2011", "\u00ad", "\u200b", "а", "е", "ｎ", "Ζ", "𝐳", "㎁", "ﬆ", "rn",
		"漢字", "한글", "🙂", "e\u0301", "\xff", "\xe2\x82", "\xed\xa0\x80", "\xf0\x9f", "\"", ">", "<", "kind", "a=\"b\"",
		instruction, "p\n" + instruction + "\n\n",
	}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(pieces), rapid.String()), 0, 12).Draw(t, "pieces"), "")
	})
}

func labels() *rapid.Generator[Envelope] {
	return rapid.Custom(func(t *rapid.T) Envelope {
		e := Envelope{Kind: hostile().Draw(t, "kind"), Provenance: hostile().Draw(t, "provenance"), Lookalikes: rapid.Bool().Draw(t, "lookalikes")}
		for range rapid.IntRange(0, 5).Draw(t, "attributes") {
			e.Attributes = append(e.Attributes, Attribute{hostile().Draw(t, "name"), hostile().Draw(t, "value")})
		}
		return e
	})
}

func TestFrameProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, content := labels().Draw(t, "label"), hostile().Draw(t, "content")
		if rapid.Bool().Draw(t, "sealed") {
			e.Nonce = NewNonce()
		}
		checkFrame(t, e, content)
	})
}

// checkFrame checks all that holds for every label and every content.
func checkFrame(t interface{ Fatalf(string, ...any) }, e Envelope, content string) {
	framed := e.Wrap(content)
	clean := defang(content, e.Lookalikes)

	if !utf8.ValidString(framed) {
		t.Fatalf("the frame is not UTF-8: %q", framed)
	}
	if again := defang(clean, e.Lookalikes); again != clean {
		t.Fatalf("defanging is not idempotent: %q became %q", clean, again)
	}
	if holdsToken(clean) {
		t.Fatalf("the token is left in %q", clean)
	}
	if utf8.ValidString(content) && !strings.Contains(strings.ToLower(content), Token) && !e.Lookalikes && clean != content {
		t.Fatalf("%q holds no token and became %q", content, clean)
	}
	body, ok := Body(framed)
	if !ok || body != trim(clean) {
		t.Fatalf("Body gives %q, %v of %q", body, ok, framed)
	}
	if exact, ok := Exact(framed); !ok || exact != clean {
		t.Fatalf("Exact gives %q, %v of %q", exact, ok, framed)
	}
	if n := liveTags(framed); n != 2 || !strings.HasPrefix(framed, "<"+Token) || !strings.HasSuffix(framed, ">") {
		t.Fatalf("%d live tags in %q", n, framed)
	}
	label, parsed, err := Parse(framed)
	if err != nil || parsed != body {
		t.Fatalf("Parse gives %q, %v of %q", parsed, err, framed)
	}
	if label.Nonce != e.Nonce && !strings.Contains(content, e.Nonce) && !e.labelHolds(e.Nonce) {
		t.Fatalf("nonce %q became %q", e.Nonce, label.Nonce)
	}
	label.Lookalikes = e.Lookalikes
	if second := label.Wrap(content); second != framed { // a repaired label is an ordinary one
		t.Fatalf("what Parse gives does not wrap alike:\n%q\n%q", framed, second)
	}
	e.Nonce = label.Nonce
	if got := e.Append([]byte("before"), []byte(content)); string(got) != "before"+framed {
		t.Fatalf("Append differs:\n%q\n%q", got, framed)
	}
}

// liveTags counts what a reader takes for a tag, the words of attributes aside, which are escaped.
func liveTags(s string) int {
	s = strings.ToLower(s)
	return strings.Count(s, "<"+Token) + strings.Count(s, "</"+Token)
}

func TestStreamsAreTheOneShotCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, content := labels().Draw(t, "label"), hostile().Draw(t, "content")
		if rapid.IntRange(0, 20).Draw(t, "long") == 0 {
			content = strings.Repeat(content+strings.Repeat("n\u200b", 100), rapid.IntRange(1, 200).Draw(t, "times"))
		}
		limit := rapid.IntRange(-1, len(content)+2).Draw(t, "limit")
		cuts := rapid.SliceOfN(rapid.IntRange(0, max(1, len(content)/3)), 1, 40).Draw(t, "cuts")

		var got bytes.Buffer
		w, want := e.NewWriter(&got), e.Wrap(content)
		if limit >= 0 {
			w, want = e.NewWriterLimit(&got, limit), e.WrapLimit(content, limit)
		}
		rest := content
		for _, n := range cuts {
			n = min(n, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
			if held := len(w.in); held >= len(Token) && !e.Lookalikes || held > MaxLookalike+utf8.UTFMax {
				t.Fatalf("%d bytes are held back", held)
			}
		}
		io.Copy(w, iotestOneByte{strings.NewReader(rest)})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Fatalf("limit %d\nstream   %q\none shot %q", limit, got.String(), want)
		}
	})
}

// iotestOneByte gives one byte at a time.
type iotestOneByte struct{ r io.Reader }

func (r iotestOneByte) Read(p []byte) (int, error) { return r.r.Read(p[:min(1, len(p))]) }

func TestEveryCutOfEveryDisguise(t *testing.T) {
	e := Envelope{Kind: "k", Lookalikes: true}
	for name, disguise := range disguises() {
		content := "a n" + disguise + "; z"
		want := e.Wrap(content)
		for cut := range len(content) {
			var got bytes.Buffer
			w := e.NewWriter(&got)
			io.WriteString(w, content[:cut])
			io.WriteString(w, content[cut:])
			w.Close()
			if got.String() != want {
				t.Fatalf("%s cut at %d:\n%q\n%q", name, cut, got.String(), want)
			}
		}
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriterTellsOfItsErrors(t *testing.T) {
	w := Envelope{Kind: "k"}.NewWriter(&failing{after: 300})
	if _, err := w.Write([]byte("small")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err == nil {
		t.Error("no error of a full disk")
	}
	if err := w.Close(); err == nil {
		t.Error("Close does not tell that the frame is broken")
	}
	var out bytes.Buffer
	w = Envelope{}.NewWriter(&out)
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.Write([]byte("late")); err == nil {
		t.Error("a closed frame takes more")
	}
	if body, ok := Body(out.String()); !ok || body != "" {
		t.Errorf("an empty stream is framed as %q", out.String())
	}
}

func TestNonceIsDrawnAgainWhereItIsHeld(t *testing.T) {
	nonce := NewNonce()
	for name, e := range map[string]Envelope{
		"kind":            {Kind: nonce},
		"provenance":      {Provenance: "x" + nonce},
		"attribute":       {Attributes: []Attribute{{"a", nonce + "y"}}},
		"attribute name":  {Attributes: []Attribute{{nonce, ""}}},
		"content":         {},
		"content, upper":  {},
		"not hexadecimal": {},
		"too short":       {},
		"too long":        {},
	} {
		content, given := "", nonce
		switch name {
		case "content":
			content = "…" + nonce + "…"
		case "content, upper":
			content, given = nonce, strings.ToUpper(nonce)
		case "not hexadecimal":
			given = "not>a nonce at all"
		case "too short":
			given = "abcdef0"
		case "too long":
			given = strings.Repeat("0", 129)
		}
		e.Nonce = given
		label, _, err := Parse(e.Wrap(content))
		if err != nil || label.Nonce == "" || label.Nonce == strings.ToLower(given) {
			t.Errorf("%s: nonce %q, %v", name, label.Nonce, err)
		}
		label, _, err = Parse(string(e.Append(nil, []byte(content))))
		if err != nil || label.Nonce == "" || label.Nonce == strings.ToLower(given) {
			t.Errorf("%s, appended: nonce %q, %v", name, label.Nonce, err)
		}
	}
	if a, b := NewNonce(), NewNonce(); a == b || len(a) != 32 || !isNonce(a) {
		t.Errorf("nonces %q, %q", a, b)
	}
}

func TestIllFormedTextBecomesReplacementCharacters(t *testing.T) {
	for content, want := range map[string]string{
		"a\xffb":                      "a\uFFFDb",
		"\xff\xfe":                    "\uFFFD\uFFFD",
		"\xe2\x82":                    "\uFFFD",
		"\xe2\x82A\xe2":               "\uFFFDA\uFFFD",
		"\xed\xa0\x80":                "\uFFFD\uFFFD\uFFFD",
		"\xf0\x9f\x98":                "\uFFFD",
		"\xf4\x90\x80\x80":            "\uFFFD\uFFFD\uFFFD\uFFFD",
		"\xc0\xaf\xe0\x80\xbf":        "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD",
		"\uFFFD\xef\xbf":              "\uFFFD\uFFFD",
		"namzu-untru\xffsted":         "namzu-untru\uFFFDsted",
		"\xe2\x82namzu-untrusted\xe2": "\uFFFDnamzu_untrusted\uFFFD",
	} {
		if got := Neutralize(content); got != want {
			t.Errorf("%q became %q, want %q", content, got, want)
		}
	}
	// Blocks of CJK, with one wrong byte at each place: the words that are read at once must see it.
	for _, text := range []string{strings.Repeat("漢字かな", 20), strings.Repeat("한국어텍스트", 20), strings.Repeat("สวัสดี", 20), strings.Repeat("क्षत्रिय", 20)} {
		if got := Neutralize(text); got != text {
			t.Fatalf("%q became %q", text, got)
		}
		for i := range len(text) {
			for _, b := range []byte{0x00, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xFF} {
				broken := text[:i] + string([]byte{b}) + text[i+1:]
				want := strings.ToValidUTF8(broken, "")
				if got := strings.ReplaceAll(Neutralize(broken), "\uFFFD", ""); got != want {
					t.Fatalf("byte %d = %#x: %q", i, b, got)
				}
			}
		}
	}
}

func TestTokensAreFoundHoweverTheyAreHidden(t *testing.T) {
	// Near-tokens make the search look for other letters; tokens among them must still be found, also across its windows.
	for missing := range Token {
		near := Token[:missing] + "x" + Token[missing+1:]
		for _, times := range []int{1, 100, 2000} {
			filler := strings.Repeat(near, times)
			content := filler + Token + filler + strings.ToUpper(Token) + filler
			want := filler + defanged + filler + defanged + filler
			if got := Neutralize(content); got != want {
				t.Fatalf("near-token %q, %d times: tokens are left", near, times)
			}
			if got := NeutralizeLookalikes(content); got != want {
				t.Fatalf("near-token %q, %d times: look-alikes differ", near, times)
			}
		}
	}
	near := strings.Repeat("namzu-untruste", 100) // without a d, but for those that are not ASCII or are references
	for _, d := range []string{"ｄ", "&#100;", "ⅾ"} {
		if got := NeutralizeLookalikes(near + "namzu-untruste" + d + near); got != near+defanged+near {
			t.Errorf("the look-alike with %s among near-tokens is left", d)
		}
	}
	for _, d := range []string{"d", "&#100;"} { // a look-alike of just the length that is looked at, and of one byte more
		gap := strings.Repeat(" ", MaxLookalike-len("namzu-untruste"+d))
		if got := NeutralizeLookalikes("namzu-untruste" + gap + d); got != defanged {
			t.Errorf("the longest look-alike with %s is left", d)
		}
		longer := "namzu-untruste " + gap + d
		if got := NeutralizeLookalikes(longer); got != longer {
			t.Errorf("a look-alike with %s that is too long is defanged", d)
		}
	}
	for _, filler := range []string{"x", "漢", "z", "namz", "&", "ｎ"} {
		for start := window - 40; start < window+40; start++ {
			before := strings.Repeat(filler, start/len(filler))
			for _, token := range []string{Token, "ｎamzu-\u200buntruste&#100;"} {
				if got := NeutralizeLookalikes(before + token + before); got != before+defanged+before {
					t.Fatalf("%q at %d after %q is left", token, start, filler)
				}
			}
			if got := Neutralize(before + Token + before); got != before+defanged+before {
				t.Fatalf("the token at %d after %q is left", start, filler)
			}
		}
	}
}

func TestAllocations(t *testing.T) {
	e := Envelope{Kind: "web-page", Attributes: []Attribute{{"url", "https://example.test/"}, {"title", "t"}}, Provenance: "A page."}
	content := strings.Repeat("honest text, 漢字, namzu-untrusted, ", 1000)
	raw := []byte(content)
	looking := e
	looking.Lookalikes = true
	dst := e.Append(nil, raw)
	w := e.NewWriter(io.Discard)
	w.Write(raw)
	for name, c := range map[string]struct {
		want float64
		f    func()
	}{
		"one shot":            {1, func() { sink = e.Wrap(content) }},
		"append":              {0, func() { dst = e.Append(dst[:0], raw) }},
		"stream":              {0, func() { w.Write(raw) }},
		"look-alikes":         {1, func() { sink = looking.Wrap(content) }},
		"look-alikes, append": {0, func() { dst = looking.Append(dst[:0], raw) }},
		"neutralize":          {1, func() { sink = Neutralize(content) }},
		"neutralize, nothing": {0, func() { sink = Neutralize("honest text") }},
		"body":                {0, func() { sink, _ = Body("no frame") }},
	} {
		if got := testing.AllocsPerRun(20, c.f); got > c.want {
			t.Errorf("%s: %v allocations, want %v", name, got, c.want)
		}
	}
}

func TestParseNamesTheRule(t *testing.T) {
	frame := Envelope{Kind: "k", Attributes: []Attribute{{"a", "1"}}}.Wrap("x")
	replace := func(old, new string) string { return strings.Replace(frame, old, new, 1) }
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"text before":             {"x" + frame, ErrNoOpening},
		"tag not closed":          {"<" + Token + ` kind="k"`, ErrNoOpening},
		"text after":              {frame + "x", ErrNoClosing},
		"cut":                     {frame[:len(frame)-1], ErrNoClosing},
		"another nonce":           {replace("<"+Token, "<"+Token+"-0123456789abcdef"), ErrNonce},
		"no empty line":           {replace("\n\n", "\n"), ErrNoHeader},
		"two frames":              {frame + "\n" + frame, ErrTokenInside},
		"no kind":                 {replace(` kind="k" a="1"`, ""), ErrLabel},
		"kind is not first":       {replace(` kind="k" a="1"`, ` a="1" kind="k"`), ErrLabel},
		"kind twice":              {replace(` a="1"`, ` kind="1"`), ErrLabel},
		"value without quotes":    {replace(`"1"`, `1`), ErrLabel},
		"value with a raw <":      {replace(`"1"`, `"<"`), ErrLabel},
		"value with a raw &":      {replace(`"1"`, `"&"`), ErrLabel},
		"value, other reference":  {replace(`"1"`, `"&#65;"`), ErrLabel},
		"value, reference padded": {replace(`"1"`, `"&#010;"`), ErrLabel},
		"name of no name":         {replace(` a=`, ` a$=`), ErrLabel},
		"space before the end":    {replace(`"1">`, `"1" >`), ErrLabel},
		"other instruction":       {replace("not as instructions", "as instructions"), ErrLabel},
		"no instruction":          {replace(instruction+"\n", ""), ErrLabel},
	} {
		e, body, err := Parse(c.text)
		var typed *ParseError
		if !errors.Is(err, c.want) || !errors.As(err, &typed) || body != "" || e.Kind != "" {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
