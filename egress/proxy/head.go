package proxy

import (
	"bytes"
	"errors"
	"strconv"
)

// Bounds of a message head. MaxHead holds the largest heads seen in the field (cookies and tokens of 32 KiB) twice over;
// maxFields is ten times what browsers send.
const (
	DefaultMaxHead = 64 << 10
	maxFields      = 256
	maxMethod      = 32
)

// malformed says what is wrong with a message, in fixed words: nothing of the message is in it.
type malformed string

func (e malformed) Error() string { return string(e) }

// The shapes that two readers of HTTP/1 can read as two different messages. Each is refused rather than repaired: what one
// side repairs, another side reads as the start of a second request (RFC 9112 section 11.2).
const (
	errLineEnd       malformed = "line does not end in CR LF"
	errBareCR        malformed = "CR outside a line end"
	errFold          malformed = "folded header line"
	errControl       malformed = "control character in a header"
	errStartLine     malformed = "start line is not method, target and version, or version, status and reason"
	errVersion       malformed = "version is not HTTP/1.0 or HTTP/1.1"
	errFieldName     malformed = "header name is empty, or not a token directly before its colon"
	errFieldCount    malformed = "too many header lines"
	errLength        malformed = "Content-Length is not one plain decimal number"
	errLengths       malformed = "more than one Content-Length"
	errTransfer      malformed = "Transfer-Encoding is not exactly chunked"
	errTransferOld   malformed = "Transfer-Encoding in HTTP/1.0"
	errBothFramings  malformed = "Transfer-Encoding beside Content-Length"
	errHostCount     malformed = "not exactly one Host"
	errChunk         malformed = "bad chunk"
	errTrailer       malformed = "bad trailer"
	errExpect        malformed = "Expect is not 100-continue"
	errStatusFraming malformed = "framing in a response that has no body"
	errSwitch        malformed = "protocol switch that nobody asked for"
)

// known is a header that the proxy itself acts on.
type known uint8

const (
	hOther known = iota
	hHost
	hLength
	hTransfer
	hConnection
	hUpgrade
	hExpect
	hVia
	hTrailer
	hAuthorization
	hProxyAuthorization
	hAcceptEncoding
	hHop // hop by hop and of no further interest here: Keep-Alive, TE, every Proxy-* (RFC 9110 section 7.6.1)
)

func knownField(name []byte) known {
	switch len(name) {
	case 2:
		if fold(name, "te") {
			return hHop
		}
	case 3:
		if fold(name, "via") {
			return hVia
		}
	case 4:
		if fold(name, "host") {
			return hHost
		}
	case 6:
		if fold(name, "expect") {
			return hExpect
		}
	case 7:
		if fold(name, "upgrade") {
			return hUpgrade
		}
		if fold(name, "trailer") {
			return hTrailer
		}
	case 10:
		if fold(name, "connection") {
			return hConnection
		}
		if fold(name, "keep-alive") {
			return hHop
		}
	case 13:
		if fold(name, "authorization") {
			return hAuthorization
		}
	case 14:
		if fold(name, "content-length") {
			return hLength
		}
		if fold(name, "http2-settings") {
			return hHop
		}
	case 15:
		if fold(name, "accept-encoding") {
			return hAcceptEncoding
		}
	case 17:
		if fold(name, "transfer-encoding") {
			return hTransfer
		}
	case 19:
		if fold(name, "proxy-authorization") {
			return hProxyAuthorization
		}
	}
	if len(name) > 6 && fold(name[:6], "proxy-") {
		return hHop
	}
	return hOther
}

// fold compares ASCII without regard to case; lower is in lower case.
func fold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range b {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

type field struct {
	name, value []byte
	known       known
}

// head is a message head, read once and strictly. Its slices lie in the stream's buffer and die at the next read from it.
type head struct {
	method, target []byte // of a request
	status         int    // of a response
	reason         []byte
	minor          byte // the x of HTTP/1.x
	fields         []field

	host    []byte // the one Host value
	hosts   int
	length  int64 // Content-Length, -1 when absent
	chunked bool

	// What Connection says. dropped are the further header names it lists, which end here.
	closes, upgrades bool
	dropped          [][]byte
	upgrade          []byte // the Upgrade value
	expects          bool
	proxyAuth        []byte
}

// readHead reads one head of at most limit bytes. The error is io.EOF when the peer ended before a first byte, a malformed,
// errTooLarge, or what the connection said.
func (s *stream) readHead(limit int) ([]byte, error) {
	seen := 0  // bytes already searched
	start := 0 // start of the current line
	for {
		b := s.buffered()
		for {
			i := bytes.IndexByte(b[seen:], '\n')
			if i < 0 {
				seen = len(b)
				break
			}
			end := seen + i
			if end == start || b[end-1] != '\r' {
				return nil, errLineEnd
			}
			seen = end + 1
			if end-1 == start { // the empty line
				if start == 0 {
					return nil, errStartLine
				}
				s.discard(seen)
				if seen > limit {
					return nil, errTooLarge
				}
				return b[:seen], nil
			}
			start = seen
		}
		if err := s.fill(limit); err != nil {
			return nil, unexpected(err, len(b))
		}
	}
}

// line cuts the first line off a head that readHead has returned.
func line(b []byte) (first, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	return b[:i-1], b[i+1:]
}

// parseRequest reads a request head into h, reusing its slices.
func (h *head) parseRequest(b []byte) error {
	h.reset()
	first, rest := line(b)
	i := bytes.IndexByte(first, ' ')
	if i <= 0 || i > maxMethod || !isToken(first[:i]) {
		return errStartLine
	}
	h.method = first[:i]
	first = first[i+1:]
	i = bytes.IndexByte(first, ' ')
	if i <= 0 {
		return errStartLine
	}
	h.target = first[:i]
	for _, c := range h.target {
		if c <= ' ' || c >= 0x7f {
			return errStartLine
		}
	}
	if err := h.parseVersion(first[i+1:]); err != nil {
		return err
	}
	if err := h.parseFields(rest); err != nil {
		return err
	}
	if h.chunked && h.minor == 0 {
		return errTransferOld
	}
	if h.hosts > 1 || h.hosts == 0 && h.minor == 1 {
		return errHostCount
	}
	return nil
}

// parseResponse reads a response head into h, reusing its slices.
func (h *head) parseResponse(b []byte) error {
	h.reset()
	first, rest := line(b)
	// RFC 9112 section 4: the space after the status stands even where the reason is empty; its absence is common and harmless.
	if len(first) < 12 || first[8] != ' ' || len(first) > 12 && first[12] != ' ' {
		return errStartLine
	}
	if err := h.parseVersion(first[:8]); err != nil {
		return err
	}
	for _, c := range first[9:12] {
		if c < '0' || c > '9' {
			return errStartLine
		}
		h.status = h.status*10 + int(c-'0')
	}
	if h.status < 100 || h.status > 599 {
		return errStartLine
	}
	h.reason = first[len(first):] // no reason is an empty one, not the proxy's own
	if len(first) > 13 {
		h.reason = first[13:]
		if !isFieldValue(h.reason) {
			return errControl
		}
	}
	if err := h.parseFields(rest); err != nil {
		return err
	}
	if h.chunked && h.minor == 0 {
		return errTransferOld
	}
	if h.chunked && (h.status < 200 || h.status == 204) { // RFC 9112 section 6.1
		return errStatusFraming
	}
	return nil
}

func (h *head) reset() {
	*h = head{fields: h.fields[:0], dropped: h.dropped[:0], length: -1}
}

func (h *head) parseVersion(b []byte) error {
	switch string(b) {
	case "HTTP/1.1":
		h.minor = 1
	case "HTTP/1.0":
		h.minor = 0
	default:
		return errVersion
	}
	return nil
}

// parseFields reads header lines up to the empty one, and what the framing and connection headers say.
func (h *head) parseFields(b []byte) error {
	for {
		var l []byte
		l, b = line(b)
		if len(l) == 0 {
			break
		}
		if len(h.fields) == maxFields {
			return errFieldCount
		}
		f, err := parseField(l)
		if err != nil {
			return err
		}
		h.fields = append(h.fields, f)
		if f.known != hOther {
			if err := h.note(f); err != nil {
				return err
			}
		}
	}
	if h.chunked && h.length >= 0 {
		return errBothFramings
	}
	return nil
}

func parseField(l []byte) (field, error) {
	if l[0] == ' ' || l[0] == '\t' {
		return field{}, errFold
	}
	i := bytes.IndexByte(l, ':')
	if i <= 0 || !isToken(l[:i]) {
		return field{}, errFieldName
	}
	v := trimSpace(l[i+1:])
	if !isFieldValue(v) {
		if bytes.IndexByte(v, '\r') >= 0 {
			return field{}, errBareCR
		}
		return field{}, errControl
	}
	return field{name: l[:i], value: v, known: knownField(l[:i])}, nil
}

// note takes over what one header says about framing and connection.
func (h *head) note(f field) error {
	switch f.known {
	case hHost:
		h.host = f.value
		h.hosts++
	case hLength:
		if h.length >= 0 {
			return errLengths
		}
		n, err := parseLength(f.value)
		if err != nil {
			return err
		}
		h.length = n
	case hTransfer:
		if h.chunked || !fold(f.value, "chunked") {
			return errTransfer
		}
		h.chunked = true
	case hConnection:
		for tok := range bytes.SplitSeq(f.value, []byte{','}) {
			tok = trimSpace(tok)
			switch {
			case len(tok) == 0, fold(tok, "keep-alive"):
			case fold(tok, "close"):
				h.closes = true
			case fold(tok, "upgrade"):
				h.upgrades = true
			default:
				if len(h.dropped) == maxFields {
					return errFieldCount
				}
				h.dropped = append(h.dropped, tok)
			}
		}
	case hUpgrade:
		h.upgrade = f.value
	case hExpect:
		if !fold(f.value, "100-continue") {
			return errExpect
		}
		h.expects = true
	case hProxyAuthorization:
		h.proxyAuth = f.value
	}
	return nil
}

// drops reports whether a header ends here because Connection names it.
func (h *head) drops(name []byte) bool {
	for _, d := range h.dropped {
		if bytes.EqualFold(d, name) {
			return true
		}
	}
	return false
}

// extensions is where the two sides of a WebSocket agree on compression and the like (RFC 6455 section 9).
const extensions = "sec-websocket-extensions"

func (h *head) extends() bool {
	for _, f := range h.fields {
		if fold(f.name, extensions) {
			return true
		}
	}
	return false
}

func parseLength(v []byte) (int64, error) {
	if len(v) == 0 || len(v) > 18 {
		return 0, errLength
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, errLength
		}
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, errLength
	}
	return n, nil
}

func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// tokenChars are the characters of a token (RFC 9110 section 5.6.2).
var tokenChars = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenChars[c] {
			return false
		}
	}
	return len(b) > 0
}

// isFieldValue allows what RFC 9110 section 5.5 does: visible ASCII, space, tab, and bytes over 0x7f.
func isFieldValue(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isMalformed reports whether err is about the bytes of a message rather than its connection.
func isMalformed(err error) bool {
	var m malformed
	return errors.As(err, &m) || errors.Is(err, errTooLarge)
}
