package streamhttp

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// modernHeadersAgree refuses a message whose headers say something else than its body: an intermediary that looks at one and a
// server that looks at the other would judge two different requests.
func (h *Handler) modernHeadersAgree(w http.ResponseWriter, r *http.Request, m jsonrpc.Message, header, inBody string) bool {
	mismatch := func(text string) bool {
		failure(w, http.StatusBadRequest, m.ID, codeHeaderMismatch, text, strictjson.Value{})
		return false
	}
	if m.Kind == jsonrpc.Request {
		switch {
		case header == "":
			return mismatch("the header MCP-Protocol-Version is missing")
		case inBody == "":
			failure(w, http.StatusBadRequest, m.ID, jsonrpc.CodeInvalidParams, "params._meta lacks "+metaVersion, strictjson.Value{})
			return false
		case header != inBody:
			return mismatch("the header MCP-Protocol-Version is not the version in the body")
		}
	}
	if !slices.Contains(h.opt.Versions, header) || header < Modern {
		var supported []strictjson.Value
		for _, v := range h.opt.Versions {
			supported = append(supported, strictjson.String(v))
		}
		failure(w, http.StatusBadRequest, m.ID, codeUnsupportedVersion, "the protocol version is not supported", strictjson.Object(
			strictjson.Member{Name: "requested", Value: strictjson.String(header)},
			strictjson.Member{Name: "supported", Value: strictjson.Array(supported...)}))
		return false
	}
	if m.Kind != jsonrpc.Request {
		return true
	}
	if got := r.Header.Get(headerMethod); got != m.Method {
		return mismatch("the header Mcp-Method is missing or not the method in the body")
	}
	if want, ok := nameOf(m); ok {
		got, valid := decodeHeader(r.Header.Get(headerName))
		if !valid || got != want || r.Header.Get(headerName) == "" {
			return mismatch("the header Mcp-Name is missing or not the name in the body")
		}
	}
	return true
}

// prefersStream says that the client names the event stream before JSON.
func prefersStream(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	stream, plain := strings.Index(accept, "text/event-stream"), strings.Index(accept, "application/json")
	return stream >= 0 && stream < plain
}

func accepts(r *http.Request, want string) bool {
	for _, value := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(value, ",") {
			t, params, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err != nil || params["q"] == "0" {
				continue
			}
			kind, _, _ := strings.Cut(want, "/")
			if t == want || t == kind+"/*" || t == "*/*" {
				return true
			}
		}
	}
	return false
}
