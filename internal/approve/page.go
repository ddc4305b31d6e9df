package approve

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed page
var assets embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"segments": Segments,
	"clock":    func(t time.Time) string { return t.UTC().Format("15:04:05 UTC") },
}).ParseFS(assets, "page/*.html"))

const (
	cookieName = "hearsay_approvals"
	signInFor  = 12 * time.Hour
	// maxSignedIn bounds the browsers that are signed in at once; the oldest goes.
	maxSignedIn = 16
	maxForm     = 16 << 10
	// maxStreams bounds the open event streams.
	maxStreams = 32
	beat       = 20 * time.Second
)

// PageOptions of [NewPage].
type PageOptions struct {
	// Token opens the page. It must come from crypto/rand and be kept where the agent and its servers cannot read it.
	Token string
	// Hosts are the values of the Host header that are accepted besides the loopback names, with their port if they have one.
	Hosts []string
	// Secure says that the page is reached over TLS only.
	Secure bool
}

// Page is the approvals page. Mount it under a path that ends in a slash, with [http.StripPrefix].
type Page struct {
	desk *Desk
	opt  PageOptions
	mux  *http.ServeMux

	mu      sync.Mutex // guards all below
	codes   map[string]time.Time
	cookies map[string]time.Time
	streams int
}

// NewPage makes the page for the desk. It refuses a token that could be guessed.
func NewPage(desk *Desk, opt PageOptions) (*Page, error) {
	if len(opt.Token) < 16 {
		return nil, errors.New("the approvals page needs a token of at least 16 characters")
	}
	p := &Page{desk: desk, opt: opt, mux: http.NewServeMux(), codes: map[string]time.Time{}, cookies: map[string]time.Time{}}
	p.mux.HandleFunc("GET /{$}", p.index)
	p.mux.HandleFunc("GET /list", p.list)
	p.mux.HandleFunc("GET /events", p.events)
	p.mux.HandleFunc("POST /answer", p.answer)
	p.mux.HandleFunc("POST /sign-in", p.signIn)
	p.mux.HandleFunc("GET /page.css", asset("page/page.css", "text/css; charset=utf-8"))
	p.mux.HandleFunc("GET /page.js", asset("page/page.js", "text/javascript; charset=utf-8"))
	return p, nil
}

// SignInQuery gives the query that, behind the address of the page, opens the page once, within the next ten minutes.
func (p *Page) SignInQuery() string {
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	keepYoung(p.codes, maxSignedIn-1)
	p.codes[code] = time.Now().Add(10 * time.Minute)
	return "?code=" + url.QueryEscape(code)
}

// ServeHTTP answers every path of the page. Each one checks Host, and Origin where the request changes anything.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !p.hostKnown(r.Host) {
		http.Error(w, "This name is not one the approvals page answers to. Use the address that hearsay printed, or list the name under approvals.hosts.", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodPost && !sameOrigin(r) {
		http.Error(w, "This request came from another page and was not carried out.", http.StatusForbidden)
		return
	}
	p.mux.ServeHTTP(w, r)
}

func (p *Page) hostKnown(host string) bool {
	if slices.Contains(p.opt.Hosts, host) {
		return true
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return name == "localhost" || name == "127.0.0.1" || name == "::1"
}

// sameOrigin wants the Origin that every browser sends with a POST. What sends none is not a browser and has no cookie to abuse,
// but neither has it a place here.
func sameOrigin(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && (origin.Scheme == "http" || origin.Scheme == "https") && origin.Host == r.Host
}

func (p *Page) signedIn(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.cookies[cookie.Value] // 128 random bits: looking one up tells a guesser nothing
	return ok && time.Now().Before(until)
}

func (p *Page) welcome(w http.ResponseWriter) {
	value := rand.Text()
	p.mu.Lock()
	keepYoung(p.cookies, maxSignedIn-1)
	p.cookies[value] = time.Now().Add(signInFor)
	p.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: p.opt.Secure, MaxAge: int(signInFor.Seconds())})
	backHome(w, "./")
}

// backHome redirects relative to the address the browser used: http.Redirect would resolve it against the path that is left
// once a prefix was stripped.
func backHome(w http.ResponseWriter, location string) {
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}

// keepYoung takes out what has run out, and the oldest until n are left.
func keepYoung(m map[string]time.Time, n int) {
	for k, until := range m {
		if time.Now().After(until) {
			delete(m, k)
		}
	}
	for len(m) > n {
		oldest := ""
		for k, until := range m {
			if oldest == "" || until.Before(m[oldest]) {
				oldest = k
			}
		}
		delete(m, oldest)
	}
}

type view struct {
	Questions []shown
	Message   string
	Version   uint64
}

// shown is a question with the pieces the page needs of it.
type shown struct {
	Pending
	Rows []row
}

func (p *Page) view(message string) view {
	waiting, version := p.desk.Waiting()
	v := view{Message: message, Version: version}
	for _, w := range waiting {
		v.Questions = append(v.Questions, shown{w, w.Question.rows()})
	}
	return v
}

func (p *Page) index(w http.ResponseWriter, r *http.Request) {
	if code := r.URL.Query().Get("code"); code != "" {
		p.mu.Lock()
		until, ok := p.codes[code]
		delete(p.codes, code)
		p.mu.Unlock()
		if ok && time.Now().Before(until) {
			p.welcome(w)
			return
		}
		p.askToken(w, "This link was used already, or is older than ten minutes.")
		return
	}
	if !p.signedIn(r) {
		p.askToken(w, "")
		return
	}
	render(w, http.StatusOK, "index.html", p.view(r.URL.Query().Get("done")))
}

func (p *Page) askToken(w http.ResponseWriter, message string) {
	render(w, http.StatusUnauthorized, "sign-in.html", view{Message: message})
}

func (p *Page) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if subtle.ConstantTimeCompare([]byte(r.PostFormValue("token")), []byte(p.opt.Token)) != 1 {
		p.askToken(w, "That is not the token.")
		return
	}
	p.welcome(w)
}

func (p *Page) list(w http.ResponseWriter, r *http.Request) {
	if !p.signedIn(r) {
		http.Error(w, "Sign in first.", http.StatusUnauthorized)
		return
	}
	render(w, http.StatusOK, "list.html", p.view(""))
}

func (p *Page) answer(w http.ResponseWriter, r *http.Request) {
	if !p.signedIn(r) {
		p.askToken(w, "Sign in first; nothing was answered.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	verdict, err := ParseVerdict(r.PostFormValue("verdict"))
	if err != nil {
		http.Error(w, "The answers are once, session and deny; nothing was answered.", http.StatusBadRequest)
		return
	}
	id := r.PostFormValue("id")
	waiting, _ := p.desk.Waiting()
	i := slices.IndexFunc(waiting, func(w Pending) bool { return w.ID == id })
	switch {
	case i < 0:
		// Answered elsewhere in the meantime, perhaps differently: the desk decides what that means.
		err = p.desk.Answer(id, r.PostFormValue("digest"), verdict, "page")
	case subtle.ConstantTimeCompare([]byte(waiting[i].Once), []byte(r.PostFormValue("once"))) != 1:
		http.Error(w, "The answer does not belong to the question on the page; load the page again.", http.StatusForbidden)
		return
	default:
		err = p.desk.Answer(id, r.PostFormValue("digest"), verdict, "page")
	}
	message := map[Verdict]string{Deny: "Denied.", Once: "Allowed this once.", Session: "Allowed, and its values for this session."}[verdict]
	if err != nil {
		message = strings.ToUpper(err.Error()[:1]) + err.Error()[1:] + "."
	}
	backHome(w, "./?done="+url.QueryEscape(message))
}

// events tells the page's script that the list has changed.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	if !p.signedIn(r) {
		http.Error(w, "Sign in first.", http.StatusUnauthorized)
		return
	}
	p.mu.Lock()
	full := p.streams >= maxStreams
	if !full {
		p.streams++
	}
	p.mu.Unlock()
	if full {
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		p.mu.Lock()
		p.streams--
		p.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		changed := p.desk.Changed()
		_, version := p.desk.Waiting()
		if _, err := fmt.Fprintf(w, "data: %d\n\n", version); err != nil || out.Flush() != nil {
			return
		}
		if !p.waitChange(r.Context(), w, out, changed) {
			return
		}
	}
}

func (p *Page) waitChange(ctx context.Context, w io.Writer, out *http.ResponseController, changed <-chan struct{}) bool {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-changed:
			return true
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if _, err := io.WriteString(w, ": still here\n\n"); err != nil || out.Flush() != nil {
				return false
			}
		}
	}
}

func render(w http.ResponseWriter, status int, name string, v view) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	pages.ExecuteTemplate(w, name, v) // the templates are fixed; what can fail is the connection
}

func asset(name, contentType string) http.HandlerFunc {
	data, err := assets.ReadFile(name)
	if err != nil {
		panic(err) // embedded: absent only from a broken build
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Write(data)
	}
}
