package gateway

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// FuzzTreat gives any JSON to the treatment of any message: the client never gets the envelope's token outside our own tags, and
// what was treated once is not changed by being written and read again.
func FuzzTreat(f *testing.F) {
	files, err := filepath.Glob("testdata/hostile/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		_, steps, err := readTranscript(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, s := range steps {
			if s["send"] == nil {
				continue
			}
			v, err := strictjson.Parse(s["send"], strictjson.Limits{KeepCaseTwins: true, RepairSurrogates: true})
			if err != nil {
				continue
			}
			for _, part := range []string{"result", "error", "params"} {
				if p := v.Get(part); p.Kind() != strictjson.KindAbsent {
					f.Add(uint8(len(part)), string(p.Append(nil)))
				}
			}
		}
	}
	var known []string
	for key := range channels.methods {
		known = append(known, key)
	}
	slices.Sort(known)
	sources := []Source{{Server: "s"}, {Server: "s", Structured: Defang, FrameInstructions: true, SamplingTools: true}}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		if len(text) > 1<<16 {
			return
		}
		v, err := strictjson.ParseString(text, strictjson.Limits{KeepCaseTwins: true, RepairSurrogates: true})
		if err != nil {
			return
		}
		tr := NewTreater(sources[int(which)%len(sources)])
		key := known[int(which)%len(known)]
		about := About{Method: key[len("client "):], Name: "t"}
		m := channels.methods[key]
		for what, out := range map[string]Treated{
			"result": tr.Result(about, v), "error": tr.Error(about, v), "request": tr.Request(about, v), "notification": tr.Notification(about, v),
		} {
			if out.Refused != nil {
				if out.Value.Kind() != strictjson.KindAbsent || holdsToken(out.Refused.Error()) || unseen(out.Refused.Error()) {
					t.Errorf("%s of %s: a refusal passes something on: %v", what, m.name, out.Refused)
				}
				continue
			}
			if live := liveTokens(out.Value); len(live) > 0 {
				t.Errorf("%s of %s: %.300q in what became of %.1000s", what, m.name, live, text)
			}
			again, err := strictjson.Parse(out.Value.Append(nil), strictjson.Limits{KeepCaseTwins: true}) // in data twins are honest
			if err != nil {
				t.Errorf("%s of %s: what the client gets is not strict JSON: %v", what, m.name, err)
			} else if !equal(again, out.Value) {
				t.Errorf("%s of %s: reads back as something else", what, m.name)
			}
		}
	})
}
