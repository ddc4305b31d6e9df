package envelope

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// plainly defangs character by character: what all the ways of next must come to.
func plainly(content string, lookalikes bool) string {
	var b strings.Builder
	for at := 0; at < len(content); {
		if rest := content[at:]; len(rest) >= len(Token) && strings.ToLower(rest[:len(Token)]) == Token {
			b.WriteString(defanged)
			at += len(Token)
			continue
		}
		if stop, ok, _ := matchAt(content, at, true); lookalikes && ok {
			b.WriteString(defanged)
			at = stop
			continue
		}
		r, size := decode(content[at:])
		b.WriteRune(r)
		at += size
	}
	return b.String()
}

// eachWay calls check with the vector scans, where this machine has them, and without.
func eachWay(check func()) {
	check()
	if vectors {
		vectors = false
		defer func() { vectors = true }()
		check()
	}
}

// checkPlainly checks that content is defanged as it should be, in every form of call.
func checkPlainly(t interface{ Fatalf(string, ...any) }, content string) {
	for _, lookalikes := range []bool{false, true} {
		want := plainly(content, lookalikes)
		eachWay(func() {
			for _, got := range []string{defang(content, lookalikes), string(appendDefanged(nil, []byte(content), lookalikes))} {
				if got == want {
					continue
				}
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				t.Fatalf("vectors %v, look-alikes %v: of %q, from byte %d on\n%.100q should be\n%.100q", vectors, lookalikes, content, at, got[at:], want[at:])
			}
		})
	}
}

// fillers are text that the scans take at once.
var fillers = []string{
	"Honest text in English, with a dash - and a zebra.\n", "x", "漢字かな", "日本語、zと-の文章。\n", "текст ", "é", "🙂", "a🙂é漢", "namzu-untruste", "nAmZu-Xntrusted", "zz--dd", "\x00\x7f",
}

func TestScansAreThePlainWay(t *testing.T) {
	plants := []string{
		Token, strings.ToUpper(Token), "n\u200bamzu-untrusted", "ｎamzu-untruste&#100;", "\xff", "\xc0", "\xc1\xbf", "\x80", "\xe0\x9f\xbf", "\xe0\xa0\x80", "\xe2\x82", "\xe2", "\xed\xa0\x80", "\xed\x9f\xbf", "\xf0\x8f\xbf\xbf",
		"\xf0\x90\x80\x80", "\xf0\x9f\x98", "\xf0\x9f", "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80", "\uFFFD", "\xf2\xbf\xbd5", "\xef\xbf", "é\x80", "漢\x80", "🙂\x80", Token + "\xff" + Token,
		"n&ApplyFunctio" + Token, "&ApplyFunctio" + Token, "&ApplyFunction&ApplyFunctionamzu-untruste&#100", "&hyphe" + Token, "na&#109;zu-untrusted", "NA&#x6dZU-UNTRUSTED", "namzu&#4" + Token, "NAMZ" + Token, "m" + Token, "r" + Token + Token,
	}
	step := 1
	if testing.Short() {
		step = 5
	}
	for _, filler := range fillers {
		text := strings.Repeat(filler, 3*scanBlock/len(filler)+2)
		for _, plant := range plants {
			for at := 0; at < 2*scanBlock+2; at += step {
				checkPlainly(t, text[:at]+plant+text[at:])
				if at%7 == 0 {
					checkPlainly(t, text[:at]+plant)
				}
			}
		}
	}
}

func TestScansJudgeEverySequence(t *testing.T) {
	if !vectors {
		t.Skip("the processor lacks AVX2")
	}
	text := bytes.Repeat([]byte("-"), 3*scanBlock)
	check := func(sequence ...byte) {
		const at = scanBlock - 2 // across the end of a block
		copy(text[at:], sequence)
		n := scanBytes(text, scanBefore+1, len(text)-len(Token)+1)
		if got, want := n >= 2*scanBlock, utf8.Valid(text); got != want {
			t.Fatalf("% x: scanned up to %d, valid %v", sequence, n, want)
		}
		copy(text[at:], "----")
	}
	edges := []byte{0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF}
	for a := range 0x100 {
		for b := range 0x100 {
			check(byte(a), byte(b))
			for _, c := range edges {
				check(byte(a), byte(b), c)
				if a >= 0xE0 {
					for _, d := range edges {
						check(byte(a), byte(b), c, d)
					}
				}
			}
		}
	}
}

// What is too short for a scan is read character by character: every sequence that may be ill-formed, and some that are not.
func TestEverySequenceIsReadAsUTF8(t *testing.T) {
	edges := []byte{0x00, '5', 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBD, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF}
	check := func(sequence ...byte) {
		for _, text := range []string{string(sequence), string(sequence) + "-"} {
			if got, want := Neutralize(text), plainly(text, false); got != want {
				t.Fatalf("% x became %q, want %q", text, got, want)
			}
		}
	}
	for a := range 0x100 {
		for b := range 0x100 {
			check(byte(a), byte(b))
		}
		for _, b := range edges {
			for _, c := range edges {
				check(byte(a), b, c)
				for _, d := range edges {
					check(byte(a), b, c, d)
				}
			}
		}
	}
}

func TestScansOfLongText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 8).Draw(t, "stretches") {
			filler := rapid.SampledFrom(fillers).Draw(t, "filler")
			long := strings.Repeat(filler, rapid.SampledFrom([]int{0, 30, 300, 3000}).Draw(t, "length")/len(filler)+1)
			b.WriteString(long[rapid.IntRange(0, min(len(long), 70)).Draw(t, "from"):])
			b.WriteString(hostile().Draw(t, "between"))
		}
		checkPlainly(t, b.String())

		e := Envelope{Kind: "k", Lookalikes: rapid.Bool().Draw(t, "look-alikes")}
		pieces := rapid.SliceOfN(rapid.IntRange(1, 5000), 1, 9).Draw(t, "pieces")
		eachWay(func() {
			var stream bytes.Buffer
			w := e.NewWriter(&stream)
			for i, rest := 0, b.String(); rest != ""; i++ {
				n := min(pieces[i%len(pieces)], len(rest))
				w.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			w.Close()
			if want := e.Wrap(b.String()); stream.String() != want {
				t.Fatalf("vectors %v, pieces of %v: the stream has %d bytes, the one-shot call %d", vectors, pieces, stream.Len(), len(want))
			}
		})
	})
}

func FuzzScan(f *testing.F) {
	for _, filler := range fillers {
		f.Add(filler, uint16(80), Token, uint16(20), "\xff")
	}
	seeds(f, func(v vector) { f.Add("漢字", uint16(30), v.Content, uint16(3), "-") })
	f.Fuzz(func(t *testing.T, before string, times uint16, content string, timesAfter uint16, after string) {
		text := strings.Repeat(before, int(times)%1000) + content + strings.Repeat(after, int(timesAfter)%1000)
		checkPlainly(t, text[:min(len(text), 40<<10)])
	})
}
