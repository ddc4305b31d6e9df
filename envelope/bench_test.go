package envelope

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// The kinds of text that speed is stated for. Near-tokens are what an attacker would send to slow a search down.
var benchTexts = []struct{ name, text string }{
	{"ascii", "The quick brown fox jumps over the lazy dog. 2026-07-28 12:00:00 level=info msg=\"it's done\" id=4f2a\n"},
	{"cjk", "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。这是一个测试，用来看看速度。\n"},
	{"near-tokens", "namzu-untruste"},
	{"tokens", "<namzu-untrusted> "},
}

var benchSizes = []struct {
	name string
	size int
}{{"1KiB", 1 << 10}, {"64KiB", 64 << 10}, {"1MiB", 1 << 20}, {"64MiB", 64 << 20}}

var sink string

// BenchmarkWrap measures framing beside a plain copy of the same bytes. In every group, copy is the baseline of the others.
func BenchmarkWrap(b *testing.B) {
	label := Envelope{Kind: "web-page", Attributes: []Attribute{{"url", "https://example.com/"}}, Provenance: "A web page."}
	looking := label
	looking.Lookalikes = true
	for _, size := range benchSizes {
		for _, text := range benchTexts {
			content := strings.Repeat(text.text, size.size/len(text.text)+1)
			content = content[:boundary(content, size.size)]
			raw := []byte(content)
			dst := make([]byte, 0, len(content)+len(content)/8+1024)
			run := func(name string, f func()) {
				b.Run(fmt.Sprintf("%s/%s/%s", size.name, text.name, name), func(b *testing.B) {
					b.SetBytes(int64(len(content)))
					b.ReportAllocs()
					for b.Loop() {
						f()
					}
				})
			}
			run("copy", func() { sink = strings.Clone(content) })
			run("wrap", func() { sink = label.Wrap(content) })
			run("lookalikes", func() { sink = looking.Wrap(content) })
			run("append-copy", func() { dst = append(dst[:0], raw...) })
			run("append", func() { dst = label.Append(dst[:0], raw) })
			writer := label.NewWriter(io.Discard)
			run("stream", func() { writer.Write(raw) })
		}
	}
}

// BenchmarkScan measures what judges the content, by itself.
func BenchmarkScan(b *testing.B) {
	if !vectors {
		b.Skip("the processor lacks AVX2")
	}
	for _, text := range benchTexts[:3] {
		content := []byte(strings.Repeat(text.text, window/len(text.text)))
		to := len(content) - len(Token) + 1
		for name, f := range map[string]func(){
			"scan": func() { scanBytes(content, scanBefore, to) },
			"seek": func() {
				for from := 1; from < to; from++ {
					from = seekBytes(content, from, to, zAfterM)
				}
			},
		} {
			b.Run(text.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(content)))
				for b.Loop() {
					f()
				}
			})
		}
	}
}
