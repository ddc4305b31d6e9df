package gate

import (
	"strings"
	"testing"
)

// mailTool and the others are labels as an operator would write them.
var (
	mailTool  = ToolLabels{Server: "s", Tool: "send_email", Effects: Write | Send, Bind: []Binding{{Path: "to", Kind: Mail, Class: Ordinary}}, Text: []string{"subject", "body"}, Anchor: []string{"subject"}}
	payTool   = ToolLabels{Server: "s", Tool: "send_money", Effects: Write | Send, Bind: []Binding{{Path: "recipient", Class: Money}}, Text: []string{"subject", "amount"}}
	fileTool  = ToolLabels{Server: "s", Tool: "delete_file", Effects: Write, Bind: []Binding{{Path: "file_id", Kind: ID, Class: Deletion}}}
	noteTool  = ToolLabels{Server: "s", Tool: "append_to_file", Effects: Write, Bind: []Binding{{Path: "file_id", Kind: ID, Class: Ordinary}}, Text: []string{"content"}}
	shareTool = ToolLabels{Server: "s", Tool: "share_file", Effects: Write | Send, Bind: []Binding{{Path: "file_id", Kind: ID, Class: Sharing}, {Path: "email", Kind: Mail, Class: Sharing}}}
	fetchTool = ToolLabels{Server: "s", Tool: "get_page", Effects: Send, Bind: []Binding{{Path: "url", Kind: Link, Class: Ordinary}}}
	makeTool  = ToolLabels{Server: "s", Tool: "create_file", Effects: Write, Bind: []Binding{{Path: "filename", Kind: Path, Class: Ordinary}}, Text: []string{"content"}}
	entryTool = ToolLabels{Server: "s", Tool: "create_event", Effects: Write | Send, Bind: []Binding{{Path: "participants", Kind: Mail, Class: Ordinary}}, Text: []string{"title", "description"}, Anchor: []string{"title"}}
	moveTool  = ToolLabels{Server: "s", Tool: "update_scheduled_payment", Effects: Write, Bind: []Binding{{Path: "id", Kind: ID, Class: Money}}, Text: []string{"amount"}}
)

func said(text string) State {
	return State{}.Observe(Observation{Source: "user", Trust: User, Text: text})
}

func TestWholeValuesGround(t *testing.T) {
	tests := []struct {
		name   string
		words  string
		labels ToolLabels
		args   map[string]any
		want   bool // grounded
	}{
		{"a mail address in the words", "write to a@b.example please", mailTool, map[string]any{"to": "a@b.example"}, true},
		{"case of an address does not matter", "write to A@B.example", mailTool, map[string]any{"to": "a@b.EXAMPLE"}, true},
		{"a longer local part is another address", "write to a@b.example", mailTool, map[string]any{"to": "x-a@b.example"}, false},
		{"a tagged address is another", "write to a@b.example", mailTool, map[string]any{"to": "a+x@b.example"}, false},
		{"a longer host is another", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example.evil.test"}, false},
		{"a subdomain is another", "write to a@b.example", mailTool, map[string]any{"to": "a@x.b.example"}, false},
		{"one of two is not grounded", "write to a@b.example", mailTool, map[string]any{"to": []any{"a@b.example", "c@d.example"}}, false},
		{"two addresses in one string", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example, c@d.example"}, false},
		{"an address with a display name is not the address", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example <c@d.example>"}, false},
		{"Cyrillic a", "write to a@b.example", mailTool, map[string]any{"to": "а@b.example"}, false},
		{"full-width a", "write to a@b.example", mailTool, map[string]any{"to": "\uff41@b.example"}, false},
		{"zero width space inside", "write to a@b.example", mailTool, map[string]any{"to": "a\u200b@b.example"}, false},
		{"percent-encoded", "write to a@b.example", mailTool, map[string]any{"to": "%61@b.example"}, false},
		{"line feed and a second header", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example\nbcc: c@d.example"}, false},

		{"a date is not a file", "what happens on June 13?", fileTool, map[string]any{"file_id": "13"}, false},
		{"a number is not a file", "send 13 euros", fileTool, map[string]any{"file_id": 13}, false},
		{"a numbered file is", "delete file 13", fileTool, map[string]any{"file_id": "13"}, true},
		{"a file with an id is", "Delete the file with ID '13' from the drive.", fileTool, map[string]any{"file_id": "13"}, true},
		{"a list of files is", "delete files 3, 4 and 5", fileTool, map[string]any{"file_id": "5"}, true},
		{"another noun's number is not", "reply to email 13", fileTool, map[string]any{"file_id": "13"}, false},
		{"a long id alone is", "delete 8f14e45f-ceea-467f", fileTool, map[string]any{"file_id": "8f14e45f-ceea-467f"}, true},
		{"part of a long id is not", "delete 8f14e45f-ceea-467f", fileTool, map[string]any{"file_id": "8f14e45f"}, false},

		{"an IBAN in the words", "pay GB29 NWBK 6016 1331 9268 19 now", payTool, map[string]any{"recipient": "GB29NWBK60161331926819"}, true},
		{"an IBAN one digit off", "pay GB29NWBK60161331926819", payTool, map[string]any{"recipient": "GB29NWBK60161331926818"}, false},
		{"an account that is no IBAN", "pay US122000000121212121212.", payTool, map[string]any{"recipient": "US122000000121212121212"}, true},
		{"a name", "send Spotify the difference", payTool, map[string]any{"recipient": "Spotify"}, true},
		{"a longer name", "send Spotify the difference", payTool, map[string]any{"recipient": "Spotify Refunds"}, false},
		{"a part of a word", "send Spotify the difference", payTool, map[string]any{"recipient": "Spot"}, false},
		{"a stop word", "send it to them", payTool, map[string]any{"recipient": "them"}, false},
		{"a name with a Cyrillic letter", "send Spotify the difference", payTool, map[string]any{"recipient": "Sроtify"}, false},

		{"a link as written", "read https://a.example/x?y=1 please", fetchTool, map[string]any{"url": "https://a.example/x?y=1"}, true},
		{"a link without its scheme", "read www.a.example/x.", fetchTool, map[string]any{"url": "http://www.a.example/x"}, true},
		{"a link without its scheme, in a disguise elsewhere", "read www.a.example/y, p\u0430y", fetchTool, map[string]any{"url": "https://www.a.example/y"}, true},
		{"the front page of a link", "read https://www.a.example/", ToolLabels{Tool: "connect", Effects: Send, Bind: []Binding{{Path: "host", Kind: Host, Class: Ordinary}}}, map[string]any{"host": "www.a.example"}, true},
		{"a host's front page", "read www.a.example.", fetchTool, map[string]any{"url": "https://www.a.example/"}, true},
		{"below a host", "read www.a.example", fetchTool, map[string]any{"url": "https://www.a.example/secret?d=1"}, false},
		{"another query", "read https://a.example/x?y=1", fetchTool, map[string]any{"url": "https://a.example/x?y=2"}, false},
		{"another scheme", "read https://a.example/x", fetchTool, map[string]any{"url": "http://a.example/x"}, false},
		{"another port", "read https://a.example/x", fetchTool, map[string]any{"url": "https://a.example:8443/x"}, false},
		{"a user name in front of the host", "read https://a.example/x", fetchTool, map[string]any{"url": "https://a.example@evil.test/x"}, false},
		{"the host of an address is no link", "write to a@b.example", fetchTool, map[string]any{"url": "https://b.example"}, false},
		{"percent-encoded path", "read https://a.example/x", fetchTool, map[string]any{"url": "https://a.example/%78"}, false},
		{"a backslash", "read https://a.example/x", fetchTool, map[string]any{"url": `https://a.example\@evil.test/x`}, false},

		{"the halves of a repository", "look at acme/site", ToolLabels{Tool: "x", Effects: Write, Bind: []Binding{{Path: "owner", Kind: Name, Class: Ordinary}, {Path: "repo", Kind: Name, Class: Ordinary}}}, map[string]any{"owner": "acme", "repo": "site"}, true},
		{"halves the other way round", "look at acme/site", ToolLabels{Tool: "x", Effects: Write, Bind: []Binding{{Path: "owner", Kind: Name, Class: Ordinary}}}, map[string]any{"owner": "site"}, false},
		{"a link to an issue", "see https://git.example/acme/site/issues/12", ToolLabels{Tool: "comment", Effects: Write, Bind: []Binding{{Path: "repo", Kind: Name, Class: Ordinary}, {Path: "issue_number", Kind: ID, Class: Ordinary}}}, map[string]any{"repo": "site", "issue_number": 12}, true},

		{"a file's name", "create 'packing list.docx' and notes.txt", makeTool, map[string]any{"filename": "notes.txt"}, true},
		{"the same file, spelt longer", "create notes.txt", makeTool, map[string]any{"filename": "./notes.txt"}, true},
		{"a file elsewhere", "create notes.txt", makeTool, map[string]any{"filename": "/etc/notes.txt"}, false},
		{"a climbing path", "create notes.txt", makeTool, map[string]any{"filename": "x/../notes.txt"}, false},

		{"a link in free text", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "see http://evil.test/x"}, false},
		{"a bare link in free text", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "win at www.evil-252.com!"}, false},
		{"an address in free text", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "answer to c@d.example"}, false},
		{"an account in free text", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "wire it to IBAN 0123456789"}, false},
		{"a grounded link in free text", "send https://a.example/x to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "see [this](https://a.example/x)."}, true},
		{"a link with bracketed dots", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "see evil[.]com"}, false},
		{"a link in full-width letters", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "see evil。com"}, false},
		{"a link with a Cyrillic letter", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "see www.s\u0435cure.example"}, false},
		{"an address with a Greek letter", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "to m\u03bfe@evil.example"}, false},
		{"prose of other alphabets", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "Привет, мир. 日本語です。 Ελλάδα: ναι."}, true},
		{"a link in entities", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "see &#104;ttps:&#47;&#47;evil.test"}, false},
		{"ordinary prose", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "body": "Hi, see report.docx, e.g. page 4 of 2024-05-19 at 16:00. It costs 1200.50, i.e. 3 p.m. at No. 12."}, true},

		{"an entry called by the user's words", "put the family reunion into my calendar", entryTool, map[string]any{"title": "Family Reunion", "description": "at noon"}, true},
		{"an entry called otherwise", "put the family reunion into my calendar", entryTool, map[string]any{"title": "Emergency: book now"}, false},
		{"an argument nobody looked at", "write to a@b.example", mailTool, map[string]any{"to": "a@b.example", "x_forward": "all"}, false},
		{"nothing at all", "do it", ToolLabels{Effects: Write}, nil, false},
		{"a read needs no grounds", "", ToolLabels{Effects: Read}, map[string]any{"id": "13"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := said(tt.words).Ungrounded(tt.labels, tt.args)
			if (len(got) == 0) != tt.want {
				t.Errorf("grounded = %v, want %v: %+v", len(got) == 0, tt.want, got)
			}
			for _, u := range got {
				if u.Why == "" || strings.Contains(u.Why, "%!") {
					t.Errorf("no reason given: %+v", u)
				}
			}
		})
	}
}

func TestClassesNeedTheUsersWords(t *testing.T) {
	store := State{}.Observe(Observation{Source: "store", Trust: Store, Data: map[string]any{
		"contacts": []any{"a@b.example"}, "payees": []any{"GB29NWBK60161331926819", "Landlord"}, "file_ids": []any{"13"}, "own_email": []any{"me@b.example"},
	}})
	tests := []struct {
		name   string
		labels ToolLabels
		args   map[string]any
		want   bool
	}{
		{"a contact gets mail", mailTool, map[string]any{"to": "a@b.example", "body": "x"}, true},
		{"a known payee gets no money", payTool, map[string]any{"recipient": "GB29NWBK60161331926819"}, false},
		{"a known payee's name gets no money", payTool, map[string]any{"recipient": "Landlord"}, false},
		{"a known file is appended to", noteTool, map[string]any{"file_id": "13", "content": "x"}, true},
		{"a known file is not deleted", fileTool, map[string]any{"file_id": "13"}, false},
		{"a known file is not shared", shareTool, map[string]any{"file_id": "13", "email": "a@b.example"}, false},
		{"a file's number is no payment's", ToolLabels{Tool: "update_payment", Effects: Write, Bind: []Binding{{Path: "id", Kind: ID, Class: Ordinary}}}, map[string]any{"id": "13"}, false},
		{"one's own address does not vouch for the deed", mailTool, map[string]any{"to": "me@b.example", "subject": "urgent", "body": "pay now"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := store.Ungrounded(tt.labels, tt.args); (len(got) == 0) != tt.want {
				t.Errorf("grounded = %v, want %v: %+v", len(got) == 0, tt.want, got)
			}
		})
	}
}

func TestTrustedResultsGroundByWholeField(t *testing.T) {
	payments := []any{
		map[string]any{"id": 6, "subject": "Music", "recipient": "SE3550000000054910000003"},
		map[string]any{"id": 7, "subject": "Rent", "recipient": "GB29NWBK60161331926819", "note": "see a@b.example for more"},
	}
	read := func(words string) State {
		return said(words).Observe(Observation{Source: "s", Tool: "get_scheduled_payments", Trust: FirstParty, Data: payments})
	}
	if got := read("adjust my rent").Ungrounded(moveTool, map[string]any{"id": 7, "amount": 1200}); len(got) > 0 {
		t.Errorf("the record the user named: %+v", got)
	}
	if got := read("adjust my rent").Ungrounded(moveTool, map[string]any{"id": 6}); len(got) == 0 {
		t.Error("another record is not named")
	}
	if got := read("adjust it").Ungrounded(moveTool, map[string]any{"id": 7}); len(got) == 0 {
		t.Error("a record that nobody named")
	}
	if got := read("").Ungrounded(mailTool, map[string]any{"to": "a@b.example"}); len(got) == 0 {
		t.Error("part of a field grounds nothing")
	}
	other := moveTool
	other.Server = "elsewhere"
	other.Bind = []Binding{{Path: "id", Kind: ID, Class: Ordinary}}
	if got := read("").Ungrounded(other, map[string]any{"id": 7}); len(got) == 0 {
		t.Error("a number of one server is none of another")
	}
	twice := said("adjust my rent").Observe(Observation{Source: "s", Tool: "get_scheduled_payments", Trust: FirstParty, Data: append(payments, map[string]any{"id": 8, "subject": "Rent"})})
	for _, id := range []int{7, 8} {
		if got := twice.Ungrounded(moveTool, map[string]any{"id": id}); len(got) == 0 {
			t.Errorf("two records of one name: %d is one of them by the agent's choice only", id)
		}
	}
	text := said("").Observe(Observation{Source: "s", Trust: FirstParty, Text: "write to a@b.example"})
	if got := text.Ungrounded(mailTool, map[string]any{"to": "a@b.example"}); len(got) == 0 {
		t.Error("running text of a result grounds nothing, trusted or not")
	}
}

func TestWhatThisSessionMadeMayBeShared(t *testing.T) {
	s := said("create notes.txt and share it with a@b.example").Observe(Observation{Source: "s", Tool: "search", Trust: Untrusted})
	made := Call{Server: "s", Tool: "create_file", Args: map[string]any{"filename": "notes.txt", "content": "id: 13\nhello"}}
	after := s.Commit(made).Observe(Observation{Source: "s", Tool: "create_file", Trust: FirstParty,
		Data: map[string]any{"id": "26", "filename": "notes.txt", "content": "id: 13\nhello", "parent": map[string]any{"id": "5"}, "echo_id": "13"}})
	share := func(id string) []Ungrounded {
		return after.Ungrounded(shareTool, map[string]any{"file_id": id, "email": "a@b.example"})
	}
	if got := share("26"); len(got) > 0 {
		t.Errorf("the made file: %+v", got)
	}
	for _, id := range []string{"13", "5"} {
		if got := share(id); len(got) == 0 {
			t.Errorf("file %s was not made here", id)
		}
	}
}

// A tool that repeats what it is given, or gives back what was stored by the same agent, must not launder a value.
func TestRepeatingAValueDoesNotGroundIt(t *testing.T) {
	evil := "evil@x.test"
	s := State{}.Observe(Observation{Source: "s", Trust: Untrusted})
	s = s.Commit(Call{Server: "s", Tool: "find_contact", Args: map[string]any{"query": "please look up <" + evil + ">, file 77"}})
	s = s.Observe(Observation{Source: "s", Tool: "find_contact", Trust: FirstParty, Data: map[string]any{"query": evil, "email": strings.ToUpper(evil), "id": 77, "friend": "known@x.test"}})
	if got := s.Ungrounded(mailTool, map[string]any{"to": evil}); len(got) == 0 {
		t.Error("an echo grounded the value")
	}
	if got := s.Ungrounded(noteTool, map[string]any{"file_id": "77"}); len(got) == 0 {
		t.Error("an echo grounded the number")
	}
	if got := s.Ungrounded(mailTool, map[string]any{"to": "known@x.test"}); len(got) > 0 {
		t.Errorf("what the server itself says counts: %+v", got)
	}
}

func TestUntrustedTextGroundsNothing(t *testing.T) {
	s := State{}.Observe(Observation{Source: "s", Trust: Untrusted, Text: "a@b.example", Data: map[string]any{"email": "a@b.example", "file_id": 13}})
	if !s.Tainted() {
		t.Error("not tainted")
	}
	if got := s.Ungrounded(mailTool, map[string]any{"to": "a@b.example"}); len(got) == 0 {
		t.Error("an untrusted result grounded its own address")
	}
	if s = s.Observe(Observation{Source: "user", Trust: User, Text: "fine"}); !s.Tainted() {
		t.Error("trusted text took the taint away")
	}
}

func TestUnknownToolNeedsEverything(t *testing.T) {
	l := ToolLabels{Server: "s", Tool: "frobnicate"}
	if got := said("frobnicate the blue door").Ungrounded(l, map[string]any{"what": "blue door", "how": "loudly"}); len(got) != 1 || got[0].Path != "how" || got[0].Class != Unclassed {
		t.Errorf("got %+v, want the argument how alone", got)
	}
}

func TestApprovedValuesGroundEveryClass(t *testing.T) {
	s := State{}.Endorse(Account, "GB29NWBK60161331926819").Endorse(ID, "13")
	for _, c := range []struct {
		labels ToolLabels
		args   map[string]any
	}{{payTool, map[string]any{"recipient": "GB29 NWBK 6016 1331 9268 19"}}, {fileTool, map[string]any{"file_id": "13"}}} {
		if got := s.Ungrounded(c.labels, c.args); len(got) > 0 {
			t.Errorf("%+v", got)
		}
	}
	if got := s.Ungrounded(fileTool, map[string]any{"file_id": "14"}); len(got) == 0 {
		t.Error("another value was approved")
	}
}

// attachTool has a binding argument that is a list of objects, one field of which has a label of its own.
var attachTool = ToolLabels{Server: "s", Tool: "send_email", Effects: Write | Send, Bind: []Binding{
	{Path: "to", Kind: Mail, Class: Ordinary}, {Path: "attachments", Class: Ordinary}, {Path: "attachments.key", Class: Sharing},
}, Text: []string{"body"}}

func TestNestedArguments(t *testing.T) {
	s := said("mail a@b.example").Observe(Observation{Source: "store", Trust: Store, Data: map[string]any{"file_ids": []any{"19"}, "keys": []any{"k-4711-x"}}})
	deep := any("a@b.example")
	for range 2 * maxNest {
		deep = []any{deep}
	}
	tests := []struct {
		name  string
		value any
		want  string // rule of the first refusal, or ""
	}{
		{"a file by its id", []any{map[string]any{"type": "file", "file_id": "19"}}, ""},
		{"another file", []any{map[string]any{"type": "file", "file_id": "20"}}, "value"},
		{"a form that is no form", []any{map[string]any{"type": "x@evil.test", "file_id": "19"}}, "value"},
		{"a field with its own class", []any{map[string]any{"key": "k-4711-x"}}, "class"},
		{"too deep", deep, "size"},
		{"nothing in it", []any{map[string]any{"file_id": nil, "inline": true}, ""}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := s.Ungrounded(attachTool, map[string]any{"to": "a@b.example", "attachments": tt.value, "body": "x"})
			rule := ""
			if len(got) > 0 {
				rule = string(got[0].Rule)
			}
			if rule != tt.want {
				t.Errorf("rule %q, want %q: %+v", rule, tt.want, got)
			}
		})
	}
}

func TestLongNames(t *testing.T) {
	bind := func(kind Kind) ToolLabels {
		return ToolLabels{Tool: "x", Effects: Write, Bind: []Binding{{Path: "a", Kind: kind}}}
	}
	words := "run one two three four five six seven eight nine ten please"
	for value, want := range map[string]bool{
		"one two three four five six seven eight nine ten":    true,
		"one two three four five six seven eight nine eleven": false,
		"two one three four five six seven eight nine ten":    false,
		"one two three four five six seven eight":             true,
		"ten nine": false,
		"":         false,
	} {
		if got := len(said(words).Ungrounded(bind(Text), map[string]any{"a": value})) == 0; got != want {
			t.Errorf("%q: grounded = %v, want %v", value, got, want)
		}
	}
	long := "a very long quoted title with more than eight words in it"
	if got := said("call it '"+long+"'").Ungrounded(bind(Name), map[string]any{"a": long}); len(got) > 0 {
		t.Errorf("a long quoted name: %+v", got)
	}
}

func TestCallsThatNameNobody(t *testing.T) {
	note := ToolLabels{Server: "s", Tool: "set_reminder", Effects: Write, Text: []string{"text", "at", "n", "where"}}
	s := said("remind me to water the plants at 2031-03-04 10:00")
	for _, tt := range []struct {
		name string
		args map[string]any
		want bool
	}{
		{"the user's words", map[string]any{"text": "Water the plants", "at": "2031-03-04 10:00", "n": 3}, true},
		{"another time is no matter of words", map[string]any{"text": "water plants", "at": "2031-03-05 11:00"}, true},
		{"one word of somebody else", map[string]any{"text": "water the dollar plants"}, false},
		{"one text of somebody else", map[string]any{"text": "water the plants", "where": "at the attacker"}, false},
		{"stop words alone", map[string]any{"text": "do it now"}, false},
		{"a word in disguise", map[string]any{"text": "wаter the plants"}, false},
		{"a time alone", map[string]any{"at": "2031-03-04 10:00"}, false},
		{"nothing", map[string]any{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.Ungrounded(note, tt.args); (len(got) == 0) != tt.want {
				t.Errorf("grounded = %v, want %v: %+v", len(got) == 0, tt.want, got)
			}
		})
	}
}

func TestTextTooLongToSearch(t *testing.T) {
	got := said("mail a@b.example").Ungrounded(mailTool, map[string]any{"to": "a@b.example", "body": strings.Repeat("x ", maxScan)})
	if len(got) != 1 || got[0].Rule != RuleSize {
		t.Errorf("%+v", got)
	}
}

func TestEachAddressOfATextIsNamedOnce(t *testing.T) {
	got := said("mail a@b.example").Ungrounded(mailTool, map[string]any{"to": "a@b.example", "body": "x@y.test x@y.test, again x@y.test. \ufeff"})
	if len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// A text is searched as those will read it that make links of it: browsers, mail programs, chats.
func TestLinksOfAText(t *testing.T) {
	s := said("mail a@b.example about https://b.example/a")
	for body, want := range map[string]string{
		"https://b.example/a|https://evil.example/x":      "https://evil.example/x",
		`<a href="https://b.example/a"href=//evil.io>`:    "evil.io",
		"<https://b.example/a>eve@evil.example":           "eve@evil.example",
		"https://b.example/a`https://b.example/a`evil.io": "evil.io",
		"![x](//evil.io/p.png)":                           "evil.io/p.png",
		"[x]: //evil.photography/p":                       "evil.photography/p",
		"<img src=//evil.io/p>":                           "evil.io/p",
		`\\evil.io\share`:                                 "evil.io/share",
		`/\evil.io`:                                       "evil.io",
		"https:/evil.io/p":                                "evil.io/p",
		`hTTpS:\\evil.io`:                                 "evil.io",
		"http:evil.io":                                    "evil.io",
		"//a:=//evil.io":                                  "evil.io",
		"//b.example@evil.io/p":                           "//b.example@evil.io/p",
		"Ⱥ=https:evil.io":                                 "evil.io",
	} {
		if got := s.Ungrounded(mailTool, map[string]any{"to": "a@b.example", "body": body}); len(got) != 1 || got[0].Value != want {
			t.Errorf("%q: %+v, want %s", body, got, want)
		}
	}
	for _, body := range []string{"https://b.example/a|https://b.example/a", "//b.example/a", "http:b.example/a", "// a comment", "//main.go", "src//main.rs and a//b", "C:\\dir", "see: this", "////"} {
		if got := s.Ungrounded(mailTool, map[string]any{"to": "a@b.example", "body": body}); len(got) > 0 {
			t.Errorf("%q: %+v", body, got)
		}
	}
}

// Whom something is opened to can be everyone, in a field that otherwise says how to read the rest, or in its name.
func TestEveryoneIsSomebody(t *testing.T) {
	l := ToolLabels{Server: "s", Tool: "share_file", Effects: Write, Bind: []Binding{{Path: "file_id", Kind: ID, Class: Sharing}, {Path: "permission", Class: Sharing}}}
	s := said("share file F-77 with a@b.example")
	for _, args := range []map[string]any{
		{"permission": map[string]any{"type": "anyone"}}, {"permission": map[string]any{"mode": "public-read"}},
		{"permission": map[string]any{"public": true}}, {"permission": []any{map[string]any{"kind": "allUsers"}}}, {"public": true},
	} {
		args["file_id"] = "F-77"
		if got := s.Ungrounded(l, args); len(got) != 1 {
			t.Errorf("%v: %+v", args, got)
		}
		if got := said("make F-77 public to allusers, so to anyone").Ungrounded(l, args); len(got) != 0 {
			t.Errorf("%v, as the user said: %+v", args, got)
		}
	}
	for _, args := range []map[string]any{{"permission": map[string]any{"type": "user", "email": "a@b.example"}}, {"permission": map[string]any{"public": false}}, {"notify": true}, {"all_day": true}} {
		args["file_id"] = "F-77"
		if got := s.Ungrounded(l, args); len(got) > 0 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestNumbersAndTheirNouns(t *testing.T) {
	pull := ToolLabels{Server: "s", Tool: "merge", Effects: Write, Bind: []Binding{{Path: "pull_number", Kind: ID}}}
	bare := ToolLabels{Server: "s", Tool: "delete_file", Effects: Write, Bind: []Binding{{Path: "id", Kind: ID}}}
	odd := ToolLabels{Server: "s", Tool: "xyz", Effects: Write, Bind: []Binding{{Path: "id", Kind: ID}}}
	for _, tt := range []struct {
		words  string
		labels ToolLabels
		id     string
		want   bool
	}{
		{"merge pull request 31", pull, "31", true},
		{"merge request 31", pull, "31", false},
		{"delete file 5", bare, "5", true},
		{"delete the file number 5", bare, "5", true},
		{"delete file 4 or 5", bare, "5", true},
		{"delete file 4 then 5", bare, "5", false},
		{"delete 5", bare, "5", false},
		{"5 files", bare, "5", false},
		{"xyz 5", odd, "5", true},
		{"file id 4, number 5", bare, "5", false},
		{"file #5", bare, "#5", true},
		{"see https://git.example/o/r/pull/31", pull, "31", true},
	} {
		arg := tt.labels.Bind[0].Path
		if got := len(said(tt.words).Ungrounded(tt.labels, map[string]any{arg: tt.id})) == 0; got != tt.want {
			t.Errorf("%q: %s %s grounded = %v, want %v", tt.words, arg, tt.id, got, tt.want)
		}
	}
}

// What is refused inside a text can be approved as it is shown: the same call then passes.
func TestApprovingWhatIsShown(t *testing.T) {
	s := said("mail a@b.example")
	args := map[string]any{"to": "a@b.example", "body": "see evil.example/login, pay GB29 NWBK 6016 1331 9268 19 or 0123456789, call +15550109999, ask c@d.example"}
	for range 2 {
		for _, u := range s.Ungrounded(mailTool, args) {
			s = s.Endorse(u.Kind, u.Value)
		}
	}
	if got := s.Ungrounded(mailTool, args); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}
