package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

const (
	callbackPath = "/callback"
	maxMisses    = 1000 // answers with a wrong state, before the sign-in is given up: a page is guessing, or flooding
)

// callback waits on a loopback address for the one answer of the authorization server that carries the state. Any page in any browser
// on this machine can call it; only who saw the address of this sign-in knows the state.
type callback struct {
	redirect string // its address
	host     string
	state    string
	server   *http.Server
	served   sync.WaitGroup
	answers  chan url.Values
	failed   chan error

	mu     sync.Mutex // guards all below
	taken  bool
	misses int
}

// listen opens the address. Port 0 is a free one.
func listen(port uint16, state string) (*callback, error) {
	ln, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return nil, fmt.Errorf("waiting for the browser: %w", err)
	}
	c := &callback{host: ln.Addr().String(), state: state, answers: make(chan url.Values, 1), failed: make(chan error, 1)}
	c.redirect = "http://" + c.host + callbackPath
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: maxHeaders, ErrorLog: discard}
	c.server.SetKeepAlivesEnabled(false)
	c.served.Go(func() { c.server.Serve(ln) })
	return c, nil
}

// close lets the page that is being written reach the browser.
func (c *callback) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		c.server.Close()
	}
	c.served.Wait()
}

// ServeHTTP takes the answer. Nothing of the request is ever shown on the page.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	switch {
	case r.Host != c.host: // a name of somebody else's that resolves here
		http.Error(w, "This is not the address of the sign-in.", http.StatusMisdirectedRequest)
	case r.URL.Path != callbackPath:
		http.NotFound(w, r)
	case r.Method != http.MethodGet || r.Header.Get("Origin") != "": // a redirect is a GET without one; a script's request is not
		http.Error(w, "Only the browser's own way back is taken.", http.StatusMethodNotAllowed)
	default:
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err == nil {
			err = c.take(query)
		}
		if err != nil {
			http.Error(w, "This answer is not taken: "+err.Error()+".", http.StatusBadRequest)
			return
		}
		io.WriteString(w, "hearsay has the answer. You can close this window; the terminal says whether you are signed in.\n")
	}
}

var (
	errState = errors.New("it does not belong to this sign-in")
	errUsed  = errors.New("there already was one")
	errTwice = errors.New("a parameter stands in it twice")
)

// take takes the parameters of an answer, once. The errors quote nothing of them.
func (c *callback) take(query url.Values) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, values := range query {
		if len(values) > 1 {
			return errTwice
		}
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(c.state)) != 1:
		if c.misses++; c.misses == maxMisses {
			c.failed <- errors.New("the sign-in is given up: something sent a thousand answers that do not belong to it")
		}
		return errState
	case c.taken:
		return errUsed
	}
	c.taken = true
	c.answers <- query
	return nil
}

// paste takes the address at which a browser on another machine ended.
func (c *callback) paste(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Host != c.host || u.Path != callbackPath {
		return fmt.Errorf("the address begins with %s", c.redirect)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errState
	}
	return c.take(query)
}
