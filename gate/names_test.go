package gate

import (
	"slices"
	"testing"
)

// What an argument says can stand in the names of its members too.
func TestNamesOfMembersAreJudged(t *testing.T) {
	s := said("write to ann@home.example, and to a@b.example")
	deep := any("see http://evil.example/x")
	for range 2 * maxNest {
		deep = []any{deep}
	}
	tests := []struct {
		name string
		args map[string]any
		want string // path of a refusal, "" for none
	}{
		{"an address as the name of a grounded value", map[string]any{"to": map[string]any{"eve@evil.example": "ann@home.example"}}, "to"},
		{"an address with nothing behind it", map[string]any{"to": "ann@home.example", "bcc": map[string]any{"eve@evil.example": true}}, "bcc"},
		{"an address as the name of an argument", map[string]any{"to": "ann@home.example", "eve@evil.example": nil}, "eve@evil.example"},
		{"a link in a name inside free text", map[string]any{"to": "ann@home.example", "body": map[string]any{"http://evil.example/x": 1}}, "body"},
		{"an id as a name", map[string]any{"to": "ann@home.example", "cc": map[string]any{"U0412345": "writer"}}, "cc"},
		{"a path as a name", map[string]any{"to": "ann@home.example", "files": []any{map[string]any{"/home/ann/.ssh/id": false}}}, "files"},
		{"free text nested too deep to be searched", map[string]any{"to": "ann@home.example", "body": deep}, "body"},
		{"a grounded address as a name", map[string]any{"to": map[string]any{"a@b.example": "ann@home.example"}}, ""},
		{"field names", map[string]any{"to": []any{map[string]any{"mail_2": "ann@home.example", "$type": "x", "Content-Type": nil, "sha256": nil}}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := s.Ungrounded(mailTool, tt.args)
			found := slices.ContainsFunc(got, func(u Ungrounded) bool { return u.Path == tt.want })
			if found != (tt.want != "") || tt.want == "" && len(got) > 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A deny rule knows what it denies also as the name of a member, and in spellings that some server reads as the same.
func TestDenyRulesKnowMoreSpellings(t *testing.T) {
	p, err := Compile(Spec{Permissions: Permissions{
		Allow: []Source{{Text: "srv.*"}},
		Deny:  []Source{{Text: "srv.delete_file"}, {Text: "srv.write(path:/etc/**)"}, {Text: "srv.copy(/etc/**)"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"delete_file ", "\tdelete_file", "delete\u200b_file", "\ufeffdelete_file", "delete_file\x00", "delete_\U000e0066file"} {
		if d := p.Decide(Call{Server: "srv", Tool: tool}, State{}); d.Answer != Deny {
			t.Errorf("tool %q: %v", tool, d.Answer)
		}
	}
	for _, path := range []string{" /etc/passwd", "/etc/passwd\n", "/etc\u200b/passwd", "/e\u00adtc/passwd", "file://localhost/etc/passwd", "file:/etc/passwd",
		"FILE:///etc/passwd", "file://127.0.0.1/etc/passwd", "../../../../etc/passwd", "x/../../../etc/passwd", `..\..\etc\passwd`, `"/etc/passwd"`, "'/etc/passwd'", "//host/../etc/passwd"} {
		if d := p.Decide(Call{Server: "srv", Tool: "write", Args: map[string]any{"path": path}}, State{}); d.Answer != Deny {
			t.Errorf("path %q: %v", path, d.Answer)
		}
	}
	for _, args := range []map[string]any{
		{"path": map[string]any{"/etc/passwd": "x"}}, {"path": []any{map[string]any{"a": map[string]any{"/etc/x": nil}}}},
	} {
		if d := p.Decide(Call{Server: "srv", Tool: "write", Args: args}, State{}); d.Answer != Deny {
			t.Errorf("%v: %v", args, d.Answer)
		}
	}
	for _, args := range []map[string]any{{"files": map[string]any{"/etc/passwd": "x"}}, {"/etc/passwd": "x"}} {
		if d := p.Decide(Call{Server: "srv", Tool: "copy", Args: args}, State{}); d.Answer != Deny {
			t.Errorf("%v: %v", args, d.Answer)
		}
	}
	for _, path := range []string{"/home/etc", "etcetera/x", "/srv/etc-passwd"} {
		if d := p.Decide(Call{Server: "srv", Tool: "write", Args: map[string]any{"path": path}}, State{}); d.Answer != Allow {
			t.Errorf("path %q: %v", path, d.Answer)
		}
	}
}
