package streamhttp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// HandlerOptions are the options of [NewHandler].
type HandlerOptions struct {
	// Connect serves one session until its transport ends. It runs in a goroutine of the handler's.
	Connect func(ctx context.Context, s *Session) error
	// Authenticate names who sends the request; false refuses it with 401. It runs behind the checks of Host and Origin.
	Authenticate func(*http.Request) (principal string, ok bool)
	// Hosts are the values of the Host header that are answered, Origins those of Origin; a request without Origin comes from no
	// browser and passes. Loopback names, with any port, are in both.
	Hosts, Origins []string
	// Versions are the protocol versions that are spoken.
	Versions []string
	JSON     strictjson.Limits
	// MaxSessions bounds the sessions of all clients; 0 means 256. A principal that has fewer than four open may always open one:
	// what one client does must not shut the others out.
	MaxSessions int
	Log         *slog.Logger
}

// Handler serves MCP clients of both eras on one path.
type Handler struct {
	opt  HandlerOptions
	work sync.WaitGroup
	stop chan struct{}

	mu       sync.Mutex // guards all below
	closed   bool
	sessions map[string]*Session // older era, by id
	modern   map[string]*Session // by principal and what the client says of itself
}

// reserved is how many sessions a principal may have whatever the others do.
const reserved = 4

// sweepEvery is how often sessions are looked through for those that nobody uses.
const sweepEvery = time.Minute

// NewHandler makes a handler. Close ends its sessions.
func NewHandler(opt HandlerOptions) (*Handler, error) {
	if opt.Connect == nil || opt.Authenticate == nil || len(opt.Versions) == 0 {
		return nil, errors.New("a handler needs Connect, Authenticate and Versions")
	}
	if opt.MaxSessions == 0 {
		opt.MaxSessions = 256
	}
	if opt.JSON.MaxBytes == 0 {
		opt.JSON.MaxBytes = strictjson.DefaultMaxBytes
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{opt: opt, stop: make(chan struct{}), sessions: map[string]*Session{}, modern: map[string]*Session{}}
	h.work.Go(h.sweep)
	return h, nil
}

// Close ends every session and waits for what serves them.
func (h *Handler) Close() {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	h.closed = true
	close(h.stop)
	for _, s := range h.all() {
		s.Close()
	}
	h.mu.Unlock()
	h.work.Wait()
}

// all is called with mu held.
func (h *Handler) all() []*Session {
	var all []*Session
	for _, s := range h.sessions {
		all = append(all, s)
	}
	for _, s := range h.modern {
		all = append(all, s)
	}
	return all
}

func (h *Handler) sweep() {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-h.stop:
			return
		case now := <-ticker.C:
			h.mu.Lock()
			all := h.all()
			h.mu.Unlock()
			for _, s := range all {
				if s.idle(now) {
					s.Close()
				}
			}
		}
	}
}

// modernKey is what the requests of one modern client have in common: who it is, and what it says that it is and can. What a server was
// told of one client it must not take for true of another, and what it asks one, another must not be asked.
func modernKey(principal string, m jsonrpc.Message) string {
	meta := m.Params.Get("_meta")
	said := meta.Get(metaCapabilities).Append(append(meta.Get(metaClient).Append(nil), 0))
	digest := sha256.Sum256(said)
	return string(digest[:]) + principal
}

// connect starts a session and what serves it; id is that of one of the older era, key is [modernKey] for another.
func (h *Handler) connect(id, key, principal string) (*Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errors.New("the gateway is stopping")
	}
	if s, ok := h.modern[key]; ok && id == "" {
		return s, nil
	}
	if all := h.all(); len(all) >= h.opt.MaxSessions {
		own := 0
		for _, s := range all {
			if s.Principal == principal {
				own++
			}
		}
		if own >= min(reserved, h.opt.MaxSessions) {
			return nil, errors.New("too many sessions are open")
		}
	}
	s := newSession(id, principal)
	if id == "" {
		h.modern[key] = s
	} else {
		h.sessions[id] = s
	}
	h.work.Go(func() {
		err := h.opt.Connect(s.ctx, s)
		s.Close()
		h.mu.Lock()
		if id == "" {
			delete(h.modern, key)
		} else {
			delete(h.sessions, id)
		}
		h.mu.Unlock()
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
			h.opt.Log.Warn("a session ended", "principal", principal, "error", err)
		}
	})
	return s, nil
}

// find gives the session of the older era that the request names. One of another principal does not exist.
func (h *Handler) find(r *http.Request, principal string) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[r.Header.Get(headerSession)]
	if s == nil || s.Principal != principal || s.ctx.Err() != nil {
		return nil
	}
	return s
}

// ServeHTTP answers POST, GET and DELETE.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if reason := h.Guard(r); reason != "" {
		http.Error(w, reason, http.StatusForbidden)
		return
	}
	principal, ok := h.opt.Authenticate(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "A bearer token is needed: Authorization: Bearer TOKEN, TOKEN being what the gateway's token file holds.", http.StatusUnauthorized)
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r, principal)
	case http.MethodGet:
		h.get(w, r, principal)
	case http.MethodDelete:
		s := h.find(r, principal)
		if s == nil {
			http.Error(w, "No such session.", http.StatusNotFound)
			return
		}
		s.Close()
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "This path takes GET, POST and DELETE.", http.StatusMethodNotAllowed)
	}
}

// failure answers with a JSON-RPC error.
func failure(w http.ResponseWriter, status int, id jsonrpc.ID, code int, text string, data strictjson.Value) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	idValue := id.Value()
	if id.IsZero() {
		idValue = strictjson.Null()
	}
	v := strictjson.Object(
		strictjson.Member{Name: "jsonrpc", Value: strictjson.String("2.0")},
		strictjson.Member{Name: "id", Value: idValue},
		strictjson.Member{Name: "error", Value: jsonrpc.NewError(code, text, data)})
	w.Write(v.Append(nil))
}

func (h *Handler) post(w http.ResponseWriter, r *http.Request, principal string) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		http.Error(w, "The body must be application/json.", http.StatusUnsupportedMediaType)
		return
	}
	wantsJSON, wantsStream := accepts(r, "application/json"), accepts(r, "text/event-stream")
	if !wantsJSON && !wantsStream {
		http.Error(w, "Accept must name application/json and text/event-stream.", http.StatusNotAcceptable)
		return
	}
	m, ok := h.read(w, r)
	if !ok {
		return
	}
	s, ok := h.sessionFor(w, r, principal, m)
	if !ok {
		return
	}
	if differs := s.mirrors.differ(m, r.Header); s.Modern() && differs != "" {
		failure(w, http.StatusBadRequest, m.ID, codeHeaderMismatch, differs, strictjson.Value{})
		return
	}
	s.enter()
	defer s.leave()
	if m.Kind != jsonrpc.Request {
		if err := s.accept(r.Context(), m); err != nil {
			http.Error(w, "The session has ended.", http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	x, own, err := s.begin(m)
	if err != nil {
		failure(w, http.StatusBadRequest, m.ID, jsonrpc.CodeInvalidRequest, err.Error(), strictjson.Value{})
		return
	}
	if err := s.accept(r.Context(), own); err != nil {
		s.abandon(x)
		failure(w, http.StatusServiceUnavailable, m.ID, jsonrpc.CodeInternal, "the session has ended", strictjson.Value{})
		return
	}
	if s.Modern() {
		defer s.abandon(x)
	}
	if m.Method == "initialize" {
		w.Header().Set(headerSession, s.ID)
	}
	h.answer(w, r, s, x, wantsJSON, wantsStream)
}

// sessionFor finds or starts the session the message belongs to, and checks what the headers say about the message.
func (h *Handler) sessionFor(w http.ResponseWriter, r *http.Request, principal string, m jsonrpc.Message) (*Session, bool) {
	header := r.Header.Get(headerVersion)
	if inBody := versionOf(m); inBody != "" || header >= Modern || m.Method == "server/discover" {
		if !h.modernHeadersAgree(w, r, m, header, inBody) {
			return nil, false
		}
		if m.Kind != jsonrpc.Request { // closing the stream cancels; an id here could be another client's
			w.WriteHeader(http.StatusAccepted)
			return nil, false
		}
		s, err := h.connect("", modernKey(principal, m), principal)
		if err != nil {
			failure(w, http.StatusServiceUnavailable, m.ID, jsonrpc.CodeInternal, err.Error(), strictjson.Value{})
		}
		return s, err == nil
	}
	if header != "" && !slices.Contains(h.opt.Versions, header) {
		failure(w, http.StatusBadRequest, m.ID, jsonrpc.CodeInvalidRequest, "the protocol version of the header is not supported", strictjson.Value{})
		return nil, false
	}
	if r.Header.Get(headerSession) == "" {
		if m.Kind != jsonrpc.Request || m.Method != "initialize" {
			failure(w, http.StatusBadRequest, m.ID, jsonrpc.CodeInvalidRequest, "the header Mcp-Session-Id is missing: send initialize first", strictjson.Value{})
			return nil, false
		}
		s, err := h.connect(rand.Text(), "", principal)
		if err != nil {
			failure(w, http.StatusServiceUnavailable, m.ID, jsonrpc.CodeInternal, err.Error(), strictjson.Value{})
		}
		return s, err == nil
	}
	s := h.find(r, principal)
	if s == nil {
		failure(w, http.StatusNotFound, m.ID, jsonrpc.CodeInvalidRequest, "no such session: it ended, or never was; send initialize", strictjson.Value{})
		return nil, false
	}
	return s, true
}

// read reads the message of a POST.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (jsonrpc.Message, bool) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(h.opt.JSON.MaxBytes)))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			failure(w, http.StatusRequestEntityTooLarge, jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message is larger than %d bytes", large.Limit), strictjson.Value{})
		}
		return jsonrpc.Message{}, false
	}
	text := strings.TrimSpace(string(data))
	if strings.HasPrefix(text, "[") {
		failure(w, http.StatusBadRequest, jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, "batches are not supported: send each message by itself", strictjson.Value{})
		return jsonrpc.Message{}, false
	}
	m, err := jsonrpc.DecodeText(text, h.opt.JSON)
	if err != nil {
		var bad *jsonrpc.BadMessage
		errors.As(err, &bad)
		code := jsonrpc.CodeInvalidRequest
		if errors.Is(err, strictjson.ErrSyntax) {
			code = jsonrpc.CodeParse
		}
		failure(w, http.StatusBadRequest, bad.ID(), code, err.Error(), strictjson.Value{})
		return jsonrpc.Message{}, false
	}
	return m, true
}
