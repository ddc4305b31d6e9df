package proxy

import (
	"encoding/binary"
	"errors"
)

// maxHello bounds a ClientHello with its record headers. The largest seen in the field (post-quantum key shares, many
// tickets) are under 20 KiB.
const maxHello = 64 << 10

var (
	errHello      = errors.New("no TLS ClientHello to any server")
	errOddHello   = errors.New("a TLS ClientHello that servers read differently")
	errHelloShort = errors.New("the ClientHello is not complete yet")
)

// Bounds of what a lenient server may still take for a hello.
const (
	minHello      = 2 + 32 + 1 + 2 + 2 + 1 + 1 // version, random, session id, one cipher suite, one compression method
	maxOddHello   = 3 << 16
	maxOddRecord  = 1<<14 + 2048
	maxOddVersion = 0x10 // crypto/tls looks no closer at the version of a record than this
)

// hello is what a ClientHello says about where it is meant to go.
type hello struct {
	name      string // the host_name of server_name as sent; "" when absent
	size      int    // bytes of its records
	encrypted bool   // an encrypted_client_hello is there, be it real or grease: nobody but the server can tell
}

// helloReader reads a ClientHello from TLS records (RFC 8446 sections 5.1 and 4.1.2), over as many records as it is spread. It
// gathers the message from records as they come, and looks at no byte twice.
//
// What is no hello to any server passes unread on ports where anything may be spoken. So it errs on the other side: servers skip
// empty records and warnings, and heed names in ways that no client writes, and what they could take for a hello is an odd one.
type helloReader struct {
	at  int // how much of the records is used up
	msg []byte
	odd bool // something that servers skip or overlook
}

// read takes all records there are so far, those of earlier calls included. errHelloShort asks for more bytes; any other error is
// final.
func (r *helloReader) read(records []byte) (hello, error) {
	for {
		rec := records[r.at:]
		if len(rec) > 0 && !isRecord(rec[0]) || len(rec) > 1 && rec[1] >= maxOddVersion {
			return hello{}, errHello
		}
		if len(rec) < 5 {
			return hello{}, errHelloShort
		}
		n := int(binary.BigEndian.Uint16(rec[3:5]))
		body := rec[5:]
		switch {
		case rec[0] == recordHandshake && n <= maxOddRecord:
			r.odd = r.odd || n == 0 || n > 1<<14 || rec[1] != 3
			if len(r.msg) == 0 && (len(body) > 0 && n > 0 && body[0] != 1 || len(body) > 1 && n > 1 && int(body[1])<<16 >= maxOddHello) {
				return hello{}, errHello
			}
		case rec[0] != recordHandshake && n <= 2: // an empty record, a warning, a change of ciphers
			r.odd = true
		default:
			return hello{}, errHello
		}
		if len(body) < n {
			return hello{}, errHelloShort
		}
		r.at += 5 + n
		if rec[0] == recordHandshake {
			r.msg = append(r.msg, body[:n]...)
		}
		if len(r.msg) < 4 {
			continue
		}
		whole := 4 + int(r.msg[1])<<16 + int(r.msg[2])<<8 + int(r.msg[3])
		switch {
		case whole < 4+minHello, whole >= maxOddHello:
			return hello{}, errHello
		case whole > maxHello, len(r.msg) > whole: // too long, or something follows it in its own record
			return hello{}, errOddHello
		case len(r.msg) == whole:
			h, err := parseHelloBody(r.msg[4:])
			if err != nil || r.odd {
				return hello{}, errOddHello
			}
			h.size = r.at
			return h, nil
		}
	}
}

// isRecord reports whether a byte is a type of TLS records.
func isRecord(b byte) bool { return recordCCS <= b && b <= recordData }

func parseHelloBody(b []byte) (hello, error) {
	r := reader(b)
	_, ok := r.take(2 + 32) // legacy_version, random
	sid, ok1 := r.vec8()
	suites, ok2 := r.vec16()
	comp, ok3 := r.vec8()
	if !ok || !ok1 || !ok2 || !ok3 || len(sid) > 32 || len(suites) < 2 || len(suites)%2 != 0 || len(comp) == 0 {
		return hello{}, errOddHello
	}
	if len(r) == 0 { // no extensions at all
		return hello{}, nil
	}
	exts, ok := r.vec16()
	if !ok || len(r) != 0 {
		return hello{}, errOddHello
	}
	var h hello
	seen := make(map[uint16]bool, 24)
	for e := reader(exts); len(e) > 0; {
		typ, ok := e.u16()
		data, ok1 := e.vec16()
		if !ok || !ok1 || seen[typ] { // two of one kind: two readers, two names
			return hello{}, errOddHello
		}
		seen[typ] = true
		switch typ {
		case 0:
			name, err := parseServerName(data)
			if err != nil {
				return hello{}, err
			}
			h.name = name
		case 0xfe0d, 0xfe0c, 0xfe0b, 0xfe0a, 0xfe09, 0xfe08, 0xffce: // encrypted_client_hello, its drafts, and ESNI
			h.encrypted = true
		}
	}
	return h, nil
}

// parseServerName reads a server_name extension (RFC 6066 section 3): exactly one entry, a host_name.
func parseServerName(data reader) (string, error) {
	list, ok := data.vec16()
	if !ok || len(data) != 0 {
		return "", errOddHello
	}
	typ, ok := list.take(1)
	name, ok1 := list.vec16()
	if !ok || !ok1 || typ[0] != 0 || len(name) == 0 || len(name) > 255 || len(list) != 0 {
		return "", errOddHello
	}
	return string(name), nil
}

// reader cuts length-prefixed vectors off its front.
type reader []byte

func (r *reader) take(n int) (reader, bool) {
	if len(*r) < n {
		return nil, false
	}
	out := (*r)[:n:n]
	*r = (*r)[n:]
	return out, true
}

func (r *reader) u16() (uint16, bool) {
	b, ok := r.take(2)
	if !ok {
		return 0, false
	}
	return binary.BigEndian.Uint16(b), true
}

func (r *reader) vec8() (reader, bool) {
	n, ok := r.take(1)
	if !ok {
		return nil, false
	}
	return r.take(int(n[0]))
}

func (r *reader) vec16() (reader, bool) {
	n, ok := r.u16()
	if !ok {
		return nil, false
	}
	return r.take(int(n))
}

// readHello reads a whole ClientHello into the stream's buffer and leaves it there. short, where there is one, is called before each
// wait for more of it; its error is final.
func (s *stream) readHello(short func() error) (hello, error) {
	var r helloReader
	for {
		h, err := r.read(s.buffered())
		if err != errHelloShort {
			return h, err
		}
		if short != nil {
			if err := short(); err != nil {
				return hello{}, err
			}
		}
		if err := s.fill(maxHello); err != nil {
			if err == errTooLarge {
				return hello{}, errOddHello
			}
			return hello{}, unexpected(err, len(s.buffered()))
		}
	}
}

// alert is a fatal TLS alert in the clear, so that a client whose hello is refused can say why rather than report a broken
// connection (RFC 8446 section 6).
func alert(description byte) []byte { return []byte{0x15, 3, 3, 0, 2, 2, description} }

const (
	alertAccessDenied     = 49
	alertInternalError    = 80
	alertUnrecognizedName = 112
)
