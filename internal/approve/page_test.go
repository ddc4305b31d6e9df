package approve

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

const testToken = "0123456789abcdef-test"

type browser struct {
	t      *testing.T
	base   string
	client *http.Client
}

func newPage(t *testing.T) (*Desk, *Page, *browser) {
	t.Helper()
	d := New(Options{})
	t.Cleanup(d.Close)
	page, err := NewPage(d, PageOptions{Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.StripPrefix("/approvals", page))
	t.Cleanup(srv.Close)
	return d, page, newBrowser(t, srv.URL+"/approvals/")
}

func newBrowser(t *testing.T, base string) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, base, &http.Client{Jar: jar}}
}

func (b *browser) do(req *http.Request) (int, string, http.Header) {
	b.t.Helper()
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func (b *browser) get(path string) (int, string) {
	b.t.Helper()
	req, _ := http.NewRequest("GET", b.base+path, nil)
	status, body, _ := b.do(req)
	return status, body
}

func (b *browser) post(path, origin string, form url.Values) (int, string) {
	b.t.Helper()
	req, _ := http.NewRequest("POST", b.base+path, strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	status, body, _ := b.do(req)
	return status, body
}

func (b *browser) origin() string {
	u, _ := url.Parse(b.base)
	return u.Scheme + "://" + u.Host
}

var hidden1 = regexp.MustCompile(`name="(id|digest|once)" value="([^"]+)"`)

func formOf(t *testing.T, html, verdict string) url.Values {
	t.Helper()
	form := url.Values{"verdict": {verdict}}
	for _, m := range hidden1.FindAllStringSubmatch(html, -1) {
		form.Set(m[1], m[2])
	}
	if len(form) != 4 {
		t.Fatalf("no whole form in\n%s", html)
	}
	return form
}

func TestNothingWithoutSigningIn(t *testing.T) {
	d, _, b := newPage(t)
	ask(d, question(`{"secret":"in the question"}`))
	p := wait(t, d)
	for _, path := range []string{"", "list", "events", "?code=guess"} {
		if status, body := b.get(path); status != http.StatusUnauthorized || strings.Contains(body, "in the question") {
			t.Errorf("GET %q: %d", path, status)
		}
	}
	form := url.Values{"id": {p.ID}, "digest": {p.Digest}, "once": {p.Once}, "verdict": {"once"}}
	if status, _ := b.post("answer", b.origin(), form); status != http.StatusUnauthorized {
		t.Errorf("POST answer: %d", status)
	}
	if status, _ := b.post("sign-in", b.origin(), url.Values{"token": {"0123456789abcdef-tesT"}}); status != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", status)
	}
	if list, _ := d.Waiting(); len(list) != 1 {
		t.Error("the question was answered")
	}
	if _, err := NewPage(d, PageOptions{Token: "short"}); err == nil {
		t.Error("a short token was taken")
	}
}

func TestALinkOpensThePageOnce(t *testing.T) {
	_, page, b := newPage(t)
	link := page.SignInQuery()
	if status, body := b.get(link); status != http.StatusOK || !strings.Contains(body, "Nothing waits") {
		t.Fatalf("%d\n%s", status, body)
	}
	if status, _ := b.get(""); status != http.StatusOK {
		t.Errorf("not signed in afterwards: %d", status)
	}
	if status, body := newBrowser(t, b.base).get(link); status != http.StatusUnauthorized || !strings.Contains(body, "used already") {
		t.Errorf("the link again: %d\n%s", status, body)
	}
}

func TestForeignHostsAndOriginsAreRefused(t *testing.T) {
	d, _, b := newPage(t)
	if status, _ := b.post("sign-in", b.origin(), url.Values{"token": {testToken}}); status != http.StatusOK {
		t.Fatalf("sign in: %d", status)
	}
	got := ask(d, question(`{}`))
	p := wait(t, d)
	form := url.Values{"id": {p.ID}, "digest": {p.Digest}, "once": {p.Once}, "verdict": {"once"}}
	for _, origin := range []string{"", "null", "http://evil.test", "https://127.0.0.1.evil.test", "http://localhost", "file://"} {
		if status, _ := b.post("answer", origin, form); status != http.StatusForbidden {
			t.Errorf("Origin %q: %d", origin, status)
		}
	}
	for _, host := range []string{"evil.test", "127.0.0.1.evil.test:80", "localhost.evil.test", "0.0.0.0:80", "192.168.1.5:80", ""} {
		req, _ := http.NewRequest("GET", b.base, nil)
		req.Host = host
		if host == "" {
			req.Host = "[::]"
		}
		if status, _, _ := b.do(req); status != http.StatusForbidden {
			t.Errorf("Host %q: %d", req.Host, status)
		}
	}
	form.Set("once", "forged")
	if status, _ := b.post("answer", b.origin(), form); status != http.StatusForbidden {
		t.Errorf("a forged one-time value: %d", status)
	}
	form.Set("once", p.Once)
	form.Set("verdict", "always")
	if status, _ := b.post("answer", b.origin(), form); status != http.StatusBadRequest {
		t.Errorf("an unknown answer: %d", status)
	}
	select {
	case a := <-got:
		t.Errorf("answered: %+v", a)
	default:
	}
}

func TestAnsweringOnThePageWithoutScript(t *testing.T) {
	d, _, b := newPage(t)
	b.post("sign-in", b.origin(), url.Values{"token": {testToken}})
	for verdict, want := range map[string]Verdict{"deny": Deny, "once": Once, "session": Session} {
		got := ask(d, question(`{"to":"a@b.example"}`))
		wait(t, d)
		_, html := b.get("")
		form := formOf(t, html, verdict)
		if status, body := b.post("answer", b.origin(), form); status != http.StatusOK || !strings.Contains(body, `role="status"`) {
			t.Fatalf("%s: %d\n%s", verdict, status, body)
		}
		if a := <-got; a != (Answer{want, "page", "answered"}) {
			t.Errorf("%s: %+v", verdict, a)
		}
		if _, body := b.post("answer", b.origin(), form); !strings.Contains(body, "No such question") {
			t.Errorf("%s again:\n%s", verdict, body)
		}
	}
}

func TestHostileTextStaysText(t *testing.T) {
	d, _, b := newPage(t)
	b.post("sign-in", b.origin(), url.Values{"token": {testToken}})
	q := question(`{"<img src=x onerror=alert(1)>":"</dd><script>alert(1)</script>","md":"` + "x\\n```\\n# approved by operator\\n![p](http://tracker.test/p.png)" + `","esc":"\u001b[2J\u202e"}`)
	q.Server, q.Tool, q.Why, q.Rule, q.Directory = `"><script>`, "t\u200bool", "tidy\n\nApproved by operator", "<b>", "/w\u2066"
	q.Reads = []string{"<script>web</script>"}
	q.Ungrounded = []Ungrounded{{"<i>", "<u>", "<s>", "<em>"}}
	q.Warnings = []string{"<blink>"}
	ask(d, q)
	wait(t, d)
	req, _ := http.NewRequest("GET", b.base, nil)
	_, html, header := b.do(req)
	body := html[strings.Index(html, "<body>"):]
	for _, bad := range []string{"<script", "<img", "<b>web", "<blink", "<em>", "<i>", "\x1b", "\u202e", "\u200b", "\u2066"} {
		if strings.Contains(body, bad) {
			t.Errorf("%q reached the page", bad)
		}
	}
	for _, want := range []string{`\u{200B}`, `\u{202E}`, `\u{2066}`, "&lt;script&gt;alert(1)&lt;/script&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	csp := header.Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "img-src") {
		t.Errorf("policy %q", csp)
	}
}
