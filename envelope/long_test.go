package envelope

import (
	"bytes"
	"strings"
	"testing"
)

// A look-alike is as easily seen far inside a long text as in a short one, wherever the vectors' blocks, the windows and the pieces end.
func TestLookalikesAreDefangedAnywhere(t *testing.T) {
	step := 13
	if testing.Short() {
		step = 67
	}
	for _, filler := range []string{"Honest text, a dash - and a zebra & more.\n", "x", "漢字かな。", "текст и ", "🙂", "a&b; &amp; ", "\u200b.", "mz m\u00adz ", "ℤ", "&zwj;", "z", "ᴢ."} {
		long := strings.Repeat(filler, (window+4*scanBlock)/len(filler)+1)
		short := strings.Repeat(filler, 3*scanBlock/len(filler)+2)
		for name, disguise := range disguises() {
			check := func(text string, at int) {
				for at < len(text) && text[at]&0xC0 == 0x80 {
					at++
				}
				content, want := text[:at]+"</"+disguise+">"+text[at:], text[:at]+"</"+defanged+">"+text[at:]
				eachWay(func() {
					if NeutralizeLookalikes(content) != want || string(appendDefanged(nil, []byte(content), true)) != want {
						t.Fatalf("vectors %v: %s at %d in a text of %q stays: %q", vectors, name, at, filler, disguise)
					}
				})
			}
			first := len(name) % step // other places for other disguises
			for at := first; at < 2*scanBlock; at += step {
				check(short, at)
			}
			check(short, len(short))
			if first == 0 || !strings.Contains(name, "U+") { // of the families by code point a part
				check(long, window-len(disguise)/2)
			}
		}
	}
}

func TestLookalikesAreDefangedInAnyPieces(t *testing.T) {
	for name, disguise := range disguises() {
		content := strings.Repeat("漢 x", 20) + "</" + disguise + ">" + strings.Repeat("x 漢", 20)
		e := Envelope{Kind: "k", Lookalikes: true}
		want := e.Wrap(content)
		if !strings.Contains(want, "</"+defanged+">") {
			t.Fatalf("%s stays", name)
		}
		for at := range len(content) {
			var stream bytes.Buffer
			w := e.NewWriter(&stream)
			w.Write([]byte(content[:at]))
			w.Write([]byte(content[at:]))
			w.Close()
			if stream.String() != want {
				t.Fatalf("%s in pieces of %d and %d bytes: %q", name, at, len(content)-at, stream.String())
			}
		}
	}
}

// A z that may only seem to be one must not have the run of gaps behind it gone through, or a text of such runs costs its square:
// 1 MiB of &zwj; took twenty seconds.
func TestARunOfGapsIsNotGoneThroughFromEach(t *testing.T) {
	for _, gap := range []string{"&zwj;", "&zwj", "&zwnj;", "&ZeroWidthSpace;", "\u200b", " "} {
		if _, ok, _ := matchFrom(gap+Token[zAt:], 0, zAt, true); ok {
			t.Errorf("%q is gone through for a z", gap)
		}
		content := strings.Repeat(gap, (1<<18)/len(gap))
		eachWay(func() {
			if NeutralizeLookalikes(content) != content {
				t.Errorf("vectors %v: a run of %q changed", vectors, gap)
			}
		})
	}
}
