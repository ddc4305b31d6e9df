package streamhttp

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func collect(r io.Reader, max int) (events []event, errs []error) {
	readEvents(r, max, func(e event, err error) bool {
		events = append(events, e)
		errs = append(errs, err)
		return true
	})
	return events, errs
}

func TestEventStreams(t *testing.T) {
	tests := []struct {
		name, in string
		want     []event
	}{
		{"plain", "data: a\n\ndata:b\n\n", []event{{data: "a"}, {data: "b"}}},
		{"lines are joined", "data: a\ndata: b\n\n", []event{{data: "a\nb"}}},
		{"CRLF and CR", "event: message\r\ndata: a\r\n\r\ndata: b\r\rdata: c\n\n", []event{{name: "message", data: "a"}, {data: "b"}, {data: "c"}}},
		{"comments and unknown fields", ": hello\nfoo: bar\ndata: a\n\n: again\n\n", []event{{data: "a"}}},
		{"id and retry alone count", "id: 7\nretry: 1500\n\n", []event{{id: "7", hasID: true, retry: 1500 * time.Millisecond}}},
		{"an empty id resets it", "id\ndata: x\n\n", []event{{hasID: true, data: "x"}}},
		{"NUL in an id is ignored", "id: a\x00b\ndata: x\n\n", []event{{data: "x"}}},
		{"nonsense retry is ignored", "retry: soon\ndata: x\n\n", []event{{data: "x"}}},
		{"an unfinished event does not count", "data: a\n\ndata: b\n", []event{{data: "a"}}},
		{"byte order mark", "\uFEFFdata: a\n\n", []event{{data: "a"}}},
		{"one space only is taken off", "data:  a\n\n", []event{{data: " a"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{"at once": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in))} {
				got, _ := collect(r, 1000)
				if !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%s: got %+v, want %+v", how, got, tt.want)
				}
			}
		})
	}
}

func TestATooLargeEventIsReadPast(t *testing.T) {
	in := "data: " + strings.Repeat("x", 100_000) + "\n\ndata: " + strings.Repeat("y", 600) + "\ndata: " + strings.Repeat("z", 600) + "\n\ndata: ok\n\n"
	got, errs := collect(strings.NewReader(in), 1000)
	if len(got) != 3 || got[2].data != "ok" || !errors.Is(errs[0], errEventTooLarge) || !errors.Is(errs[1], errEventTooLarge) || errs[2] != nil {
		t.Fatalf("%d events, errors %v", len(got), errs)
	}
	if len(got[0].data) > 5000 || !strings.HasPrefix(got[0].data, "xxx") {
		t.Errorf("kept %d bytes of it", len(got[0].data))
	}
}

func FuzzEventStream(f *testing.F) {
	f.Add("data: a\r\n\r\nid: 1\ndata: b\n\n")
	f.Add("\r\r\n\n:\ndata\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		whole, _ := collect(strings.NewReader(in), 100)
		split, _ := collect(iotest.OneByteReader(strings.NewReader(in)), 100)
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("%q reads as %+v at once and %+v byte by byte", in, whole, split)
		}
	})
}
