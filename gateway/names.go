package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// Where several servers stand behind one gateway, a tool or prompt is called server__name, within what model APIs take as a
// tool's name. A server's name holds no "__" and does not end in "_", so the first "__" is where the two meet: what is joined
// is split again into the same two, whatever the second holds.

const (
	between   = "__"
	maxJoined = 64
	markLen   = 8 // hex digits that stand for what was cut or replaced
)

var joinable = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// join gives the name that the client sees. A name that does not fit, by its length or its characters, is cut or cleaned, and
// marked with a digest of the whole, so that two do not become one.
func join(server, name string) string {
	joined := server + between + name
	if len(joined) <= maxJoined && joinable.MatchString(name) {
		return joined
	}
	sum := sha256.Sum256([]byte(joined))
	clean := notJoinable.ReplaceAllString(name, "-")
	clean = clean[:min(len(clean), maxJoined-len(server)-len(between)-1-markLen)]
	return server + between + clean + "-" + hex.EncodeToString(sum[:])[:markLen]
}

var notJoinable = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// split takes a joined name apart; false if it is none.
func split(joined string) (server, name string, ok bool) {
	server, name, ok = strings.Cut(joined, between)
	return server, name, ok && server != "" && name != ""
}

// serverName is what a server may be called: it becomes part of tool names.
var serverName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,31}$`)

// CheckServerNames says why servers cannot have these names. Where tools carry their server's name, several must also be told apart once
// they are joined, and a person must not take one for another.
func CheckServerNames(names []string, joined bool) error {
	for i, a := range names {
		switch {
		case !serverName.MatchString(a):
			return fmt.Errorf("server name %q: use 1 to 32 letters, digits, - and _, starting with a letter or digit", a)
		case !joined:
			continue
		case strings.Contains(a, between) || strings.HasSuffix(a, "_"):
			return fmt.Errorf("server name %q: it may not hold %q nor end in _, since tools are called server%stool", a, between, between)
		}
		for _, b := range names[:i] {
			if skeleton(strings.ToLower(a)) == skeleton(strings.ToLower(b)) {
				return fmt.Errorf("the server names %s and %s are too much alike", b, a)
			}
		}
	}
	return nil
}
