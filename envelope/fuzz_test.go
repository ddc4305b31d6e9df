package envelope

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

// seeds adds every text of every vector file of this package.
func seeds(f *testing.F, add func(v vector)) {
	for _, name := range []string{"plain", "labels", "sealed", "lookalikes", "limits", "reading"} {
		for _, v := range readVectors(f, "testdata/vectors/"+name+".json") {
			add(v)
		}
	}
}

func FuzzWrap(f *testing.F) {
	seeds(f, func(v vector) {
		name, value := "", ""
		if len(v.Attributes) > 0 {
			name, value = v.Attributes[0][0], v.Attributes[0][1]
		}
		f.Add(v.Kind, name, value, v.Provenance, v.Content, v.Nonce, v.Lookalikes, uint16(3))
	})
	f.Fuzz(func(t *testing.T, kind, name, value, provenance, content, nonce string, lookalikes bool, cut uint16) {
		e := Envelope{kind, []Attribute{{name, value}, {value, name}}, provenance, "", lookalikes}
		if nonce != "" {
			e.Nonce = NewNonce()
		}
		checkFrame(t, e, content)

		var got bytes.Buffer
		w := e.NewWriter(&got)
		at := min(int(cut), len(content))
		w.Write([]byte(content[:at]))
		w.Write([]byte(content[at:]))
		w.Close()
		if want := e.Wrap(content); got.String() != want {
			t.Fatalf("cut at %d:\n%q\n%q", at, got.String(), want)
		}
	})
}

func FuzzRead(f *testing.F) {
	seeds(f, func(v vector) {
		f.Add(v.Content)
		if v.Want != nil {
			f.Add(*v.Want)
		}
	})
	f.Fuzz(func(t *testing.T, text string) {
		body, ok := Body(text)
		exact, exactOK := Exact(text)
		e, parsed, err := Parse(text)
		if !ok && (exactOK || err == nil || body != "") {
			t.Fatalf("Body refuses %q, others read it: %v %v %q", text, exactOK, err, body)
		}
		if ok && holdsToken(body) {
			t.Fatalf("a body holds the token: %q", body)
		}
		if exactOK && trim(exact) != body || err == nil && parsed != body {
			t.Fatalf("readers differ on %q: %q %q %q", text, body, exact, parsed)
		}
		if err != nil || !exactOK || !utf8.ValidString(text) {
			return
		}
		if again := e.Wrap(exact); again != trim(text) && holdsToken(e.Provenance) == false && e.Provenance == repaired(e.Provenance) {
			t.Fatalf("Parse and Exact lose something:\n%q\n%q", trim(text), again)
		}
	})
}

// repaired is the provenance as a frame's writer writes it.
func repaired(provenance string) string { return string(appendProvenance(nil, provenance, false)) }
