package screen

import (
	"fmt"
	"strings"
	"testing"
)

// toolResult is text like that of real tool results, of n bytes: prose and JSON that talks of keys and tokens, without a secret.
func toolResult(n int) string {
	const prose = "The deployment finished without errors, and they asked us to check whether the token refresh is enabled. " +
		"Each access key is rotated monthly; see the API reference for the list of endpoints, e.g. /v1/users?sort=name. "
	const data = `{"id": 184467, "name": "build-7f3a", "key": "priority", "author": "kim", "updated_at": "2026-07-28T12:00:00Z", ` +
		`"url": "https://api.example.com/repos/acme/web/pulls/42", "labels": ["bug", "help wanted"], "next_page_token": null}` + "\n"
	return strings.Repeat(prose+data, n/len(prose+data)+1)[:n]
}

func BenchmarkSecrets(b *testing.B) {
	set := credentials()
	for _, size := range []int{1 << 10, 10 << 10, 100 << 10, 1 << 20} {
		texts := map[string]string{
			"result":   toolResult(size),
			"keywords": strings.Repeat("key= token: sk-s.eyhf_ api", size/26+1)[:size],
		}
		for _, name := range []string{"result", "keywords"} {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					set.find(texts[name], never)
				}
			})
		}
	}
}

// BenchmarkCheck is all presets on one tool result, as the gateway runs them.
func BenchmarkCheck(b *testing.B) {
	s := newSet(b, Options{})
	for _, kind := range []struct{ name, text string }{
		{"result", toolResult(1 << 20)},
		{"cjk", strings.Repeat("吾輩は猫である。名前はまだ無い。", 1<<20/48+1)},
		{"hidden", strings.Repeat("i\u200bg\x1b[31mnore ", 1<<20/15+1)},
	} {
		for _, size := range []int{2 << 10, 10 << 10, 100 << 10, 1 << 20} {
			in := Input{Text: strings.ToValidUTF8(kind.text[:size], "")}
			b.Run(fmt.Sprintf("%s/%dKiB", kind.name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					s.Check(b.Context(), in)
				}
			})
		}
	}
}

// BenchmarkClean is a label without anything to take out.
func BenchmarkClean(b *testing.B) {
	label := toolResult(200)
	b.ReportAllocs()
	for b.Loop() {
		Clean(label)
	}
}
