package broker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-4e9f7b04/hearsay/egress"
	"github.com/seed-4e9f7b04/hearsay/internal/broker"
)

const planted = "planted-secret-0123456789"

func secret(t testing.TB, v string) broker.Secret {
	t.Helper()
	s, err := broker.NewSecret([]byte(v))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSecretCannotBePrinted tries every way a value gets into a log by accident.
func TestSecretCannotBePrinted(t *testing.T) {
	s := secret(t, planted)
	type holder struct {
		S   broker.Secret
		P   *broker.Secret
		Any any
		m   map[string]broker.Secret
	}
	h := holder{s, &s, s, map[string]broker.Secret{"a": s}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%10.3s"} {
		fmt.Fprintf(&out, verb+verb+verb+"\n", s, h, &h)
	}
	fmt.Fprintln(&out, s, h, error(fmt.Errorf("with %w and %v", os.ErrClosed, s)))
	_ = json.NewEncoder(&out).Encode(h)
	_ = json.NewEncoder(&out).Encode(map[string]any{"s": s, "o": broker.Options{Secret: s}})
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("log", "s", s, "h", h, "p", &s, slog.Group("g", "s", s), "o", broker.Options{Secret: s})
	}
	b, err := broker.New([]broker.Options{{Host: "a.test", Header: "X: {secret}", Secret: s}})
	if err != nil {
		t.Fatal(err)
	}
	target, _ := egress.ParseTarget("a.test", 443)
	_, cred, _ := b.For("", target, "/")
	fmt.Fprintf(&out, "%v %+v %v %+v %#v\n", b, b, cred, cred, cred)
	for _, form := range []string{planted, fmt.Sprintf("%x", planted), fmt.Sprintf("%X", planted), fmt.Sprint([]byte(planted)), strings.ReplaceAll(fmt.Sprintf("%#v", []byte(planted)), "[]byte", "")} {
		if strings.Contains(out.String(), form) {
			t.Errorf("printed as %q in\n%s", form, out.String())
		}
	}
	if strings.Count(out.String(), "[secret]") < 30 {
		t.Errorf("the redaction is missing in\n%s", out.String())
	}
}

// TestReadSecret: from a file or the environment, never from the configuration itself, and never shown in an error.
func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Setenv("PLANTED", planted)
	t.Setenv("PLANTED_BAD", planted+"\n"+planted)
	t.Setenv("PLANTED_EMPTY", "")
	for source, ok := range map[string]bool{
		"file:" + write("good", planted+"\n"):                  true,
		"file:" + write("crlf", planted+"\r\n"):                true,
		"env:PLANTED":                                          true,
		"env:PLANTED_BAD":                                      false,
		"env:PLANTED_EMPTY":                                    false,
		"env:NOT_SET_ANYWHERE":                                 false,
		"env:":                                                 false,
		"file:" + filepath.Join(dir, "absent"):                 false,
		"file:" + write("empty", "\n"):                         false,
		"file:" + write("two", planted+"\n"+planted+"\n"):      false,
		"file:" + write("nul", planted+"\x00"):                 false,
		"file:" + write("long", strings.Repeat(planted, 1000)): false,
		"file:" + write("space", " "+planted):                  false,
		planted:                                                false,
		"":                                                     false,
		"plain:" + planted:                                     false,
	} {
		s, err := broker.ReadSecret(source)
		if (err == nil) != ok || ok && s.Reveal() != planted {
			t.Errorf("%q: %v", source, err)
		}
		if err != nil && strings.Contains(err.Error(), planted) {
			t.Errorf("%q: the error shows it: %v", source, err)
		}
	}
}

func TestEqual(t *testing.T) {
	if s := secret(t, planted); !s.Equal(planted) || s.Equal(planted+"x") || s.Equal("") {
		t.Error("wrong")
	}
	if (broker.Secret{}).Equal("") {
		t.Error("no secret equals the empty text")
	}
}

// TestNewRefuses names each entry that must not start.
func TestNewRefuses(t *testing.T) {
	s := secret(t, planted)
	short, _ := broker.NewSecret([]byte("short"))
	good := broker.Options{Host: "a.test", Header: "Authorization", Secret: s}
	if _, err := broker.New([]broker.Options{good}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*broker.Options){
		"no host":                  func(o *broker.Options) { o.Host = "" },
		"any host":                 func(o *broker.Options) { o.Host = "*" },
		"subdomains":               func(o *broker.Options) { o.Host = "*.a.test" },
		"domain and below":         func(o *broker.Options) { o.Host = ".a.test" },
		"URL":                      func(o *broker.Options) { o.Host = "https://a.test/" },
		"port 0":                   func(o *broker.Options) { o.Host = "a.test:0" },
		"no secret":                func(o *broker.Options) { o.Secret = broker.Secret{} },
		"secret too short to find": func(o *broker.Options) { o.Secret = short },
		"nothing to stamp":         func(o *broker.Options) { o.Header = "" },
		"header without its mark":  func(o *broker.Options) { o.Header = "Authorization: Bearer" },
		"header with two marks":    func(o *broker.Options) { o.Header = "A: {secret} {secret}" },
		"header with a line break": func(o *broker.Options) { o.Header = "A: {secret}\r\nB: c" },
		"header name with a space": func(o *broker.Options) { o.Header = "A b" },
		"framing header":           func(o *broker.Options) { o.Header = "Transfer-Encoding" },
		"Host":                     func(o *broker.Options) { o.Header = "host" },
		"proxy header":             func(o *broker.Options) { o.Header = "Proxy-Authorization" },
		"short placeholder":        func(o *broker.Options) { o.Placeholder = "TOKEN" },
		"placeholder is it":        func(o *broker.Options) { o.Placeholder = planted },
		"path without a slash":     func(o *broker.Options) { o.Path = "b" },
		"path of everything":       func(o *broker.Options) { o.Path = "/" },
		"path with dots":           func(o *broker.Options) { o.Path = "/a/../b" },
		"path with a query":        func(o *broker.Options) { o.Path = "/a?b" },
	} {
		o := good
		change(&o)
		if _, err := broker.New([]broker.Options{o}); err == nil {
			t.Errorf("%s: taken", name)
		} else if strings.Contains(err.Error(), planted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := broker.New([]broker.Options{good, good}); err == nil {
		t.Error("the same host, path and client twice: taken")
	}
}

func TestNilBrokerHasNone(t *testing.T) {
	var b *broker.Broker
	target, _ := egress.ParseTarget("a.test", 443)
	if https, c, err := b.For("x", target, "/"); https.IsValid() || c != nil || err != nil || b.HidesFrom("x", target) || b.Targets("x") != nil {
		t.Error("something comes of nothing")
	}
}

// TestMask holds for every cut of a stream: no secret in what goes on, and not a byte more, less or changed besides.
func TestMask(t *testing.T) {
	b, err := broker.New([]broker.Options{{Host: "a.test", Header: "Authorization", Secret: secret(t, "abababac"), Placeholder: "PLACEHOLDER"}})
	if err != nil {
		t.Fatal(err)
	}
	target, _ := egress.ParseTarget("a.test", 80)
	_, cred, err := b.For("", target, "/")
	if err != nil || cred == nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "ab", "abab", "c", "x", "abababac", "ababababac"})).Draw(t, "parts")
		text := strings.Join(parts, "")
		m := cred.Mask()
		var out []byte
		for rest := []byte(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			out = append(out, m.Next(rest[:n])...)
			rest = rest[n:]
		}
		out = append(out, m.End()...)
		if want := strings.ReplaceAll(text, "abababac", "********"); string(out) != want {
			t.Fatalf("%q became %q, want %q", text, out, want)
		}
	})
}
