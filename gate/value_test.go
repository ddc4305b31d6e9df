package gate

import (
	"strings"
	"testing"
)

func TestParseValue(t *testing.T) {
	tests := []struct {
		in   string
		hint Kind
		want string // kind and canonical form; "" for a value that is refused
	}{
		{"A.B+c@Host.Example.", Any, "mail a.b+c@host.example"},
		{"mailto:a@b.example", Any, "mail a@b.example"},
		{"MAILTO:a@b.example", Any, "mail a@b.example"},
		{"a b@c.example", Any, "name a b@c.example"},
		{"@c.example", Mail, "path @c.example"},
		{"a@localhost", Name, "name a@localhost"},
		{"a@-x.example", Name, "path a@-x.example"},

		{"HTTPS://A.Example/X?Y=1#z", Link, "link https://a.example/X?Y=1#z"},
		{"https://a.example/", Any, "link https://a.example"},
		{"a.example/x", Any, "link ://a.example/x"},
		{"https://[2001:db8::1]:8443/x", Any, "link https://[2001:db8::1]:8443/x"},
		{"https://a.example:99999/x", Any, "id https://a.example:99999/x"},
		{"https://u:p@a.example/x", Link, "name https://u:p@a.example/x"},
		{`https://a.example\x`, Link, `name https://a.example\x`},
		{"ht!tp://a.example/x", Link, "name ht!tp://a.example/x"},
		{"https:///x", Any, "name https:///x"},
		{"https://a..example/x", Any, "name https://a..example/x"},

		{"Www.A.Example", Host, "host www.a.example"},
		{"192.0.2.7", Host, "host 192.0.2.7"},
		{"[::1]", Host, "host [::1]"},
		{"localhost:8080", Host, "host localhost:8080"},
		{"bücher.example", Host, "host bücher.example"},
		{"xn--bcher-kva.example", Host, "host xn--bcher-kva.example"},
		{"a.example:x", Any, "name a.example:x"},
		{strings.Repeat("a", 64) + ".example", Any, "path " + strings.Repeat("a", 64) + ".example"},
		{"report.docx", Any, "path report.docx"},
		{"e.g", Any, "name e.g"},
		{"main.go", Any, "path main.go"},
		{"run.sh", Any, "host run.sh"},

		{"GB29 NWBK 6016 1331 9268 19", Account, "account iban:GB29NWBK60161331926819"},
		{"gb29nwbk60161331926819", Any, "account iban:GB29NWBK60161331926819"},
		{"GB29NWBK60161331926818", Any, "account GB29NWBK60161331926818"},
		{"UK12345678901234567890", Any, "account UK12345678901234567890"},
		{"AB12CDEFGHIJKL", Any, "id AB12CDEFGHIJKL"},
		{"AB12 CDEF 1234 GHIJ", Any, "name ab12 cdef 1234 ghij"},
		{"12 34 56", Account, "account 123456"},
		{"123", Account, "id 123"},
		{"AB12$5678901234", Any, "name ab12$5678901234"},

		{"+1 (555) 010-9999", Any, "phone +15550109999"},
		{"030 1234567", Phone, "phone 0301234567"},
		{"12345", Phone, "phone 12345"},
		{strings.Repeat("9", 37), Account, "account " + strings.Repeat("9", 37)}, // longer than any account, and read so in free text too

		{"2024-05-19 16:00", Any, "time 2024-05-19 16:00"},
		{"2024-05-19T16:00:30Z", Any, "time 2024-05-19 16:00"},
		{"2024-05-19", Any, "time 2024-05-19"},
		{"9:05", Any, "time 09:05"},
		{"June 13", Any, "time *-06-13"},
		{"15th of May", Any, "name 15th of may"},
		{"May 15th, 2024", Any, "time 2024-05-15"},
		{"13 june 2024", Any, "time 2024-06-13"},
		{"june 45", Any, "name june 45"},
		{"june 13 24", Any, "name june 13 24"},
		{"2024-13-41", Any, "phone 20241341"},
		{"2024-05-19 25 o'clock", Any, "name 2024-05-19 25 o'clock"},
		{"2024-05-19x", Any, "id 2024-05-19x"},
		{"25:99", Any, "id 25:99"},
		{"1:2:3:4", Any, "id 1:2:3:4"},
		{"1:234", Any, "id 1:234"},

		{"/srv/data/./x", Path, "path /srv/data/x"},
		{`C:\Users\x`, Path, "path C:/Users/x"},
		{"notes", Path, "path notes"},
		{"../x", Path, ""},
		{"/srv/data/../x", Path, ""},
		{"/srv/%2e%2e/x", Path, ""},
		{".", Path, ""},
		{"a\nb", Path, ""},

		{"1,200.50 €", Amount, "amount 1200.5"},
		{"many", Amount, "name many"},
		{"13", ID, "id 13"},
		{"#13", ID, "id #13"},
		{"<13>", ID, ""},
		{"13.", ID, ""},
		{"1.3", ID, "id 1.3"},
		{"١٣", ID, "id ١٣"},
		{"tab-2026-abc", Any, "id tab-2026-abc"},
		{"general", ID, "id general"},
		{"25hours Hotel", Name, "name 25hours hotel"},
		{"external_0", Name, "name external_0"},
		{"P@ss word", Secret, "secret P@ss word"},

		{"", Any, ""},
		{" \t", Any, ""},
		{strings.Repeat("x", maxValue+1), Any, ""},
		{"a\x00b", Any, ""},
		{"a\u200bb", Any, ""},
		{"a\u202eb", Any, ""},
		{"\ufb01le", Any, ""},                  // the ligature fi
		{"\uff41@b.example", Any, ""},          // full width
		{"p\u0430ypal", Any, ""},               // Cyrillic inside Latin
		{"\u03bfmega", Any, ""},                // Greek
		{"\u0561bc", Any, ""},                  // Armenian
		{"\u13a0bc", Any, ""},                  // Cherokee
		{"\u2c80bc", Any, ""},                  // Coptic
		{"x\ufe0f", Any, ""},                   // variation selector
		{"\u3164", Any, ""},                    // a filler that is no letter to the eye
		{"\xff\xfe", Any, ""},                  // no text at all
		{"Привет мир", Any, "name привет мир"}, // one alphabet throughout
		{"日本語 カナ", Any, "name 日本語 カナ"},
		{"naïve Δ test", Any, "name naïve δ test"}, // alphabets in words of their own
	}
	for _, tt := range tests {
		got, ok := parseValue(tt.in, tt.hint)
		s := ""
		if ok {
			s = got.kind.String() + " " + got.canon
		}
		if s != tt.want {
			t.Errorf("parseValue(%q, %v) = %q, want %q", tt.in, tt.hint, s, tt.want)
		}
	}
}

func TestKindsAndClassesByName(t *testing.T) {
	for k := range Text + 1 {
		text, _ := k.MarshalText()
		var back Kind
		if err := back.UnmarshalText(text); err != nil || back != k {
			t.Errorf("%v: %v, %v", k, back, err)
		}
	}
	for c := range Publishing + 1 {
		text, _ := c.MarshalText()
		var back Class
		if err := back.UnmarshalText(text); err != nil || back != c {
			t.Errorf("%v: %v, %v", c, back, err)
		}
		if c.about() == "" || c.OwnWords() == (c == Ordinary) {
			t.Errorf("%v: %q, own words %v", c, c.about(), c.OwnWords())
		}
	}
	var k Kind
	if err := k.UnmarshalText([]byte("mial")); err == nil || !strings.Contains(err.Error(), "mail") {
		t.Errorf("an unknown kind: %v", err)
	}
	if got := Kind(200).String(); got != "200" {
		t.Errorf("a kind without a name: %s", got)
	}
	if got := Trust(1).String(); got != "first-party" {
		t.Errorf("trust: %s", got)
	}
}

func TestEffectsByName(t *testing.T) {
	e, err := ParseEffects([]string{"send", "write"})
	if err != nil || e != Write|Send || e.String() != "write+send" {
		t.Errorf("%v %v", e, err)
	}
	if _, err := ParseEffects([]string{"read", "fly"}); err == nil {
		t.Error("an unknown effect was taken")
	}
	if Effects(0).String() != Unknown.String() || !Effects(0).Acting() || Read.Acting() {
		t.Error("the zero value is not unknown")
	}
}

// What is found in running text, one line a case: text, then the values, by kind.
func TestScan(t *testing.T) {
	tests := []struct{ in, want string }{
		{"see (https://a.example/x_(y)), or [here](http://b.example/z).", "link https://a.example/x_(y); link http://b.example/z"},
		{"<https://a.example/x> \"b.example/y\" 'www.c.example'", "link https://a.example/x; link ://b.example/y; host www.c.example"},
		{"to:a@b.example,c@d.example;", "path to:a@b.example; mail a@b.example; mail c@d.example"},
		{"x=www.a.example", "path x=www.a.example; host www.a.example"},
		{"https://a.example@evil.test/ now", "link https://a.example@evil.test/"},
		{"IBAN DE89 3704 0044 0532 0130 00, BIC X", "account iban:DE89370400440532013000"},
		{"account 0123456789.", "account 0123456789; phone 0123456789"},
		{"call +15550109999", "phone +15550109999"},
		{"on 2024-05-19 16 at 20240519", "time 2024-05-19"},
		{"20241340", "account 20241340; phone 20241340"},
		{"x12345678y", ""},
		{"v1.2 costs 1200.50, i.e. 3 p.m. No.5", ""},
		{"1234 5678-90", "account 1234567890; phone 1234567890"},
		{"see p\u0430ypal.example", ""},
		{"2024-05-1999", "phone 2024051999; account 2024051999"},
		{"x/evil.com a:evil.org docs/readme.md #www.x.io =a@b.example", "path x/evil.com; host evil.com; path a:evil.org; host evil.org; path docs/readme.md; host www.x.io; mail =a@b.example"},
	}
	for _, tt := range tests {
		var got []string
		seen := map[value]bool{}
		for _, v := range scan(tt.in) {
			if !seen[v] {
				got = append(got, v.kind.String()+" "+v.canon)
			}
			seen[v] = true
		}
		if s := strings.Join(got, "; "); s != tt.want {
			t.Errorf("scan(%q) = %q, want %q", tt.in, s, tt.want)
		}
	}
}

func TestUnmask(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                "plain text",
		"evil[.]com (dot) hxxp://x": "evil.com . http://x",
		"e\u200bvil\u3002com":       "evil.com",
		"&#104;ttps:&#47;&#47;x":    "https://x",
		"\uff45vil\u2024com\u2044x": "evil.com/x",
		"s\u0435e \u0435vil.com ок": "sxe xvil.com ок",
		"a(at)b[.]example":          "a@b.example",
	} {
		if got := unmask(in); got != want {
			t.Errorf("unmask(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestQuoted(t *testing.T) {
	got := strings.Join(quoted("title 'Follow-up' and \"b c\", it's “d” «e» `f` 'open\n‘g’"), "|")
	if want := "Follow-up|b c|d|e|f|g"; got != want {
		t.Errorf("quoted = %q, want %q", got, want)
	}
}

func TestWords(t *testing.T) {
	if got := strings.Join(camel("userEmailIDs of-boxes_and addresses"), " "); got != "user email ids of boxe and addresse" && got != "user email id of boxe and addresse" {
		t.Errorf("camel = %q", got)
	}
	for in, want := range map[string]string{"files": "file", "entries": "entry", "address": "address", "status": "status", "his": "his", "analysis": "analysis"} {
		if got := singular(in); got != want {
			t.Errorf("singular(%q) = %q", in, got)
		}
	}
	if got := strings.Join(clauses("One. Two! Three? 1.5 a.b; c\nd."), "|"); got != "One| Two| Three| 1.5 a.b| c|d|" {
		t.Errorf("clauses = %q", got)
	}
	if got := strings.Join(tokens(`Alice's, (Bob) "Carl!" bob.smith x`), "|"); got != "alice|bob|carl|bob.smith|x" {
		t.Errorf("tokens = %q", got)
	}
}

func FuzzParseValue(f *testing.F) {
	for _, s := range []string{"a@b.example", "https://a.example/x", "GB29NWBK60161331926819", "June 13", "<13>", "p\u0430ypal", "/srv/../x", "+1 555 010 9999"} {
		f.Add(s, uint8(0))
	}
	f.Fuzz(func(t *testing.T, s string, k uint8) {
		kind := Kind(k % uint8(Text+1))
		v, ok := parseValue(s, kind)
		if ok && (v.canon == "" && v.kind != Name || !plain(v.canon)) {
			t.Errorf("parseValue(%q, %v) = %+v", s, kind, v)
		}
		if got := (State{}).Ungrounded(ToolLabels{Effects: Write, Bind: []Binding{{Path: "a", Kind: kind, Class: Ordinary}}}, map[string]any{"a": s}); strings.TrimSpace(s) != "" && len(got) == 0 {
			t.Errorf("%q is grounded in nothing at all", s)
		}
		for _, v := range scan(s) {
			if v.kind != Mail && v.kind != Host && v.kind != Account && v.kind != Phone {
				continue // a person is not shown it, or, of a link, as it stands there
			}
			if back, ok := parseValue(v.written(), v.kind); !ok || back != v {
				t.Errorf("%+v is written %q and read back as %+v", v, v.written(), back)
			}
		}
		scan(unmask(s))
	})
}
