package envelope

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// between gives memory of one page between two that nobody may touch: a scan that reads before or behind its content ends the test.
func between(t *testing.T) []byte {
	t.Helper()
	page := os.Getpagesize()
	all, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(all) })
	for _, edge := range [][]byte{all[:page], all[2*page:]} {
		if err := syscall.Mprotect(edge, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return all[page : 2*page]
}

func TestNothingOutsideOfContentIsRead(t *testing.T) {
	room := between(t)
	tails := []string{"", "z", "-", "&", "&#", "&#12", "\xf0\x9f", "\xe2", Token, Token[:14], "m" + Token[3:], "n\u200bamzu-untrusted", "\xef\xbd\x9a", "\xef\xbd", "m\xef", "&#x6eamzu-untruste&#100"}
	const longest = 300
	for _, filler := range []string{"x", "- z", "漢", "é", "🙂", "nAmZu-Xntrusted", "m&z", "mz", "\u200b", "\xff", "\x80"} {
		text := strings.Repeat(filler, longest/len(filler)+1)
		for n := range longest + 1 {
			for i, tail := range tails {
				if len(tail) > n || testing.Short() && (n+i)%7 != 0 {
					continue
				}
				content := text[:n-len(tail)] + tail
				if i%2 == 1 {
					content = tail + text[:n-len(tail)]
				}
				want := [2]string{plainly(content, false), plainly(content, true)}
				eachWay(func() {
					for _, place := range [][]byte{room[:n:n], room[len(room)-n:]} {
						copy(place, content)
						inPlace := unsafe.String(unsafe.SliceData(place), n)
						for j, lookalikes := range []bool{false, true} {
							if defang(inPlace, lookalikes) != want[j] || string(appendDefanged(nil, place, lookalikes)) != want[j] {
								t.Fatalf("vectors %v, look-alikes %v: %q in another place", vectors, lookalikes, content)
							}
							e := Envelope{Kind: "k", Lookalikes: lookalikes}
							frame := e.Wrap(inPlace)
							var stream bytes.Buffer
							w := e.NewWriter(&stream)
							w.Write(place)
							w.Close()
							if !strings.Contains(frame, "\n\n"+want[j]+"\n</") || string(e.Append(nil, place)) != frame || stream.String() != frame {
								t.Fatalf("vectors %v, look-alikes %v: %q is framed in several ways", vectors, lookalikes, content)
							}
						}
					}
				})
			}
		}
	}
}
