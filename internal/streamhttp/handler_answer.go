package streamhttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Waits of an answer.
const (
	streamAfter = 2 * time.Second  // an answer that takes longer comes as an event stream
	beat        = 20 * time.Second // a comment, so that nothing in between takes a quiet stream for a dead one
	comeBack    = time.Second      // what a client whose stream broke may wait
)

// primed is the version since which clients know the empty event at the beginning of a stream.
const primed = "2025-11-25"

// answer writes what the exchange has to say: as JSON where the answer is all there is and comes soon, as an event stream otherwise.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, s *Session, x *exchange, wantsJSON, wantsStream bool) {
	holder := x.stream.take()
	streamFirst := wantsStream && prefersStream(r)
	if wantsJSON && (s.Modern() || !streamFirst) {
		wait := streamAfter
		if !wantsStream {
			wait = time.Hour
		}
		events, _, more := x.stream.next(r.Context(), holder, 0, wait)
		if !wantsStream { // what is not the answer has no place
			for more && r.Context().Err() == nil {
				events, _, more = x.stream.next(r.Context(), holder, 0, wait)
			}
			events = events[max(0, len(events)-1):]
		}
		if !more && len(events) == 1 {
			if status := statusOf(s, events[0]); status != http.StatusOK || !streamFirst {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				w.Write(events[0])
				return
			}
		}
		if r.Context().Err() != nil || (!more && len(events) == 0) {
			if len(events) == 0 && r.Context().Err() == nil {
				failure(w, http.StatusServiceUnavailable, x.client, jsonrpc.CodeInternal, "the session ended before the answer", strictjson.Value{})
			}
			return
		}
	}
	h.writeStream(w, r, s, x.stream, holder, 0)
}

// statusOf gives the HTTP status of an answer: modern errors of the protocol have their own.
func statusOf(s *Session, message []byte) int {
	if !s.Modern() || len(message) > 64<<10 {
		return http.StatusOK
	}
	v, err := strictjson.Parse(message, strictjson.Limits{})
	if err != nil {
		return http.StatusOK
	}
	switch code, _ := jsonrpc.ErrorCode(v.Get("error")); code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case codeHeaderMismatch, codeHeaderMismatch - 1, codeUnsupportedVersion, jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// writeStream writes a stream out as events from number at on, until it ends, the client goes, or another request takes it.
func (h *Handler) writeStream(w http.ResponseWriter, r *http.Request, s *Session, st *stream, holder, at int) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	var buf []byte
	if !s.Modern() && r.Header.Get(headerVersion) >= primed { // so that it can come back before the first message
		buf = fmt.Appendf(buf, "id: %s-%d\nretry: %d\ndata: \n\n", st.id, at, comeBack.Milliseconds())
		if _, err := w.Write(buf); err != nil || out.Flush() != nil {
			return
		}
	}
	for more := true; more; {
		var events [][]byte
		events, at, more = st.next(ctx, holder, at, beat)
		if len(events) == 0 && more {
			if _, err := io.WriteString(w, ": still here\n\n"); err != nil || out.Flush() != nil {
				return
			}
			continue
		}
		for _, e := range events {
			at++
			id := ""
			if !s.Modern() {
				id = st.id + "-" + strconv.Itoa(at) // how many events a client with this one has
			}
			buf = appendEvent(buf[:0], id, e)
			if _, err := w.Write(buf); err != nil {
				return
			}
		}
		if len(events) > 0 && out.Flush() != nil {
			return
		}
		st.sent(at)
		if cap(buf) > 1<<20 {
			buf = nil
		}
	}
}

// get opens the listening stream of a session of the older era, or takes up a stream that broke.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, principal string) {
	if r.Header.Get(headerVersion) >= Modern || r.Header.Get(headerSession) == "" {
		w.Header().Set("Allow", "POST")
		http.Error(w, "There is no stream without a session.", http.StatusMethodNotAllowed)
		return
	}
	if !accepts(r, "text/event-stream") {
		http.Error(w, "Accept must name text/event-stream.", http.StatusNotAcceptable)
		return
	}
	s := h.find(r, principal)
	if s == nil {
		http.Error(w, "No such session.", http.StatusNotFound)
		return
	}
	s.enter()
	defer s.leave()
	st, at := s.listen, s.listen.unsent()
	if last := r.Header.Get(headerLastEvent); last != "" {
		id, number, _ := strings.Cut(last, "-")
		n, err := strconv.Atoi(number)
		if st = s.resumable(id); st == nil || err != nil || n < 0 {
			http.Error(w, "No such event: its stream is over, or never was.", http.StatusNotFound)
			return
		}
		at = n
	}
	h.writeStream(w, r, s, st, st.take(), at)
}
