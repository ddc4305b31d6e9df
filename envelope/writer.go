package envelope

import (
	"errors"
	"io"
	"unicode/utf8"
)

// A Writer frames content that arrives in pieces. Its bytes are those of [Envelope.Wrap] on the whole. It holds back only
// what the next piece may turn into a token: less than the token's length, or up to [MaxLookalike] bytes with Lookalikes.
//
// It must be closed, also after an error of the source: Close writes the closing tag.
type Writer struct {
	w     io.Writer
	label Envelope

	limit   int // bytes of content still taken; below 0 without limit
	omitted int // bytes left out after them

	begun, closed bool
	err           error // of w; the frame is broken then

	in  []byte // content whose end is not decided yet, and then the piece
	out []byte // what goes to w at once
}

// piece is how much content is taken at once.
const piece = 16 << 10

// NewWriter returns a Writer that frames what it is given and writes it to w. Nothing is written before the first Write or
// Close. The nonce of a sealed frame is drawn again only where the label holds it: the content is not known yet, and
// the token in it is defanged in any case.
func (e Envelope) NewWriter(w io.Writer) *Writer { return e.newWriter(w, -1) }

// NewWriterLimit is NewWriter for at most limit bytes of content, as [Envelope.WrapLimit] has it. What is beyond is counted
// and dropped.
func (e Envelope) NewWriterLimit(w io.Writer, limit int) *Writer {
	return e.newWriter(w, max(limit, 0))
}

func (e Envelope) newWriter(w io.Writer, limit int) *Writer {
	if e.Nonce != "" {
		e.seal(func(string) bool { return false })
	}
	return &Writer{w: w, label: e, limit: limit}
}

var errClosed = errors.New("envelope: write to a frame that was closed")

// Write takes the next piece of content. An error is the underlying writer's, after which the frame is broken and stays so.
func (w *Writer) Write(p []byte) (n int, err error) {
	if w.closed {
		return 0, errClosed
	}
	for len(p) > 0 && w.err == nil {
		taken := min(len(p), piece)
		if w.limit >= 0 {
			taken = min(taken, w.limit)
			w.limit -= taken
		}
		if taken == 0 {
			w.omitted += len(p)
			n += len(p)
			break
		}
		w.in = append(w.in, p[:taken]...)
		w.flush(w.decided())
		p, n = p[taken:], n+taken
	}
	return n, w.err
}

// Close writes what was held back and the closing tag. It does not close the underlying writer. To close twice is harmless.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	if w.omitted > 0 { // the cut must not split a character
		part := unfinished(w.in)
		w.in = w.in[:len(w.in)-part]
		w.omitted += part
	}
	w.flush(len(w.in))
	return w.err
}

// flush writes the first n bytes of in, framed, and keeps the rest.
func (w *Writer) flush(n int) {
	if w.err != nil {
		return
	}
	w.out = w.out[:0]
	if !w.begun {
		w.begun = true
		w.out = w.label.appendHead(w.out)
	}
	w.out = appendDefanged(w.out, w.in[:n], w.label.Lookalikes)
	if w.closed {
		w.out = w.label.appendFoot(w.out, w.omitted)
	}
	w.in = w.in[:copy(w.in, w.in[n:])]
	if len(w.out) > 0 {
		_, w.err = w.w.Write(w.out)
	}
}

// decided returns how much of in no later byte can change.
func (w *Writer) decided() int {
	if w.label.Lookalikes {
		return decidedLookalike(w.in)
	}
	if part := unfinished(w.in); part > 0 {
		return len(w.in) - part
	}
	for start := max(0, len(w.in)-len(Token)+1); start < len(w.in); start++ {
		if beginsToken(w.in[start:]) {
			return start
		}
	}
	return len(w.in)
}

// beginsToken reports whether s, shorter than the token, is the beginning of one.
func beginsToken(s []byte) bool {
	for i, c := range s {
		if c != Token[i] && (i == dashAt || c|0x20 != Token[i]) {
			return false
		}
	}
	return true
}

// decidedLookalike returns where in s the first run starts that more content could make a look-alike, or where a character
// is cut off.
func decidedLookalike(s []byte) int {
	end := len(s) - unfinished(s)
	start := end
	for start > 0 && end-start < MaxLookalike {
		r, size := utf8.DecodeLastRune(s[:start])
		if r < utf8.RuneSelf {
			if breaksRun(byte(r)) {
				break
			}
		} else if first, _ := readAsTwo(r); readAs(r)|first == 0 && !isGap(r) {
			break
		}
		start -= size
	}
	for ; start < end; start++ {
		if !utf8.RuneStart(s[start]) {
			continue
		}
		if _, _, open := matchAt(s, start, false); open {
			return start
		}
	}
	return end
}

// breaksRun reports whether no look-alike, nor a reference in one, goes on across the ASCII character c.
func breaksRun(c byte) bool {
	return c > ' ' && c < 0x7F && c != '&' && c != '#' && c != ';' && c != '-' && !letter(c) && (c < '0' || c > '9')
}
