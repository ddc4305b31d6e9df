package streamhttp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// event is one event of a stream, as the HTML standard's section "Server-sent events" reads it.
type event struct {
	name  string
	id    string
	hasID bool
	data  string
	retry time.Duration // 0 where the event sets none
}

var errEventTooLarge = errors.New("an event of the stream is too large")

// maxField bounds a line that is not data.
const maxField = 8 << 10

// readEvents gives each event of the stream to yield until the stream ends or yield returns false. An event whose data is over max
// bytes is given as it began, with errEventTooLarge, and read past.
func readEvents(r io.Reader, max int, yield func(event, error) bool) error {
	in := &lineReader{in: bufio.NewReaderSize(r, 32<<10)}
	var e event
	var data []byte
	var tooLarge, any bool
	for first := true; ; first = false {
		line, cut, err := in.line(max + len("data: "))
		if err != nil && (len(line) == 0 || err != io.EOF) {
			return err // an event without its empty line does not count
		}
		if first {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		if len(line) == 0 {
			if any || tooLarge || e.hasID || e.retry > 0 {
				e.data = string(bytes.TrimSuffix(data, []byte("\n")))
				var bad error
				if tooLarge {
					bad = errEventTooLarge
				}
				if !yield(e, bad) {
					return nil
				}
			}
			e, data, tooLarge, any = event{}, data[:0], false, false
			continue
		}
		name, value, _ := strings.Cut(string(line[:min(len(line), maxField)]), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			any = true
			text := line[min(len("data:"), len(line)):]
			text = bytes.TrimPrefix(text, []byte(" "))
			if cut || len(data)+len(text) > max {
				tooLarge = true
				text = text[:min(len(text), 4<<10)]
			}
			if !tooLarge || len(data) == 0 {
				data = append(append(data, text...), '\n')
			}
		case "event":
			e.name = value
		case "id":
			if !strings.Contains(value, "\x00") {
				e.id, e.hasID = value, true
			}
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// lineReader splits a stream at LF, CRLF and CR.
type lineReader struct {
	in     *bufio.Reader
	skipLF bool // the last line ended with a CR that was the last byte there was
}

// line reads one line. Of a line over max bytes it gives the beginning, and cut. The error comes with what stood before it.
func (l *lineReader) line(max int) (line []byte, cut bool, err error) {
	for {
		if _, err := l.in.Peek(1); err != nil {
			return line, cut, err
		}
		chunk, _ := l.in.Peek(l.in.Buffered())
		if l.skipLF {
			l.skipLF = false
			if chunk[0] == '\n' {
				l.in.Discard(1)
				continue
			}
		}
		end := bytes.IndexAny(chunk, "\r\n")
		part := chunk
		if end >= 0 {
			part = chunk[:end]
		}
		if room := max - len(line); len(part) > room {
			part, cut = part[:room], true
		}
		line = append(line, part...)
		if end < 0 {
			l.in.Discard(len(chunk))
			continue
		}
		l.skipLF = chunk[end] == '\r'
		l.in.Discard(end + 1)
		return line, cut, nil
	}
}

// appendEvent writes a message as one event.
func appendEvent(dst []byte, id string, message []byte) []byte {
	if id != "" {
		dst = fmt.Appendf(dst, "id: %s\n", id)
	}
	dst = append(dst, "event: message\ndata: "...)
	dst = append(dst, message...) // one line: strictjson writes no line break
	return append(dst, "\n\n"...)
}
