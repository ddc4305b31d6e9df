package gateway

import (
	"fmt"
	"strconv"

	"github.com/seed-4e9f7b04/hearsay/internal/era"
	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// codeRefused is the JSON-RPC code of our own refusals; the protocol leaves it to implementations.
const codeRefused = -32010

// ownError is an error object in words of our own. What they quote of the outside world went through [Quote].
func ownError(code int, format string, args ...any) strictjson.Value {
	return jsonrpc.NewError(code, "hearsay: "+fmt.Sprintf(format, args...), strictjson.Value{})
}

// refusal answers a request that is not passed on, or whose answer is not. A tool call gets a failed result, which the model
// sees, everything else an error.
func refusal(f *flight, why string) (result, failure strictjson.Value) {
	if f.Method != "tools/call" {
		return strictjson.Value{}, ownError(codeRefused, "%s", why)
	}
	text := strictjson.Object(
		strictjson.Member{Name: "type", Value: strictjson.String("text")},
		strictjson.Member{Name: "text", Value: strictjson.String("hearsay: " + why)})
	var complete strictjson.Value
	if f.version >= modernVersion {
		complete = strictjson.String("complete")
	}
	return strictjson.Object(
		strictjson.Member{Name: "resultType", Value: complete},
		strictjson.Member{Name: "content", Value: strictjson.Array(text)},
		strictjson.Member{Name: "isError", Value: strictjson.Bool(true)},
	), strictjson.Value{}
}

// modernVersion is the first version without sessions. Versions are dates, so they compare as text.
const modernVersion = era.Modern

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
