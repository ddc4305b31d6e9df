package proxy

import (
	"strconv"

	"github.com/seed-4e9f7b04/hearsay/egress"
)

// answer is what a refused client reads: fixed words, none of them its own or a stranger's, so that a refusal carries no
// message and starts no search for a way round.
type answer struct {
	status int
	text   string
}

const (
	adviceDecision = "This is a decision of the operator's egress policy, not a fault. Do not retry it and do not look for another way; " +
		"if the destination is needed, ask the operator to allow it."
	adviceRequest = "The request as sent is not served. Do not retry it unchanged."
	adviceFault   = "The policy allows it; this is a fault outside it."
)

// answerTo says what a reason becomes in HTTP.
func answerTo(r egress.Reason) answer {
	switch r {
	case ReasonMalformed:
		return answer{400, "The request is not well-formed HTTP/1. " + adviceRequest}
	case ReasonTooLarge:
		return answer{431, "The head of the request is too large. " + adviceRequest}
	case ReasonUnsupported:
		return answer{400, "This form of request is not served by the egress proxy. " + adviceRequest}
	case ReasonLogin:
		return answer{407, "The egress proxy asks for a user and a password."}
	case ReasonLimit:
		return answer{429, "The limit of connections or bytes is reached. Close connections before opening more."}
	case ReasonLoop:
		return answer{508, "The request has come through this proxy before. " + adviceRequest}
	case ReasonHost:
		return answer{421, "The Host header does not name the host this connection is for. " + adviceRequest}
	case ReasonCredential:
		return answer{403, "A credential for this host is added to plain HTTP requests only: ask for http:// in place of https://. " +
			"What goes on is https. Do not retry a tunnel."}
	case ReasonRecord:
		return answer{403, "The decision could not be recorded, so the connection is refused. Do not retry it; tell the operator."}
	case ReasonUnreachable:
		return answer{502, "The destination could not be reached. " + adviceFault}
	case ReasonBadAnswer:
		return answer{502, "The destination's answer is not well-formed HTTP/1. " + adviceFault}
	case egress.ReasonNoSuchName, egress.ReasonNoAddresses, egress.ReasonResolveTimeout, egress.ReasonServerFailure,
		egress.ReasonTooMany, egress.ReasonAliases:
		return answer{502, "The name of the destination did not resolve. The name itself is allowed by the policy."}
	case egress.ReasonEmptyHost, egress.ReasonControl, egress.ReasonSpace, egress.ReasonUserinfo, egress.ReasonPercent, egress.ReasonZone,
		egress.ReasonBrackets, egress.ReasonCharacter, egress.ReasonLabel, egress.ReasonLength, egress.ReasonSpelling,
		egress.ReasonIDNA, egress.ReasonPort, egress.ReasonURL:
		return answer{400, "The destination is not written as a plain host and port. " + adviceRequest}
	}
	return answer{403, adviceDecision}
}

// socksCode says what a reason becomes in SOCKS5.
func socksCode(r egress.Reason) byte {
	switch answerTo(r).status {
	case 502:
		return socksUnreachable
	case 429:
		return socksFailed
	}
	return socksRefused
}

// appendRefusal appends a whole response.
func (s *Server) appendRefusal(out []byte, r egress.Reason, toHEAD, closing bool) []byte {
	a := answerTo(r)
	text := "Refused by hearsay (" + string(r) + "). " + a.text + "\n"
	out = appendStatus(out, a.status, nil)
	out = append(out, "Hearsay-Reason: "...)
	out = append(out, r...)
	out = append(out, "\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nContent-Length: "...)
	out = strconv.AppendInt(out, int64(len(text)), 10)
	if a.status == 407 {
		out = append(out, "\r\nProxy-Authenticate: Basic realm=\"hearsay\""...)
	}
	if closing {
		out = append(out, "\r\nConnection: close"...)
	}
	out = append(out, "\r\n\r\n"...)
	if toHEAD {
		return out
	}
	return append(out, text...)
}

func appendStatus(out []byte, status int, reason []byte) []byte {
	out = append(out, "HTTP/1.1 "...)
	out = strconv.AppendInt(out, int64(status), 10)
	out = append(out, ' ')
	if reason == nil {
		reason = []byte(statusText(status))
	}
	out = append(out, reason...)
	return append(out, '\r', '\n')
}

// statusText names the statuses the proxy itself sends.
func statusText(status int) string {
	switch status {
	case 200:
		return "Connection established"
	case 400:
		return "Bad Request"
	case 403:
		return "Forbidden"
	case 407:
		return "Proxy Authentication Required"
	case 421:
		return "Misdirected Request"
	case 429:
		return "Too Many Requests"
	case 431:
		return "Request Header Fields Too Large"
	case 502:
		return "Bad Gateway"
	case 508:
		return "Loop Detected"
	}
	return ""
}
