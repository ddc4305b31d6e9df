package streamhttp

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

// Header and member names of the HTTP binding.
const (
	headerVersion   = "Mcp-Protocol-Version"
	headerSession   = "Mcp-Session-Id"
	headerLastEvent = "Last-Event-Id"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerParam     = "Mcp-Param-"

	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"

	// Modern is the first version without initialize and sessions.
	Modern = "2026-07-28"

	codeHeaderMismatch     = -32020
	codeUnsupportedVersion = -32022
)

// versionOf gives the version a modern request names in its body; "" for a message of the older era.
func versionOf(m jsonrpc.Message) string {
	return m.Params.Get("_meta").Get(metaVersion).Str()
}

// nameOf gives what the header Mcp-Name must repeat of a request.
func nameOf(m jsonrpc.Message) (string, bool) {
	switch m.Method {
	case "tools/call", "prompts/get":
		return m.Params.Get("name").Str(), true
	case "resources/read":
		return m.Params.Get("uri").Str(), true
	case "tasks/get", "tasks/update", "tasks/cancel": // SEP-2663
		return m.Params.Get("taskId").Str(), true
	}
	return "", false
}

// modernHeaders sets the headers that repeat the body of a modern request.
func modernHeaders(h http.Header, m jsonrpc.Message, version string) {
	h.Set(headerVersion, version)
	h.Set(headerMethod, m.Method)
	if name, ok := nameOf(m); ok {
		h.Set(headerName, encodeHeader(name))
	}
}

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// encodeHeader writes a value that a header cannot carry as it is in the base64 form of SEP-2243.
func encodeHeader(s string) string {
	plain := s == strings.TrimSpace(s) && !(strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix))
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= 0x20 && s[i] < 0x7f
	}
	if plain {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

// decodeHeader reads what encodeHeader writes; false for what it never would.
func decodeHeader(s string) (string, bool) {
	inner, ok := strings.CutPrefix(s, encodedPrefix)
	if ok {
		inner, ok = strings.CutSuffix(inner, encodedSuffix)
	}
	if !ok {
		return s, !strings.ContainsFunc(s, func(c rune) bool { return c < 0x20 || c > 0x7e })
	}
	data, err := base64.StdEncoding.DecodeString(inner)
	return string(data), err == nil
}

// token reports whether s is a token of RFC 9110 section 5.6.2: what a header's name may be.
func token(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != "" && len(s) <= 128
}
