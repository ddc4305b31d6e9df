package gate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// tool makes a definition from a short form: "name | description | argument:type[:format] …". A type ending in ? may be null,
// [] is a list, and an argument in <> is described as a mail address.
func tool(line string) ToolDef {
	f := strings.Split(line, "|")
	props := map[string]any{}
	for arg := range strings.FieldsSeq(f[2]) {
		p := strings.Split(arg, ":")
		def := map[string]any{"type": p[1]}
		name := strings.Trim(p[0], "<>")
		if name != p[0] {
			def["description"] = "The email of someone."
		}
		switch {
		case p[1] == "[]":
			def = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
		case strings.HasSuffix(p[1], "?"):
			def = map[string]any{"anyOf": []any{map[string]any{"type": strings.TrimSuffix(p[1], "?")}, map[string]any{"type": "null"}}}
		case p[1] == "enum":
			def = map[string]any{"enum": []any{"a", "b"}, "type": []any{"string", "null"}}
		case p[1] == "any":
			def = map[string]any{}
		}
		if len(p) > 2 {
			def["format"] = p[2]
		}
		props[name] = def
	}
	return ToolDef{Server: "s", Name: strings.TrimSpace(f[0]), Description: f[1], InputSchema: map[string]any{"type": "object", "properties": props}}
}

func TestDraft(t *testing.T) {
	tests := []struct{ tool, want string }{ // effects [trusted] class: binding arguments with their kinds; anchors
		{"get_weather | Gets the weather. | city:string", "read"},
		{"current_time || ", "write+send unclassed:"},
		{"current_time | Gets the time. | ", "read trusted"},
		{"get_current_time || ", "read trusted"},
		{"get_user_info || ", "read trusted"},
		{"get_account || ", "read"},
		{"find_contacts || name:string", "read trusted"},
		{"mail_find | Find messages. | query:string sender:string", "read"},
		{"fetch || url:string", "send ordinary: url=link"},
		{"get_page || address:string:uri", "read+send ordinary: address=link"},
		{"lookup || host:string", "read+send ordinary: host=host"},
		{"search_domain || domain:string", "read"},
		{"send_mail || to:[] cc:[]:email subject:string body:string", "write+send trusted ordinary: cc=mail to=any; subject"},
		{"notify || <recipient>:string text:string", "write+send trusted ordinary: recipient=mail"},
		{"forward_message || message_id:string to:string", "write+send ordinary: message_id=id to=any"},
		{"create_event || title:string guests:[] start:string:date-time all_day:boolean notify:enum", "write trusted ordinary: guests=any; title"},
		{"create_event || title:string guest_email:string?", "write+send trusted ordinary: guest_email=mail; title"},
		{"attach_thing || <it>:string", "write trusted ordinary: it=any"},
		{"delete_file || file_id:integer", "write deletion: file_id=id"},
		{"remove || path:string", "write deletion: path=path"},
		{"share_file || file_id:string email:string level:enum", "write+send sharing: email=mail file_id=id"},
		{"invite_user || user_email:string", "write+send trusted invitation: user_email=mail"},
		{"add_member || user:string team:string", "write trusted invitation: team=name user=name"},
		{"create_user || username:string", "write trusted ordinary: username=name"},
		{"update_password || password:string", "write trusted credential: password=secret"},
		{"update_profile || nick:string bio:string", "write trusted credential: bio=any nick=any"},
		{"rotate_keys || pin:integer", "write+send credential:"},
		{"transfer_money || iban:string amount:number reference:string", "write+send trusted money: iban=account"},
		{"bank_transfer | Transfer money. | account:string amount:number", "write+send trusted money: account=account"},
		{"update_payment || id:integer amount:number", "write trusted money: id=id"},
		{"book_table || restaurant:string guests:integer phone:string", "write+send trusted money: phone=phone restaurant=name"},
		{"publish_page || slug:string content:string", "write+send publishing: slug=any"},
		{"create_webpage || name:string content:string", "write trusted publishing: ; name"},
		{"deploy || branch:string", "write+send publishing: branch=name"},
		{"run_command || command:string cwd:string", "exec unclassed: command=text cwd=path"},
		{"query || sql:string", "read+exec unclassed: sql=text"},
		{"update_doc || doc_id:string expression:string", "write+exec unclassed: doc_id=id expression=text"},
		{"get_country || code:string", "read+exec unclassed: code=text"},
		{"frobnicate || x:string n:number on:boolean", "write+send unclassed: x=any"},
		{"frobnicate || who:string:uuid", "write+send unclassed: who=id"},
		{"frobnicate || h:string:hostname w:string:password", "write+send unclassed: h=host w=secret"},
		{"weather | Returns the weather. | text:string", "write+send unclassed: "},
		{"weather | Shows the weather. | text:string", "read+write+send unclassed:"},
		{"weather | Shows the weather. | city:string", "read"},
		{"get_thing | Deletes the thing. | id:string", "read+write deletion: id=id"},
		{"get_thing | Copies things. | id:string", "read+write ordinary: id=id"},
		{"status_update || text:string", "write ordinary:"},
		{"find_and_replace || file_name:string text:string", "read+write ordinary: file_name=path"},
		{"comment_delete || id:string", "write deletion: id=id"},
		{"standing_orders | Lists the standing orders. | ", "read trusted"},
		{"write_note || nick_name:string name:string", "write trusted ordinary: nick_name=name; name"},
		{"attach || what:string", "write trusted ordinary: what=name"},
		{"set_reminder || text:string at:any", "write ordinary: at=name"},
	}
	for _, tt := range tests {
		l := Draft(tool(tt.tool))
		got := l.Effects.String()
		if l.Trusted {
			got += " trusted"
		}
		if l.Effects.Acting() {
			class, args := "", []string{}
			for _, b := range l.Bind {
				class = b.Class.String()
				args = append(args, b.Path+"="+b.Kind.String())
				if b.Reason == "" {
					t.Errorf("%s: no reason for %s", tt.tool, b.Path)
				}
			}
			if class == "" {
				d := drafter{labels: &ToolLabels{Effects: l.Effects}, name: camel(l.Tool)}
				d.verb = verbs[d.name[max(0, d.findVerb())]]
				d.class()
				class = d.cost.String()
			}
			got += " " + class + ": " + strings.Join(args, " ")
			if len(l.Anchor) > 0 {
				got += "; " + strings.Join(l.Anchor, " ")
			}
			if len(l.Reasons) == 0 {
				t.Errorf("%s: no reason for its effects", tt.tool)
			}
		}
		if strings.TrimSpace(got) != strings.TrimSpace(tt.want) {
			t.Errorf("%s\n got %s\nwant %s", tt.tool, got, tt.want)
		}
	}
}

// A server's own hints may add caution and never take it away.
func TestHintsOnlyAddCaution(t *testing.T) {
	for _, line := range []string{"get_thing || id:string", "delete_thing || id:string", "frobnicate || id:string", "get_user_info || "} {
		def := tool(line)
		plain := Draft(def)
		for _, hints := range []map[string]any{
			{"readOnlyHint": true}, {"readOnlyHint": false}, {"destructiveHint": true}, {"destructiveHint": false},
			{"openWorldHint": true}, {"openWorldHint": false}, {"readOnlyHint": true, "destructiveHint": true}, {"readOnlyHint": "yes"}, {"idempotentHint": true},
		} {
			def.Annotations = hints
			got := Draft(def)
			if got.Effects&plain.Effects != plain.Effects || got.Trusted && !plain.Trusted {
				t.Errorf("%s with %v: %v trusted=%v, without %v trusted=%v", line, hints, got.Effects, got.Trusted, plain.Effects, plain.Trusted)
			}
		}
	}
	def := tool("get_user_info || ")
	def.Annotations = map[string]any{"openWorldHint": true}
	if Draft(def).Trusted {
		t.Error("openWorldHint did not count")
	}
	def = tool("get_thing || id:string")
	for hint, value := range map[string]bool{"destructiveHint": true, "readOnlyHint": false} {
		def.Annotations = map[string]any{hint: value}
		if !Draft(def).Effects.Acting() {
			t.Errorf("%s=%v did not count", hint, value)
		}
	}
}

// The words of a server are not code: nothing in a definition may make the drafter fail.
func TestDraftTakesAnything(t *testing.T) {
	deep := map[string]any{"type": "string"}
	for range 2 * maxNest {
		deep = map[string]any{"items": deep, "anyOf": []any{deep, 3, nil}}
	}
	many := map[string]any{}
	for i := range 2 * maxProperties {
		many[fmt.Sprintf("to_%04d", i)] = map[string]any{"type": "string"}
	}
	for _, schema := range []any{nil, 3, "x", map[string]any{"properties": 1}, map[string]any{"properties": map[string]any{"a": 1, "b": deep, "": deep}}} {
		Draft(ToolDef{Name: "", Description: strings.Repeat("get ", maxValue), InputSchema: schema})
		Draft(ToolDef{Name: "send___", Description: " . ! ", InputSchema: schema})
	}
	l := Draft(ToolDef{Name: "send", InputSchema: map[string]any{"properties": many}})
	if len(l.Bind)+len(l.Text) != maxProperties {
		t.Errorf("%d arguments were read, want %d", len(l.Bind)+len(l.Text), maxProperties)
	}
	if got := said("go to here").Ungrounded(l, map[string]any{"to_0001": "here", "to_0500": "there"}); !slices.ContainsFunc(got, func(u Ungrounded) bool { return u.Path == "to_0500" }) {
		t.Error("an argument beyond the bound is not binding")
	}
}

func TestAVerbNobodyKnowsIsUnknown(t *testing.T) {
	if got := effectsOf(0); got != Unknown {
		t.Errorf("%v", got)
	}
}

func TestComplete(t *testing.T) {
	def := tool("send_mail || to:[] subject:string body:string")
	got := Complete(ToolLabels{Effects: Write, Bind: []Binding{{Path: "to"}, {Path: "body", Class: Money, Kind: Text}}, Text: []string{"subject"}}, def)
	if got.Server != "s" || got.Tool != "send_mail" || got.Bind[0].Class != Ordinary || got.Bind[1].Class != Money || got.Bind[1].Kind != Text || !slices.Equal(got.Anchor, []string{"subject"}) {
		t.Errorf("%+v", got)
	}
	def = tool("invite_user || email:string")
	if got := Complete(ToolLabels{Effects: Write, Bind: []Binding{{Path: "email"}}, Anchor: []string{}}, def); got.Bind[0].Class != Invitation || got.Bind[0].Kind != Mail || len(got.Anchor) != 0 {
		t.Errorf("%+v", got)
	}
	if got := Complete(ToolLabels{}, def); got.Effects != Write|Send || len(got.Bind) != 1 {
		t.Errorf("labels without effects: %+v", got)
	}
	if got := Complete(ToolLabels{Effects: Write, Bind: []Binding{{Path: "x"}}}, tool("get_x || x:string")); got.Bind[0].Class != Unclassed {
		t.Errorf("a tool the drafter takes for a read: %+v", got)
	}
}

func ExampleDraft() {
	l := Draft(ToolDef{Server: "bank", Name: "transfer_money", Description: "Transfer money to an account.", InputSchema: map[string]any{
		"properties": map[string]any{"iban": map[string]any{"type": "string"}, "amount": map[string]any{"type": "number"}},
	}})
	fmt.Println(l.Effects)
	for _, b := range l.Bind {
		fmt.Println(b.Path, b.Kind, b.Class, "-", b.Reason)
	}
	for _, r := range l.Reasons {
		fmt.Println(r)
	}
	// Output:
	// write+send
	// iban account money - its name says who or what: account
	// write+send: the name says "transfer"
	// money: it spends or books
	// trusted result: it repeats what the call made
}
