package proxy

// protocol is what a connection's first byte announces.
type protocol uint8

const (
	protoUnknown protocol = iota
	protoHTTP
	protoSOCKS5
	protoSOCKS4
	protoTLS
)

// detect tells the protocol by the first byte, which never is the same in two of them: a method begins with a token
// character, a SOCKS greeting with its version, a TLS record with type 22.
func detect(first byte) protocol {
	switch {
	case first == 5:
		return protoSOCKS5
	case first == 4:
		return protoSOCKS4
	case first == 0x16:
		return protoTLS
	case tokenChars[first]:
		return protoHTTP
	}
	return protoUnknown
}

// words is what a client says first in a tunnel where anything may be spoken.
type words uint8

const (
	wordsUnknown words = iota // it takes more of them to tell
	wordsOpaque               // none of the others, to any server
	wordsTLS
	wordsHTTP // a request of HTTP/1, or what a lenient server would take for one
)

// preface begins HTTP/2 without TLS (RFC 9113 section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// prefaceSafe is as much of it as may go on before the rest has come: what is more could be a request line of its own.
const prefaceSafe = len("PRI * HTTP")

// maxFirstLine is more than any server takes for one request line.
const maxFirstLine = 2 << 20

// isSpace is what lenient servers skip before a request line or take for the space in it.
var isSpace = [256]bool{' ': true, '\t': true, '\n': true, '\v': true, '\f': true, '\r': true}

// firstLine tells whether what a client says first is a request of HTTP/1. It errs on the side of HTTP: what any server could
// read as a request line goes to the strict reader, which refuses what it does not like: Python's take a NUL in one. A line without
// a version is HTTP/0.9, which has no Host. It looks at each byte once.
type firstLine struct {
	seen    int
	inName  bool // in what could be a method
	inLine  bool // behind it
	version int  // how much of "http/" has just been read
}

const versionMark = "http/"

// read takes the next bytes. It is not asked again once it has told.
func (l *firstLine) read(b []byte) words {
	for _, c := range b {
		l.seen++
		switch {
		case !l.inName && !l.inLine:
			if !isSpace[c] {
				if l.inName = tokenChars[c]; !l.inName {
					return wordsOpaque
				}
			}
		case l.inName && tokenChars[c]:
		case l.inName && !isSpace[c], c == '\n':
			return wordsOpaque
		case l.inName:
			l.inName, l.inLine = false, true
		case lower(c) == versionMark[l.version]:
			if l.version++; l.version == len(versionMark) {
				return wordsHTTP
			}
		case lower(c) == versionMark[0]:
			l.version = 1
		default:
			l.version = 0
		}
		if l.seen > maxFirstLine {
			return wordsOpaque
		}
	}
	return wordsUnknown
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}
