//go:build real

package gateway

import (
	"path/filepath"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// Honest servers lose nothing: their definitions can be pinned, do not drift from one start to the next, and pass the treatment
// but for what the table drops from every server.
func TestRealServersCanBePinned(t *testing.T) {
	npm := repotest.NPM(t)
	for name, args := range map[string][]string{
		"everything":          {filepath.Join(npm, "@modelcontextprotocol/server-everything/dist/index.js")},
		"memory":              {filepath.Join(npm, "@modelcontextprotocol/server-memory/dist/index.js")},
		"filesystem":          {filepath.Join(npm, "@modelcontextprotocol/server-filesystem/dist/index.js"), t.TempDir()},
		"sequential-thinking": {filepath.Join(npm, "@modelcontextprotocol/server-sequential-thinking/dist/index.js")},
	} {
		t.Run(name, func(t *testing.T) {
			server := Server{Source: Source{Server: name}, Command: append([]string{"node"}, args...)}
			offer, err := Describe(t.Context(), server, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(offer.Definitions[PinTool]) == 0 {
				t.Fatal("it offers no tools")
			}
			lock := approveAll(t, offer)
			again, err := Describe(t.Context(), server, nil)
			if err != nil {
				t.Fatal(err)
			}
			if drifts := lock.Compare(again); len(drifts) > 0 {
				t.Errorf("it differs from one start to the next: %+v", drifts)
			}
			back, err := ReadLock(lock.Encode())
			if err != nil {
				t.Fatal(err)
			}
			// Folding takes outputSchema away, so look with defang, where it stays.
			for _, kind := range pinKinds {
				list := strictjson.Object(strictjson.Member{Name: kind.section(), Value: strictjson.Array(offer.Definitions[kind]...)})
				out := NewTreater(Source{Server: name, Structured: Defang}).Result(About{Method: kind.method()}, list)
				if out.Refused != nil || out.Withheld > 0 || out.Value.Get(kind.section()).Len() != len(offer.Definitions[kind]) {
					t.Errorf("%ss: refused %v, withheld %d: %+v", kind, out.Refused, out.Withheld, out.Findings)
				}
				for _, f := range out.Findings {
					t.Logf("%s: %s %s", kind, f.Where, f.Rule)
				}
				for i, def := range offer.Definitions[kind] {
					got := at(out.Value, kind.section(), i).Without("_meta", "icons")
					if Digest(got) != Digest(def.Without("_meta", "icons")) {
						t.Errorf("the %s %s is not what the server wrote:\n%s\n%s", kind, kind.nameOf(def), got.Append(nil), def.Append(nil))
					}
					if s := back.Judge(name, kind, def); s != Approved {
						t.Errorf("the %s %s is %v", kind, kind.nameOf(def), s)
					}
				}
			}
		})
	}
}
