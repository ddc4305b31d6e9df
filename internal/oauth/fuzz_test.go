package oauth

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Whatever a token endpoint says, what is taken from it can stand in a header, and no error repeats it.
func FuzzGrant(f *testing.F) {
	for _, seed := range []string{
		`{"access_token":"SECRET-a","token_type":"Bearer","expires_in":3600,"refresh_token":"b","scope":"a b"}`,
		`{"access_token":"SECRET-a","token_type":"Bearer","expires_in":"1e9"}`, `{"access_token":7}`, `[]`, `null`,
		`{"access_token":"SECRET-\n","token_type":"bearer","expires_in":-0}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := strictjson.ParseString(text, strictjson.Limits{MaxDepth: maxDepth})
		if err != nil {
			return
		}
		g, err := readGrant(v)
		if err != nil {
			noSecret(t, err.Error())
			return
		}
		for _, token := range []string{g.access, g.refresh} {
			if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
				t.Errorf("%q", token)
			}
		}
		if g.access == "" || g.life < 0 || g.life > maxLife || checkScopes(g.scopes) != nil {
			t.Errorf("%+v", g)
		}
	})
}

// Whatever a challenge says, reading it ends, and what is shown of it stays on one line.
func FuzzChallenge(f *testing.F) {
	for _, seed := range []string{
		`Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource", scope="a b"`, `Basic realm="x", Bearer error="insufficient_scope"`,
		`Bearer`, `bearer error=a,,,`, `Bearer a="\"`, `"`, `Bearer ` + strings.Repeat(`a,`, 3000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := bearerChallenge(http.Header{"Www-Authenticate": {text}})
		for _, value := range c.Params {
			if strings.ContainsAny(visible(value)+quoted(value), "\n\r\x1b") {
				t.Errorf("%q", value)
			}
		}
	})
}
