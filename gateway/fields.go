package gateway

import "strings"

// This file and its neighbours fields_*.go are one table: what happens to each member of each message of MCP, in all published
// versions, and who reads it. The treatment (treat.go) does what the table says and nothing else; docs/channels.md is printed
// from it; a test walks the published schemas and fails on a member that has no row.

// action is what happens to a member that a server wrote.
type action uint8

const (
	drop  action = iota // it does not reach the client, and is counted
	frame               // its text is put into an envelope
	clean               // hidden characters, escapes and the envelope's token removed; cut at the bound that as names
	pin                 // clean, and part of what hearsay.lock pins: a change withholds the definition
	check               // passes unchanged when the check that as names holds; otherwise it is dropped
	fixed               // becomes the value that as names, whatever the server wrote
	into                // its members or elements have rows of their own, under the type that as names
	leave               // passes unchanged: a client wrote it, or it is data no reader takes for words
)

// readers says who may read a member: the model, the person, the program around them.
type readers uint8

const (
	model readers = 1 << iota
	human
	program
)

const (
	modelHuman = model | human
	everyone   = model | human | program
)

// field is one row: a member of a type and what happens to it.
type field struct {
	name string // "*" stands for every member that has no row of its own
	do   action
	by   readers
	as   string // see action; for into: "T" one object, "[]T" a list, "{}T" a map with free keys
	note string // why, where the row does not say it by itself
}

// object is the rows of one type. Types with the same rows share an object.
type object struct {
	name   string   // the type's name in the schema, or Type.member for an object that the schema writes inline
	also   []string // further schema types with these rows
	need   []string // without these after the treatment the object as a whole is withheld
	fields []field
}

// union chooses a type by the value of a member.
type union struct {
	by   string            // the member
	none string            // the value meant where the member is absent; "" = it must be there
	of   map[string]string // value → type
}

// direction says who sends a message.
type direction uint8

const (
	fromClient direction = iota
	fromServer
	fromBoth
)

// method is one row of the table of methods. A method that has none is refused.
type method struct {
	name   string
	from   direction
	params string // the type of params
	result string // the type of the answer; "" = a notification
	asks   bool   // the answer may be an InputRequiredResult (2026-07-28)
	tasks  bool   // the answer may be a task
	eras   string // the first and the last version that has it; "" = all; "tasks" = the extension
}

// Sections of the table, in the order of docs/channels.md.
var sections = []struct {
	title   string
	writer  direction
	objects []object
}{
	{"Content", fromServer, contentObjects},
	{"Results", fromServer, resultObjects},
	{"Definitions", fromServer, definitionObjects},
	{"Notifications", fromServer, notificationObjects},
	{"Requests of a server", fromServer, requestObjects},
	{"Errors", fromServer, errorObjects},
	{"The message itself", fromBoth, messageObjects},
	{"What a client writes", fromClient, clientObjects},
}

// table is the rows in the form the treatment looks them up: by type, then by member.
type table struct {
	objects map[string]*object
	rows    map[string]map[string]*field
	methods map[string]*method // "client tools/list", "server ping"
}

func newTable() *table {
	t := &table{map[string]*object{}, map[string]map[string]*field{}, map[string]*method{}}
	for i := range sections {
		for j := range sections[i].objects {
			o := &sections[i].objects[j]
			rows := make(map[string]*field, len(o.fields))
			for k := range o.fields {
				rows[o.fields[k].name] = &o.fields[k]
			}
			for _, name := range append([]string{o.name}, o.also...) {
				t.objects[name], t.rows[name] = o, rows
			}
		}
	}
	for i := range methods {
		m := &methods[i]
		if m.from != fromServer {
			t.methods["client "+m.name] = m
		}
		if m.from != fromClient {
			t.methods["server "+m.name] = m
		}
	}
	return t
}

// channels is the table, built once and never changed.
var channels = newTable()

// KnownMethod reports whether the table has a row for a request (notification = false) or a notification that a server
// (server = true) or a client sends. One it does not know is refused: a text in it would have no rule.
func KnownMethod(name string, server, notification bool) bool {
	side := "client "
	if server {
		side = "server "
	}
	m := channels.methods[side+name]
	return m != nil && (m.result == "") == notification
}

func (r readers) String() string {
	var names []string
	for i, n := range []string{"model", "human", "program"} {
		if r&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

func (a action) String() string {
	return [...]string{"drop", "frame", "clean", "pin", "check", "fixed", "into", "leave"}[a]
}
