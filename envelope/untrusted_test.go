package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestUntrustedNeverPrintsItsText(t *testing.T) {
	const planted = "planted-words"
	u := NewUntrusted(planted)
	var out bytes.Buffer
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%c", "%10.2s", "%w", "%T %v"} {
		fmt.Fprintf(&out, format+"\n", u, u)
		fmt.Fprintf(&out, format+"\n", &u, &u)
		fmt.Fprintf(&out, format+"\n", []Untrusted{u}, map[string]Untrusted{"a": u})
		fmt.Fprintf(&out, format+"\n", struct{ U Untrusted }{u}, any(u))
	}
	fmt.Fprintln(&out, u, u.String(), u.GoString(), fmt.Errorf("%w: %v", errors.New("x"), u))
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(handler).Info("m", "u", u, "p", &u, "s", []Untrusted{u}, "g", slog.GroupValue(slog.Any("u", u)))
	}
	data, err := json.Marshal(map[string]any{"u": u, "p": &u, "m": map[Untrusted]int{u: 1}})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(data)
	for _, shown := range []string{planted, fmt.Sprintf("%x", planted), fmt.Sprintf("%X", planted), "112 108 97"} {
		if strings.Contains(out.String(), shown) {
			t.Errorf("the text is shown as %q in:\n%s", shown, out.String())
		}
	}
	if u.RawUntrustedText() != planted || u.Len() != len(planted) {
		t.Error("the text is not what was taken in")
	}
	if (Untrusted{}).RawUntrustedText() != "" || (Untrusted{}).Len() != 0 {
		t.Error("the zero value holds something")
	}
	if got, want := u.Wrap(Envelope{Kind: "k"}), (Envelope{Kind: "k"}).Wrap(planted); got != want {
		t.Errorf("Wrap gives %q, want %q", got, want)
	}
}
