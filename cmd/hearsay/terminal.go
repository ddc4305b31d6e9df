package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// forPerson returns w, or, where w is a terminal, a writer that shows control characters instead of sending them: untrusted
// text could move the cursor, change the title, fill the clipboard or hide what it says. Pipes and files stay byte exact.
// Flush it after the last write.
func forPerson(w io.Writer) *visibleWriter {
	f, ok := w.(*os.File)
	return &visibleWriter{w: w, raw: !ok || !term.IsTerminal(int(f.Fd()))}
}

type visibleWriter struct {
	w    io.Writer
	raw  bool
	held []byte // the beginning of a character
}

func (v *visibleWriter) Write(p []byte) (int, error) {
	if v.raw {
		return v.w.Write(p)
	}
	text := append(v.held, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if utf8.RuneStart(text[len(text)-back]) {
			if !utf8.FullRune(text[len(text)-back:]) {
				whole -= back
			}
			break
		}
	}
	_, err := v.w.Write(appendVisible(nil, text[:whole]))
	v.held = append([]byte(nil), text[whole:]...)
	return len(p), err
}

// Flush writes a character that was never finished, and ends the line, which a prompt would otherwise follow.
func (v *visibleWriter) Flush() error {
	if v.raw {
		return nil
	}
	_, err := v.w.Write(append(appendVisible(nil, v.held), '\n'))
	v.held = nil
	return err
}

// showControls is text with control characters shown as escapes.
func showControls(text string) string { return string(appendVisible(nil, []byte(text))) }

func appendVisible(dst, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1: // a lone 9B is CSI to an eight-bit terminal
			dst = fmt.Appendf(dst, `\x%02x`, text[0])
		case r == '\r' && bytes.HasPrefix(text[size:], []byte("\n")): // no overwriting: the line ends
		case r < ' ' && r != '\n' && r != '\t' || r == 0x7F || r >= 0x80 && r < 0xA0:
			dst = fmt.Appendf(dst, `\x%02x`, r)
		case reorders(r):
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = append(dst, text[:size]...)
		}
		text = text[size:]
	}
	return dst
}

// reorders reports whether r makes a terminal show characters in another order than they stand.
func reorders(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x200E || r == 0x200F || r == 0x061C
}

// counted is a number with its noun.
func counted[N ~int | ~int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
