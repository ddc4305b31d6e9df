package connect

import (
	"bytes"
	"slices"
)

// Undo plans to take out of a file what [Connect] put into it. kept are the copies of the file from before, the oldest first:
// an entry is what connect made of it in one of them, or it stays. An empty copy says that there was no file.
func Undo(data []byte, kept [][]byte, opt Options) (Plan, error) {
	d, err := read(opt.Format, data)
	if err != nil {
		return Plan{}, err
	}
	var copies []*document
	for _, data := range slices.Backward(kept) {
		old, err := read(opt.Format, data)
		if err != nil {
			continue // connect wrote none that it could not read; whatever this is, it tells nothing
		}
		copies = append(copies, old)
	}
	c := &change{document: d, binary: opt.Binary, want: map[*entry][]string{}, noArgs: map[*entry]bool{}}
	var servers []Server
	for _, e := range d.entries {
		s := c.about(e)
		switch {
		case len(opt.Servers) > 0 && !slices.Contains(opt.Servers, e.name()):
			s.State = Beside
		case s.State == Guarded:
			c.restore(e, copies, &s)
			if s.State == Guarded && !c.isThis(e) {
				s.State, s.Why = Unknown, notThis
			}
		case s.State == "":
			s.State = Beside
		}
		servers = append(servers, s)
	}
	p, err := c.plan(servers)
	if err != nil {
		return Plan{}, err
	}
	if c.before != nil {
		if p.Data, err = tidy(p.Data, opt.Format, c.before); err != nil {
			return Plan{}, err
		}
	}
	return p, nil
}

// restore finds the copy from which connect made the entry, and plans to put back what stands in it.
func (c *change) restore(e *entry, copies []*document, s *Server) {
	if len(e.path) == 2 && e.name() == entryName && c.servesFile(e.words()) {
		c.restoreAdded(e, copies, s)
		return
	}
	s.Why = "connect did not put it there, or its copy of the file is gone"
	for _, old := range copies {
		was := old.find(e.path)
		if was == nil || was.problem != "" || was.command == nil || slices.Equal(was.words(), e.words()) {
			continue // it was not there, or hearsay was in it already: an older copy may know more
		}
		s.State, s.Why = Edited, "it was changed since connect: take hearsay out of its command and args by hand"
		if n := leadLength(e); n > 0 && slices.Equal(e.words()[1+n:], was.words()) {
			c.unwrap(e, was, n, s)
			return
		}
	}
}

// edited reports whether an entry that serves a file is not as connect writes it.
func edited(e *entry) bool {
	words := e.words()
	return len(words) != 4 || words[2] != "-c"
}

// restoreAdded takes out an entry that connect added, or puts back what it served before.
func (c *change) restoreAdded(e *entry, copies []*document, s *Server) {
	var oldest *document
	for _, old := range copies {
		was := old.find(e.path)
		if was == nil {
			c.removeAdded(e, old, s)
			return
		}
		if was.problem == "" && was.args != nil && !slices.Equal(was.words(), e.words()) && c.servesFile(was.words()) {
			oldest = old
		}
	}
	if oldest == nil {
		s.Why = "connect did not put it there, or its copy of the file is gone"
		return
	}
	if edited(e) {
		s.State, s.Why = Edited, "it was changed since connect: put it back by hand"
		return
	}
	was := oldest.find(e.path)
	s.State, s.Why, s.Before, s.After = Restored, "", e.words(), was.words()
	c.want[e] = was.words()
	c.edits = append(c.edits, edit{e.command.span, oldest.raw(was.command.span)}, edit{e.args.span, oldest.raw(was.args.span)})
}

// leadLength is the number of words of hearsay's own before a server's command, as connect writes them; 0: it did not.
func leadLength(e *entry) int {
	words := e.words()
	n := 2
	for n+1 < len(words) && (words[n] == "--name" || words[n] == "--pass-env") {
		n += 2
	}
	if n+1 >= len(words) || words[n] != "--" {
		return 0
	}
	return n
}

func (c *change) unwrap(e, was *entry, n int, s *Server) {
	elems := e.args.elems
	own := elems[n] // the server's command: hearsay's words are n, and this one follows
	edits := []edit{{e.command.span, c.raw(own.span)}}
	switch rest := elems[n+1:]; {
	case len(rest) > 0:
		gone := span{elems[0].start, rest[0].start}
		if !c.joined(elems[:n+2]) {
			s.Why = errComment.Error()
			return
		}
		edits = append(edits, edit{gone, ""})
	case was.args == nil:
		without, err := e.withoutArgs()
		if !c.joined(elems) || !blank(c.raw(span{e.args.start + 1, elems[0].start})) || !joint(c.raw(span{own.end, e.args.end - 1})) {
			err = errComment
		}
		if err != nil {
			s.Why = err.Error()
			return
		}
		edits = append(edits, without...)
		c.noArgs[e] = true
	default:
		if !c.joined(elems) {
			s.Why = errComment.Error()
			return
		}
		gone := span{elems[0].start, own.end}
		rest := c.raw(span{own.end, e.args.end})
		if trimmed := bytes.TrimLeft([]byte(rest), " \t\r\n"); bytes.HasPrefix(trimmed, []byte(",")) {
			gone.end += len(rest) - len(trimmed) + 1
		}
		edits = append(edits, edit{gone, ""})
	}
	s.State, s.Why, s.Kept, s.Env = Restored, "", len(elems)-n-1, e.env
	s.Before = e.words()[:n+2]
	s.After = []string{own.value}
	c.want[e] = was.words()
	c.edits = append(c.edits, edits...)
}

// joined reports whether nothing but commas and white space stands between strings.
func (c *change) joined(elems []text) bool {
	for i, e := range elems[1:] {
		if !joint(c.raw(span{elems[i].end, e.start})) {
			return false
		}
	}
	return true
}

// removeAdded takes an entry out that was not in the copy.
func (c *change) removeAdded(e *entry, old *document, s *Server) {
	more := func(m string) bool { return m != "type" && m != "command" && m != "args" }
	if edited(e) || slices.ContainsFunc(e.members, more) {
		s.State, s.Why = Edited, "it holds more than connect wrote: take it out by hand"
		return
	}
	without, err := e.without()
	if err != nil {
		s.State, s.Why = Edited, err.Error()
		return
	}
	s.State, s.Why, s.Before = Removed, "", e.words()
	c.want[e], c.before = nil, old
	c.edits = append(c.edits, without...)
}

// tidy gives what is left when connect's entry is gone the form it had before: the white space of an object that is empty again,
// no member that connect made to hold the entry, the end of the last line, no file where there was none.
func tidy(data []byte, format Format, before *document) ([]byte, error) {
	left, err := read(format, data)
	if err != nil {
		return nil, errUnsure
	}
	if format.TOML {
		if bytes.Equal(bytes.TrimRight(data, "\r\n"), bytes.TrimRight(before.data, "\r\n")) {
			return gone(before.data), nil
		}
		return data, nil
	}
	if left.holder == nil || len(left.holder.members) > 0 || !blank(left.raw(left.holder.inner())) {
		return data, nil
	}
	switch {
	case before.holder != nil && len(before.holder.members) == 0:
		return apply(data, []edit{{left.holder.inner(), before.raw(before.holder.inner())}})
	case before.holder != nil:
		return data, nil
	case before.root == nil && len(left.root.members) == 1:
		return gone(before.data), nil
	case before.root == nil:
		return data, nil
	}
	at := slices.IndexFunc(left.root.members, func(m jsonMember) bool { return m.key == format.Key })
	without, err := (&jsonFile{document: left}).remove(left.root, at)
	if err != nil {
		return data, nil // somebody wrote beside it: an empty object does no harm
	}
	if data, err = apply(data, without); err != nil {
		return nil, err
	}
	if left, err = read(format, data); err != nil {
		return nil, errUnsure
	}
	if len(left.root.members) == 0 && len(before.root.members) == 0 && blank(left.raw(left.root.inner())) {
		return apply(data, []edit{{left.root.inner(), before.raw(before.root.inner())}})
	}
	return data, nil
}

// inner is what stands between the braces.
func (o *jsonObject) inner() span { return span{o.start + 1, o.end - 1} }

// gone is nil for the copy of a file that was not there.
func gone(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return data
}
