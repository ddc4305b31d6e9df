package gate

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

func TestSignedWords(t *testing.T) {
	key := bytes.Repeat([]byte("k"), MinKey)
	at := time.Unix(1_700_000_000, 0)
	sig, err := SignWords(key, "ann", "pay 100", at)
	if err != nil {
		t.Fatal(err)
	}
	o, err := VerifyWords(key, "ann", "pay 100", sig, at.Add(time.Minute))
	if err != nil || o.Trust != User || o.Text != "pay 100" {
		t.Fatal(o, err)
	}
	version, rest, _ := strings.Cut(sig, ".")
	unix, mac, _ := strings.Cut(rest, ".")
	for name, v := range map[string]struct {
		key       []byte
		who, text string
		sig       string
		now       time.Time
	}{
		"another text":      {key, "ann", "pay 900", sig, at},
		"another principal": {key, "ben", "pay 100", sig, at},
		"moved border":      {key, "annp", "ay 100", sig, at},
		"another key":       {bytes.Repeat([]byte("x"), MinKey), "ann", "pay 100", sig, at},
		"a short key":       {nil, "ann", "pay 100", sig, at},
		"too old":           {key, "ann", "pay 100", sig, at.Add(SignedFor + time.Second)},
		"from the future":   {key, "ann", "pay 100", sig, at.Add(-SignedFor - time.Second)},
		"another time":      {key, "ann", "pay 100", version + ".1700000001." + mac, at},
		"another version":   {key, "ann", "pay 100", "v2." + rest, at},
		"time as text":      {key, "ann", "pay 100", version + ".17000000000000." + mac, at},
		"no mac":            {key, "ann", "pay 100", version + "." + unix, at},
		"odd mac":           {key, "ann", "pay 100", version + "." + unix + ".***", at},
		"nothing":           {key, "ann", "pay 100", "", at},
		"a huge text":       {key, "ann", strings.Repeat("a", MaxWords+1), sig, at},
	} {
		if _, err := VerifyWords(v.key, v.who, v.text, v.sig, v.now); err == nil {
			t.Errorf("%s: good", name)
		}
	}
	weak := []byte("weak")
	byWeak := "v1." + unix + "." + base64.RawURLEncoding.EncodeToString(wordsMAC(weak, "ann", "pay 100", unix))
	if _, err := VerifyWords(weak, "ann", "pay 100", byWeak, at); err == nil {
		t.Error("a key that can be guessed")
	}
	if _, err := SignWords(nil, "ann", "x", at); err == nil {
		t.Error("signed with a short key")
	}
	if _, err := SignWords(key, "ann", strings.Repeat("a", MaxWords+1), at); err == nil {
		t.Error("signed a huge text")
	}
	// A time that is signed but is no number cannot be made by SignWords; whoever has the key could.
	forged := "v1.soon." + base64.RawURLEncoding.EncodeToString(wordsMAC(key, "ann", "pay 100", "soon"))
	if _, err := VerifyWords(key, "ann", "pay 100", forged, at); err == nil {
		t.Error("a time that is no number")
	}
}
