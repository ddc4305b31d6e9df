package oauth

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Any page in any browser of the machine can call the address that a sign-in waits at. None of these is taken, and the right answer
// still is.
func TestStrangersAnswers(t *testing.T) {
	c, err := listen(0, "STATE")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	right := url.Values{"state": {"STATE"}, "code": {"abc"}}.Encode()
	for _, tc := range []struct {
		name, method, path, host string
		header                   http.Header
		status                   int
	}{
		{"no state", "GET", "/callback?code=evil", "", nil, 400},
		{"a wrong state", "GET", "/callback?code=evil&state=guess", "", nil, 400},
		{"a state that is a prefix", "GET", "/callback?code=evil&state=STAT", "", nil, 400},
		{"two states", "GET", "/callback?code=evil&state=guess&state=STATE", "", nil, 400},
		{"two codes", "GET", "/callback?code=evil&code=abc&state=STATE", "", nil, 400},
		{"a query that is none", "GET", "/callback?state=STATE;code=evil", "", nil, 400},
		{"a name that resolves here", "GET", "/callback?" + right, "evil.example", nil, 421},
		{"localhost instead of the address", "GET", "/callback?" + right, "localhost:" + c.host[strings.IndexByte(c.host, ':')+1:], nil, 421},
		{"another port", "GET", "/callback?" + right, "127.0.0.1:1", nil, 421},
		{"a form", "POST", "/callback?" + right, "", nil, 405},
		{"a script", "GET", "/callback?" + right, "", http.Header{"Origin": {"https://evil.example"}}, 405},
		{"another path", "GET", "/?" + right, "", nil, 404},
		{"the answer", "GET", "/callback?" + right, "", nil, 200},
		{"the answer again", "GET", "/callback?" + right, "", nil, 400},
		{"another answer with the state", "GET", "/callback?code=evil&state=STATE", "", nil, 400},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, "http://"+c.host+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tc.host
		for k, v := range tc.header {
			req.Header[k] = v
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tc.status {
			t.Errorf("%s: status %d, want %d", tc.name, resp.StatusCode, tc.status)
		}
		if strings.Contains(string(body), "evil") || strings.Contains(string(body), "STATE") || resp.Header.Get("Content-Security-Policy") != "default-src 'none'" {
			t.Errorf("%s: the page repeats what came: %s", tc.name, body)
		}
	}
	if got := <-c.answers; got.Get("code") != "abc" {
		t.Errorf("taken: %v", got)
	}
	if !strings.HasPrefix(c.host, "127.0.0.1:") {
		t.Errorf("it listens at %s", c.host)
	}
}

func TestGuessingEndsASignIn(t *testing.T) {
	c, err := listen(0, "STATE")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for range 2 * maxMisses {
		c.take(url.Values{"state": {"guess"}})
	}
	if _, err := wait(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Error(err)
	}
}

func TestAnAnswerIsPasted(t *testing.T) {
	r := newRig(t)
	a := r.account()
	st, err := a.SignIn(t.Context(), false, func(req Request) error {
		go func() {
			// A browser on another machine: it ends at an address that does not open there.
			client := *http.DefaultClient
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			client.Transport = browserTransport(r)
			resp, err := client.Get(req.Address)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			at := resp.Header.Get("Location")
			for _, wrong := range []string{"hello", "https://evil.example/callback?" + strings.SplitN(at, "?", 2)[1], req.Redirect + "?state=guess&code=x", strings.Replace(at, "/callback", "/other", 1)} {
				if err := req.Paste(wrong); err == nil {
					t.Errorf("%s is taken", wrong)
				}
			}
			if err := req.Paste(at); err != nil {
				t.Error(err)
			}
		}()
		return nil
	})
	if err != nil || !st.SignedIn {
		t.Error(err)
	}
}

// A sign-in that nobody finishes ends with its context, and its address is free again.
func TestASignInEnds(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	redirect := ""
	_, err := r.account().SignIn(ctx, false, func(req Request) error {
		redirect = req.Redirect
		cancel()
		return nil
	})
	if err == nil {
		t.Fatal("nobody signed in")
	}
	if resp, err := http.Get(redirect); err == nil {
		resp.Body.Close()
		if resp.Header.Get("Content-Security-Policy") != "" {
			t.Error("the address still waits")
		}
	}
	if r.kept() != "" || len(r.asked) != 0 {
		t.Error("something was asked for or kept")
	}
}
