package era

import (
	"slices"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// search looks at what a server says while its era is not known. mine says that the message was for the bridge; otherwise the
// client gets it. The caller holds mu, and is the one that reads the server.
func (b *Bridge) search(m jsonrpc.Message, err error) (mine bool) {
	if err != nil {
		return b.searchBad(err)
	}
	switch {
	case m.Kind != jsonrpc.Response || b.phase == open:
		return false
	case b.phase == last:
		return b.own(m.ID)
	}
	b.vain = b.vain || m.Own
	switch key := m.ID.Key(); {
	case b.phase == legacyAsked && key == b.first.ID.Key():
		if absent(m.Error) {
			b.mem.note(unknown, yes)
			b.settle(nil)
			return false
		}
		b.refusal = m
		b.phase = probingModern
		b.listen()
		b.toServer(b.discover(b.ownDiscover()))
		return true
	case b.phase == probingModern && key == b.probe.Key():
		b.probe = jsonrpc.ID{}
		b.discovered(m)
		return true
	case b.phase == modernAsked && key == b.probe.Key():
		return b.probed(m)
	case b.phase == modernAsked && key == b.greet.Key():
		b.greeted(m)
		return true
	}
	return false
}

// own says whether an id is of a question that the bridge asked for itself.
func (b *Bridge) own(id jsonrpc.ID) bool {
	key := id.Key()
	return key != "" && (key == b.greet.Key() || key == b.probe.Key() && key != b.first.ID.Key())
}

// searchBad takes the end, or a message that could not be read.
func (b *Bridge) searchBad(err error) (mine bool) {
	bad := unread(err)
	if bad == nil {
		b.end(err)
		return b.listening // the end is in the queue
	}
	for _, id := range bad.IDs {
		switch {
		case bad.Request || b.phase == open || b.phase == last:
		case b.own(id) || id.Key() == b.probe.Key():
			// It speaks what it was asked in, and whoever asks on finds out how well.
			if mine = b.own(id); mine && b.phase == modernAsked && b.first.Kind != 0 && b.probe.IsZero() {
				b.refusal = failure(b.first.ID, jsonrpc.CodeInternal, "what the server answered to initialize could not be read")
			}
			if mine {
				b.giveUp()
			} else {
				b.settle(nil)
			}
			return mine
		case id.Key() == b.first.ID.Key():
			b.settle(nil)
		}
	}
	return false
}

// probed takes the answer to server/discover for a modern client.
func (b *Bridge) probed(m jsonrpc.Message) (mine bool) {
	mine = m.ID.Key() != b.first.ID.Key()
	if modernAnswer(m) {
		b.mem.note(yes, unknown)
		b.settle(nil)
		return mine
	}
	b.refusal, b.probe = m, jsonrpc.ID{}
	b.listen()
	switch {
	case b.fails:
		b.giveUp()
	case b.greet.IsZero():
		b.toServer(b.initialize())
	}
	return true
}

// greeted takes the answer to the bridge's own initialize.
func (b *Bridge) greeted(m jsonrpc.Message) {
	version := m.Result.Get("protocolVersion").Str()
	b.listen()
	switch {
	case absent(m.Error) && slices.Contains(legacy, version):
		modern := no
		if code, _ := jsonrpc.ErrorCode(b.refusal.Error); code == jsonrpc.CodeInvalidParams && b.first.Kind != 0 {
			modern = unknown // it may have refused this client only
		}
		b.mem.note(modern, yes)
		b.toServer(notification("notifications/initialized", strictjson.Value{}))
		t := newToLegacy(b, m.Result)
		b.settle(t)
		if b.first.Kind != 0 {
			t.fromClient(b.first)
		}
	case b.refusal.Kind != 0: // it takes neither
		b.giveUp()
	case b.probe.IsZero(): // it was thought to take initialize
		b.fails = true
		ask := b.ownDiscover()
		if b.first.Kind != 0 {
			ask = b.first
		}
		b.toServer(b.discover(ask))
	default: // what it says to server/discover is not known yet
		b.fails = true
	}
}

// discovered takes the answer to server/discover for a legacy client.
func (b *Bridge) discovered(m jsonrpc.Message) {
	b.listen()
	if !speaksModern(m) {
		b.giveUp()
		return
	}
	b.mem.note(yes, no)
	t := newToModern(b, m.Result)
	b.settle(t)
	t.fromClient(b.first)
}
