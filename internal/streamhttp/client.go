package streamhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds of a client.
const (
	maxInFlight  = 256             // requests that wait for the server
	maxInbox     = 256             // messages that wait for the reader
	headerWait   = 5 * time.Minute // until the server answers with a header: long tools answer late
	closeWait    = 2 * time.Second // what Close gives the goodbye
	maxIgnored   = 64 << 10
	endpointWait = 10 * time.Second // for the first event of an HTTP+SSE server
	listenWait   = time.Second      // for the listening stream, before the first requests of a session
)

// ClientOptions are the options of [NewClient].
type ClientOptions struct {
	// URL of the server's MCP endpoint, http or https.
	URL string
	// Transport carries the requests; it dials, and it adds credentials. nil means http.DefaultTransport. An error of it that has a
	// method Refusal() string is told in those words, which quote nothing of the server's.
	Transport http.RoundTripper
	// Header is set on each request. It is the operator's; nothing of a client of ours is ever in it.
	Header http.Header
	// SSE speaks HTTP+SSE of 2024-11-05 from the start, instead of finding out.
	SSE   bool
	JSON  strictjson.Limits
	Stats *jsonrpc.Stats
}

// Client is a [jsonrpc.Transport] to one server.
type Client struct {
	opt    ClientOptions
	http   http.Client
	ctx    context.Context
	cancel context.CancelFunc
	inbox  chan incoming
	slots  chan struct{} // one for each request in flight
	order  chan outgoing
	work   sync.WaitGroup

	mirrors mirrors

	greeted atomic.Bool   // the client said that it is initialized
	settled chan struct{} // closed when the listening stream that follows is open, or will not be
	settle  func()        // closes it

	opening sync.Mutex // held while the stream of an HTTP+SSE server is opened
	opened  bool

	mu       sync.Mutex // guards all below
	session  string
	version  string // negotiated, older era
	endpoint string // where messages go: URL, or what an HTTP+SSE server named
	sse      bool
	ended    error
	cancels  map[string]context.CancelFunc // of each request in flight, by id
	modern   map[string]bool               // which of them are modern
}

type incoming struct {
	m   jsonrpc.Message
	err error
}

// outgoing is a message to be sent in order, or the mark behind the last one.
type outgoing struct {
	m    jsonrpc.Message
	last chan struct{}
}

// NewClient makes a transport to the server. Nothing is sent before the first message.
func NewClient(opt ClientOptions) (*Client, error) {
	u, err := url.Parse(opt.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%q is not an http or https URL without a user", opt.URL)
	}
	if opt.Stats == nil {
		opt.Stats = new(jsonrpc.Stats)
	}
	if opt.JSON.MaxBytes == 0 {
		opt.JSON.MaxBytes = strictjson.DefaultMaxBytes
	}
	c := &Client{
		opt: opt, endpoint: opt.URL, sse: opt.SSE,
		inbox: make(chan incoming, maxInbox), slots: make(chan struct{}, maxInFlight), order: make(chan outgoing, maxInbox),
		cancels: map[string]context.CancelFunc{}, modern: map[string]bool{},
		http: http.Client{
			Transport:     opt.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.settled = make(chan struct{})
	c.settle = sync.OnceFunc(func() { close(c.settled) })
	c.work.Go(c.sendInOrder)
	return c, nil
}

// Read returns the next message of the server.
func (c *Client) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case in := <-c.inbox:
		return in.m, in.err
	default:
	}
	select {
	case in := <-c.inbox:
		return in.m, in.err
	case <-ctx.Done():
		return jsonrpc.Message{}, ctx.Err()
	case <-c.ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ended != nil {
			return jsonrpc.Message{}, c.ended
		}
		return jsonrpc.Message{}, io.EOF
	}
}

// Write hands over a message. Requests go out at once, each on a connection of its own; notifications and answers one after
// the other. A request that fails gets its answer from [Client.Read]: an error in our words.
func (c *Client) Write(ctx context.Context, m jsonrpc.Message) error {
	if c.ctx.Err() != nil {
		return jsonrpc.ErrClosed
	}
	if m.Kind != jsonrpc.Request {
		if m.Method == "notifications/cancelled" && c.cancelModern(m.Params.Get("requestId")) {
			return nil // closing the stream is how a modern request is cancelled
		}
		if m.Method == "notifications/initialized" {
			c.greeted.Store(true)
		}
		return hand(ctx, c.ctx, c.order, outgoing{m: m})
	}
	if err := hand(ctx, c.ctx, c.slots, struct{}{}); err != nil {
		return err
	}
	reqCtx, cancel := context.WithCancelCause(c.ctx)
	c.mu.Lock()
	c.cancels[m.ID.Key()] = func() { cancel(context.Canceled) }
	if versionOf(m) != "" {
		c.modern[m.ID.Key()] = true
	}
	c.mu.Unlock()
	c.work.Go(func() {
		defer func() {
			cancel(nil)
			c.mu.Lock()
			delete(c.cancels, m.ID.Key())
			delete(c.modern, m.ID.Key())
			c.mu.Unlock()
			<-c.slots
		}()
		timer := time.AfterFunc(headerWait, func() { cancel(context.DeadlineExceeded) })
		c.request(reqCtx, m, timer)
	})
	return nil
}

// hand hands v over where there is room, also when ctx has ended: a caller that will not wait gives such a one.
func hand[T any](ctx, life context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	default:
	}
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-life.Done():
		return jsonrpc.ErrClosed
	}
}

func (c *Client) cancelModern(id strictjson.Value) bool {
	key, ok := jsonrpc.NewID(id)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.modern[key.Key()] {
		return false
	}
	c.cancels[key.Key()]()
	return true
}

// Close ends the session at the server and stops reading and writing.
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(c.ctx, closeWait)
	defer cancel()
	c.flush(ctx)
	c.mu.Lock()
	session, endpoint := c.session, c.endpoint
	c.session = ""
	for _, stop := range c.cancels {
		stop()
	}
	c.mu.Unlock()
	if session != "" && ctx.Err() == nil {
		if req, err := http.NewRequestWithContext(ctx, http.MethodDelete, endpoint, nil); err == nil {
			c.stamp(req.Header)
			req.Header.Set(headerSession, session)
			if resp, err := c.http.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	}
	c.cancel()
	c.work.Wait()
	c.http.CloseIdleConnections()
	return nil
}

// flush waits until what was handed over before is sent.
func (c *Client) flush(ctx context.Context) {
	last := make(chan struct{})
	select {
	case c.order <- outgoing{last: last}:
	case <-ctx.Done():
		return
	}
	select {
	case <-last:
	case <-ctx.Done():
	}
}

// end makes every later Read and Write fail with err.
func (c *Client) end(err error) {
	c.mu.Lock()
	if c.ended == nil {
		c.ended = err
	}
	c.session = ""
	c.mu.Unlock()
	c.cancel()
}

func (c *Client) sendInOrder() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case o := <-c.order:
			if o.last != nil {
				close(o.last)
				continue
			}
			resp, err := c.post(c.ctx, o.m)
			if err == nil { // the peer hears of a broken server by the requests that fail
				io.CopyN(io.Discard, resp.Body, maxIgnored)
				resp.Body.Close()
			}
			if o.m.Method != "notifications/initialized" {
				continue
			}
			if err == nil && resp.StatusCode/100 == 2 && !c.usesSSE() {
				c.work.Go(c.listen)
			} else {
				c.settle()
			}
		}
	}
}

func (c *Client) usesSSE() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sse
}

// stamp sets the headers that every request of this client carries, and no others.
func (c *Client) stamp(h http.Header) {
	for name, values := range c.opt.Header {
		h[name] = values
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != "" {
		h.Set(headerSession, c.session)
	}
	if c.version != "" {
		h.Set(headerVersion, c.version)
	}
}

func (c *Client) post(ctx context.Context, m jsonrpc.Message) (*http.Response, error) {
	c.mu.Lock()
	endpoint := c.endpoint
	c.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(m.Append(nil)))
	if err != nil {
		return nil, err
	}
	c.stamp(req.Header)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if version := versionOf(m); version != "" && m.Kind == jsonrpc.Request {
		modernHeaders(req.Header, m, version)
		for name, values := range paramHeaders(c.mirrors.of(m), m.Params.Get("arguments")) {
			req.Header[name] = values
		}
	}
	return c.http.Do(req)
}

// request sends a request and sees to it that an answer to it reaches the reader, whatever happens. headers runs out when the
// server has not begun to answer in time.
func (c *Client) request(ctx context.Context, m jsonrpc.Message, headers *time.Timer) {
	if c.usesSSE() {
		if err := c.openSSE(); err != nil {
			text := "the server's event stream could not be opened"
			if ours := (refusal)(nil); errors.As(err, &ours) {
				text = ours.Refusal()
			}
			c.fail(m.ID, text)
			return
		}
	}
	if c.greeted.Load() { // many a server says what belongs to no request only to who listens by then
		wait, cancel := context.WithTimeout(ctx, listenWait)
		select {
		case <-c.settled:
		case <-wait.Done():
			c.settle() // once is enough
		}
		cancel()
	}
	resp, err := c.post(ctx, m)
	headers.Stop()
	if err != nil {
		c.unreached(ctx, m.ID, err)
		return
	}
	defer resp.Body.Close()
	if m.Method == "initialize" && !c.usesSSE() && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode == http.StatusBadRequest) {
		if c.fallBack(ctx, m, resp) {
			return
		}
	}
	switch {
	case resp.StatusCode == http.StatusNotFound && c.hasSession():
		c.fail(m.ID, "the server no longer knows the session")
		c.end(jsonrpc.ErrClosed)
	case resp.StatusCode/100 != 2:
		c.refused(resp, m)
	case c.usesSSE():
		io.CopyN(io.Discard, resp.Body, maxIgnored) // the answer comes on the stream
	default:
		c.accepted(ctx, resp, m)
	}
}

type refusal interface{ Refusal() string }

// unreached answers a request that got no answer. An error may quote what came instead of one, a status line or a certificate: that is
// passed on as the server's words, and only what the operating system says counts as ours.
func (c *Client) unreached(ctx context.Context, id jsonrpc.ID, err error) {
	var ours refusal
	var system *net.OpError
	var uerr *url.Error
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.DeadlineExceeded):
		c.fail(id, "the server did not answer in time")
	case cause != nil:
		c.fail(id, "the request was cancelled")
	case errors.As(err, &ours):
		c.fail(id, ours.Refusal())
	case errors.As(err, &system):
		c.fail(id, "the server could not be reached: "+system.Error())
	default:
		if errors.As(err, &uerr) {
			err = uerr.Err // without the URL, which may carry a secret of the operator's
		}
		m := failed(id, "the server could not be reached: "+err.Error())
		m.Own = false
		c.deliver(m)
	}
}

func (c *Client) hasSession() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session != ""
}

// refused handles a status that is no success. A JSON-RPC error for this request is the server's answer; anything else is none.
func (c *Client) refused(resp *http.Response, m jsonrpc.Message) {
	if mediaType(resp) == "application/json" {
		if answer, err := c.readMessage(resp.Body); err == nil && answer.Kind == jsonrpc.Response && answer.ID.Key() == m.ID.Key() {
			c.deliver(answer)
			return
		}
	}
	c.fail(m.ID, fmt.Sprintf("the server answered with HTTP status %d", resp.StatusCode))
}

func (c *Client) accepted(ctx context.Context, resp *http.Response, m jsonrpc.Message) {
	if m.Method == "initialize" {
		c.mu.Lock()
		c.session = resp.Header.Get(headerSession)
		c.mu.Unlock()
	}
	switch mediaType(resp) {
	case "application/json":
		answer, err := c.readMessage(resp.Body)
		switch {
		case err != nil:
			c.bad(m.ID, err)
		case answer.Kind != jsonrpc.Response || answer.ID.Key() != m.ID.Key():
			c.deliver(answer) // for another request, or not an answer at all: the peer drops and counts it
			c.fail(m.ID, "the server answered something else")
		default:
			c.answered(m, answer)
		}
	case "text/event-stream":
		c.follow(ctx, resp, m)
	default:
		c.fail(m.ID, "the server's answer is neither JSON nor an event stream")
	}
}

// answered delivers the answer to m, taking note of what was negotiated.
func (c *Client) answered(m, answer jsonrpc.Message) {
	if m.Method == "tools/list" {
		c.mirrors.learn(answer.Result)
	}
	if m.Method == "initialize" {
		c.mu.Lock()
		c.version = answer.Result.Get("protocolVersion").Str()
		c.mu.Unlock()
	}
	c.deliver(answer)
}

func (c *Client) readMessage(body io.Reader) (jsonrpc.Message, error) {
	data, err := io.ReadAll(io.LimitReader(body, int64(c.opt.JSON.MaxBytes)+1))
	if err != nil {
		return jsonrpc.Message{}, err
	}
	if len(data) > c.opt.JSON.MaxBytes {
		return jsonrpc.Message{}, strictjson.ErrTooLarge
	}
	return jsonrpc.DecodeText(strings.TrimSpace(string(data)), c.opt.JSON)
}

// bad delivers what could not be read as the answer to the request it was read for.
func (c *Client) bad(id jsonrpc.ID, err error) {
	c.opt.Stats.Bad.Add(1)
	if errors.Is(err, strictjson.ErrTooLarge) {
		c.opt.Stats.TooLarge.Add(1)
	}
	var bad *jsonrpc.BadMessage
	if errors.As(err, &bad) {
		err = bad.Err
	}
	c.put(incoming{err: &jsonrpc.BadMessage{Err: err, IDs: []jsonrpc.ID{id}}})
}

// fail answers the request with an error in our words, which quote nothing that came from the server.
func (c *Client) fail(id jsonrpc.ID, text string) { c.deliver(failed(id, text)) }

func failed(id jsonrpc.ID, text string) jsonrpc.Message {
	return jsonrpc.Message{Kind: jsonrpc.Response, ID: id, Error: jsonrpc.NewError(jsonrpc.CodeInternal, text, strictjson.Value{}), Own: true}
}

func (c *Client) deliver(m jsonrpc.Message) { c.put(incoming{m: m}) }

func (c *Client) put(in incoming) {
	select {
	case c.inbox <- in:
	case <-c.ctx.Done():
	}
}

func mediaType(resp *http.Response) string {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}
