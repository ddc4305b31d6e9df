package screen

import (
	"cmp"
	"slices"
	"strings"
)

// An edit replaces a span of a text.
type edit struct {
	start, end int
	with       string
}

// apply makes the edits. Of two that overlap, the one that replaces something is made, over both spans: a redaction must not lose the
// end of what it covers to a removal.
func apply(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	var b strings.Builder
	b.Grow(len(text))
	done := 0
	for i := 0; i < len(edits); {
		e := edits[i]
		for i++; i < len(edits) && edits[i].start < e.end; i++ {
			e.end = max(e.end, edits[i].end)
			if e.with == "" {
				e.with = edits[i].with
			}
		}
		b.WriteString(text[done:e.start])
		b.WriteString(e.with)
		done = e.end
	}
	b.WriteString(text[done:])
	return b.String()
}

// A view is a text without what is hidden in it, as a reader sees it. Spans in it are mapped back to the text as it came.
type view struct {
	made   bool
	text   string
	hidden []Finding // what was taken out
	edits  []edit    // how, in order; they do not overlap
}

// see makes the view of a text, once.
func (s *subject) see() view {
	if s.seen.made {
		return s.seen
	}
	s.seen = view{made: true, text: s.Text}
	if !plain(s.Text) {
		s.seen.hidden = invisible(s.Text)
		for _, f := range s.seen.hidden {
			s.seen.edits = append(s.seen.edits, f.edits...)
		}
		s.seen.text = apply(s.Text, s.seen.edits)
	}
	return s.seen
}

// back maps a span of the view to the text as it came. What is hidden inside the span belongs to it.
func (v view) back(start, end int) (int, int) {
	shift, from := 0, -1
	for _, e := range v.edits {
		at := e.start - shift // where this stands, or stood, in the view
		if from < 0 && at > start {
			from = start + shift
		}
		if at >= end {
			break
		}
		shift += e.end - e.start - len(e.with)
	}
	if from < 0 {
		from = start + shift
	}
	return from, end + shift
}
