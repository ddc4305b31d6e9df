package envelope

import (
	"errors"
	"io"
)

// A Writer frames content that arrives in pieces. Its bytes are those of [Envelope.Wrap] on the whole.
//
// It must be closed, also after an error of the source: Close writes the closing tag.
type Writer struct {
	w     io.Writer
	label Envelope

	limit   int // bytes of content still to be taken; below 0 without limit
	omitted int // bytes left out

	begun, closed bool
	err           error // of w; the frame is broken then

	buf []byte // content whose end is not decided yet
	out []byte // what goes to w at once
}

// NewWriter returns a Writer that frames what it is given and writes it to w. Nothing is written before the first Write or
// Close. The nonce of a sealed frame is drawn again only where the label holds it: the content is not known yet.
func (e Envelope) NewWriter(w io.Writer) *Writer { return e.newWriter(w, -1) }

// NewWriterLimit is NewWriter for at most limit bytes of content, as [Envelope.WrapLimit] has it. What is beyond is counted and dropped.
func (e Envelope) NewWriterLimit(w io.Writer, limit int) *Writer {
	return e.newWriter(w, max(limit, 0))
}

func (e Envelope) newWriter(w io.Writer, limit int) *Writer {
	if e.Nonce != "" {
		e.seal(func(string) bool { return false })
	}
	return &Writer{w: w, label: e, limit: limit}
}

var errClosed = errors.New("envelope: write after the frame was closed")

// Write takes the next piece of content. It returns the first error of the underlying writer, after which the frame is broken.
func (w *Writer) Write(p []byte) (int, error) {
	if w.closed {
		return 0, errClosed
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

// Close writes what was held back and the closing tag. It does not close the underlying writer. Closing twice is harmless.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	kept := w.buf
	if w.limit >= 0 {
		kept = kept[:boundary(string(kept), w.limit)]
	}
	out := w.label.appendHead(nil)
	out = appendDefanged(out, kept, w.label.Lookalikes)
	out = w.label.appendFoot(out, len(w.buf)-len(kept))
	_, w.err = w.w.Write(out)
	return w.err
}
