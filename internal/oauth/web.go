package oauth

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Bounds of what strangers send.
const (
	maxDocument = 256 << 10 // the metadata of large providers has a few KiB
	maxHeaders  = 32 << 10
	maxURL      = 4 << 10
	maxShown    = 300 // characters of theirs in a message
	maxDepth    = 32

	exchangeTime = 30 * time.Second // one request and its whole answer
)

// web is the HTTP of OAuth: each connection is judged by the dialer, and an answer is read whole and strictly before anything else
// sees it. It keeps no cookies, knows no proxy and follows no redirect.
type web struct {
	dialer *egress.Dialer
	base   http.RoundTripper
	client *http.Client // gives documents
}

// newWeb takes the certificates that count, nil for the system's.
func newWeb(dialer *egress.Dialer, roots *x509.CertPool) *web {
	base := &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableCompression: true, DisableKeepAlives: true,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: maxHeaders,
	}
	return &web{dialer: dialer, base: base, client: &http.Client{Transport: documents{base}, Timeout: exchangeTime}}
}

// documents is a [http.RoundTripper] whose answers are whole JSON documents without ambiguity, or empty.
type documents struct{ base http.RoundTripper }

func (d documents) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := parseEndpoint(req.URL.String()); err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", "hearsay")
	resp, err := d.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 3 {
		return nil, fmt.Errorf("HTTP status %d: redirects are not followed", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("its answer is larger than %d bytes", maxDocument)
	}
	v, err := strictjson.Parse(data, strictjson.Limits{MaxBytes: maxDocument, MaxDepth: maxDepth})
	switch {
	case err == nil && isJSON(resp.Header):
		data = v.Append(nil)
	case resp.StatusCode/100 != 2:
		data = nil // the status says enough
	case err != nil:
		return nil, fmt.Errorf("its answer is not JSON that is read: %w", err)
	default:
		return nil, errors.New("its answer is not JSON")
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	resp.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return resp, nil
}

func isJSON(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// get fetches a JSON document. A status of the 400s is no document: the zero value.
func (w *web) get(ctx context.Context, address string) (strictjson.Value, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return strictjson.Value{}, err
	}
	req.Header.Set("Accept", "application/json")
	v, status, err := w.do(req)
	switch {
	case err != nil:
		return v, err
	case status/100 == 4:
		return strictjson.Value{}, nil
	case status != http.StatusOK:
		return v, fmt.Errorf("HTTP status %d", status)
	}
	return v, nil
}

// do sends a request and gives the JSON of the answer; the zero value where it brings none.
func (w *web) do(req *http.Request) (strictjson.Value, int, error) {
	resp, err := w.client.Do(req)
	if err != nil {
		return strictjson.Value{}, 0, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || len(data) == 0 {
		return strictjson.Value{}, resp.StatusCode, err
	}
	v, err := strictjson.Parse(data, strictjson.Limits{MaxBytes: maxDocument * 2, MaxDepth: maxDepth}) // written again, it may have grown
	return v, resp.StatusCode, err
}

// status sends a request and looks at the head of the answer only.
func (w *web) status(req *http.Request) (int, http.Header, error) {
	ctx, cancel := context.WithTimeout(req.Context(), exchangeTime)
	defer cancel()
	req = req.WithContext(ctx)
	req.Header.Set("User-Agent", "hearsay")
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header, nil
}

// judge asks whether the policy lets a connection to an address be made, without making it.
func (w *web) judge(ctx context.Context, u egress.URL) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	return w.dialer.Judge(ctx, u.Target, nil).Err
}

// shown is an error with the outside world in it, as a person may read it.
type shown struct {
	text string
	err  error
}

func (s *shown) Error() string { return s.text }
func (s *shown) Unwrap() error { return s.err }

// show says what was being done, and why it did not work: without the address that the HTTP client puts around it, cleaned, and cut.
func show(doing string, err error) error {
	cause := err
	for uerr := (*url.Error)(nil); errors.As(cause, &uerr); {
		cause = uerr.Err
	}
	text := cause.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = "no answer in time"
	}
	return &shown{doing + ": " + visible(text), err}
}

// visible is text of others on one line: what does not print is written out, and the rest of a long text is left out.
func visible(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > maxShown {
			b.WriteString("…")
			break
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// quoted is text of others in quotation marks.
func quoted(text string) string {
	if runes := []rune(text[:min(len(text), 4*maxShown)]); len(runes) > maxShown {
		text = string(runes[:maxShown]) + "…"
	}
	return strconv.Quote(text)
}
