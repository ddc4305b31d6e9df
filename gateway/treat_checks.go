package gateway

import (
	"encoding/base64"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-4e9f7b04/hearsay/envelope"
	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"

	"github.com/seed-4e9f7b04/hearsay/screen"
)

// checkFunc returns the value that passes and whether one does.
type checkFunc func(p *pass, v strictjson.Value) (strictjson.Value, bool)

// checks are the grammars that the rows of action check name. A string that holds the token, or anything a reader cannot see,
// fits none of them.
var checks = map[string]checkFunc{
	"bool":     kind(strictjson.KindBool),
	"number":   kind(strictjson.KindNumber),
	"count":    func(_ *pass, v strictjson.Value) (strictjson.Value, bool) { return v, isCount(v) },
	"fraction": func(_ *pass, v strictjson.Value) (strictjson.Value, bool) { return v, fraction.MatchString(v.Number()) },
	"ttl":      ttl,
	"cachettl": cacheTTL,
	"integer":  func(_ *pass, v strictjson.Value) (strictjson.Value, bool) { return v, isInteger(v) },
	"tokens":   atMost(maxTokens),
	"id": func(_ *pass, v strictjson.Value) (strictjson.Value, bool) {
		return v, v.Kind() == strictjson.KindNumber || isOpaque(v, maxOpaque)
	},
	"opaque":      func(_ *pass, v strictjson.Value) (strictjson.Value, bool) { return v, isOpaque(v, maxOpaque) },
	"cursor":      func(_ *pass, v strictjson.Value) (strictjson.Value, bool) { return v, isOpaque(v, maxCursor) },
	"state":       requestState,
	"word":        matches(word),
	"line":        matches(regexp.MustCompile(`^[ -~]{0,256}$`)),
	"version":     matches(version),
	"stamp":       stamp,
	"time":        matches(timestamp),
	"mime":        matches(mime),
	"toolname":    matches(definitionName),
	"level":       oneOf("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"),
	"taskstatus":  oneOf("working", "input_required", "completed", "failed", "cancelled"),
	"tasksupport": oneOf("forbidden", "optional", "required"),
	"toolchoice":  oneOf("auto", "none", "required"),
	"schematype":  oneOf("string", "number", "integer", "boolean", "array", "object"),
	"theme":       oneOf("light", "dark"),
	"resulttype":  oneOf("complete", "input_required", "task"),
	"roles":       each(oneOf("user", "assistant")),
	"versions":    each(matches(version)),
	"words":       each(matches(word)),
	"uris":        each(checkURI),
	"tasks":       each(func(_ *pass, v strictjson.Value) (strictjson.Value, bool) { return v, isOpaque(v, maxOpaque) }),
	"sizes":       sizes,
	"uri":         repairURI,
	"strictlyuri": checkURI,
	"template":    checkTemplate,
	"https":       checkHTTPS,
	"address":     elicitationURL,
	"icon":        icon,
	// The bytes of media and blobs are checked against their type, with the whole block in hand: see treat_blocks.go.
	"media": kind(strictjson.KindString),
	"blob":  kind(strictjson.KindString),
}

var (
	word           = regexp.MustCompile(`^[A-Za-z0-9_.:/+-]{1,128}$`)
	version        = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	mime           = regexp.MustCompile(`^[A-Za-z0-9!#$&^_.+-]{1,63}/[A-Za-z0-9!#$&^_.+-]{1,63}( ?; ?[A-Za-z0-9_-]{1,32}=("[A-Za-z0-9 ._:/+-]{0,64}"|[A-Za-z0-9._:/+-]{1,64})){0,4}$`)
	definitionName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*([./]?[A-Za-z0-9_-]+)*$`)
	timestamp      = regexp.MustCompile(`^\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:?\d\d)?)?$`)
	fraction       = regexp.MustCompile(`^(0(\.\d{1,20})?|1(\.0{1,20})?)$`)
	integer        = regexp.MustCompile(`^-?\d{1,15}$`)
	scheme         = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]{0,63}:`)
	iconData       = regexp.MustCompile(`^data:image/(png|jpeg|webp);base64,([A-Za-z0-9+/]+={0,2})$`)
	iconSize       = regexp.MustCompile(`^(any|\d{1,5}x\d{1,5})$`)
)

func kind(k strictjson.Kind) checkFunc {
	return func(_ *pass, v strictjson.Value) (strictjson.Value, bool) { return v, v.Kind() == k }
}

func matches(re *regexp.Regexp) checkFunc {
	return func(_ *pass, v strictjson.Value) (strictjson.Value, bool) {
		s := v.Str()
		return v, v.Kind() == strictjson.KindString && len(s) <= maxLine && re.MatchString(s) && !holdsToken(s)
	}
}

func oneOf(words ...string) checkFunc {
	return func(_ *pass, v strictjson.Value) (strictjson.Value, bool) {
		for _, w := range words {
			if v.Kind() == strictjson.KindString && v.Str() == w {
				return v, true
			}
		}
		return v, false
	}
}

// each keeps the elements that hold and counts the others.
func each(hold checkFunc) checkFunc {
	return func(p *pass, v strictjson.Value) (strictjson.Value, bool) {
		if v.Kind() != strictjson.KindArray {
			return v, false
		}
		kept := make([]strictjson.Value, 0, min(v.Len(), 1024))
		for i, e := range v.Elems() {
			if e, ok := hold(p, e); ok && i < 1024 {
				kept = append(kept, e)
			} else {
				p.drop("invalid")
			}
		}
		return strictjson.Array(kept...), true
	}
}

func atMost(max int) checkFunc {
	return func(p *pass, v strictjson.Value) (strictjson.Value, bool) {
		if !isInteger(v) {
			return v, false
		}
		if n, _ := strconv.Atoi(v.Number()); n > max {
			p.find("capped", "")
			return number(max), true
		}
		return v, true
	}
}

func number(n int) strictjson.Value { return strictjson.Number(strconv.Itoa(n)) }

func isInteger(v strictjson.Value) bool { return integer.MatchString(v.Number()) }

func isCount(v strictjson.Value) bool { return isInteger(v) && v.Number()[0] != '-' }

// ttl: null is without end, and what stands for a value that is none.
func ttl(p *pass, v strictjson.Value) (strictjson.Value, bool) {
	if isCount(v) || v.Kind() == strictjson.KindNull {
		return v, true
	}
	p.find("invalid", "")
	return strictjson.Null(), true
}

// cacheTTL bounds how long a client may believe a list.
func cacheTTL(p *pass, v strictjson.Value) (strictjson.Value, bool) {
	if !isCount(v) {
		p.find("invalid", "")
		return number(0), true
	}
	return atMost(maxCacheMS)(p, v)
}

// stamp: a task has to have its times; one that is none becomes the beginning of time.
func stamp(p *pass, v strictjson.Value) (strictjson.Value, bool) {
	if v, ok := matches(timestamp)(p, v); ok {
		return v, true
	}
	p.find("invalid", "")
	return strictjson.String("1970-01-01T00:00:00Z"), true
}

func isWord(s string) bool { return len(s) <= maxName && word.MatchString(s) && !holdsToken(s) }

// isOpaque: printable ASCII without the token. What is echoed byte for byte cannot be cleaned, so anything else does not pass.
func isOpaque(v strictjson.Value, max int) bool {
	s := v.Str()
	if v.Kind() != strictjson.KindString || len(s) > max {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return !holdsToken(s)
}

func holdsToken(s string) bool { return envelope.NeutralizeLookalikes(s) != s }

// unseen reports whether cleaning would change s.
func unseen(s string) bool {
	cleaned, _ := screen.Clean(s)
	return cleaned != s
}

// requestState is opaque to the client and sent back; one that is too large or no plain text refuses the message, since without
// it the client's next try could not succeed.
func requestState(p *pass, v strictjson.Value) (strictjson.Value, bool) {
	if isOpaque(v, maxState) {
		return v, true
	}
	p.fail(errState)
	return v, false
}

// checkURI takes a URI, or an IRI as servers write file names, as it is: a client sends it back.
func checkURI(_ *pass, v strictjson.Value) (strictjson.Value, bool) {
	s := v.Str()
	return v, scheme.MatchString(s) && len(s) <= maxURI && passableScheme(s) && !strings.ContainsFunc(s, oddInURI) && !unseen(s) && !holdsToken(s)
}

// checkTemplate is checkURI for a template of RFC 6570.
func checkTemplate(p *pass, v strictjson.Value) (strictjson.Value, bool) {
	s := strings.NewReplacer("{", "", "}", "").Replace(v.Str())
	_, ok := checkURI(p, strictjson.String(s))
	return v, ok && !holdsToken(v.Str())
}

// repairURI percent-encodes what a URI cannot hold. For places where the text beside the URI matters more than the URI.
func repairURI(p *pass, v strictjson.Value) (strictjson.Value, bool) {
	if v, ok := checkURI(p, v); ok {
		return v, true
	}
	s := v.Str()
	if !scheme.MatchString(s) || len(s) > maxURI || !passableScheme(s) {
		return v, false
	}
	p.find("uri", "")
	s, _ = screen.Clean(s)
	var b strings.Builder
	for _, r := range envelope.NeutralizeLookalikes(s) {
		if oddInURI(r) {
			b.WriteString(url.PathEscape(string(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return strictjson.String(envelope.NeutralizeLookalikes(b.String())), true
}

func oddInURI(r rune) bool {
	return r < ' ' || r == 0x7f || strings.ContainsRune("<>\"`{}|\\^", r) || unicode.IsControl(r) || r > 0x7f && unicode.IsSpace(r)
}

// passableScheme refuses schemes that run, or that carry text past the frame.
func passableScheme(s string) bool {
	name, _, _ := strings.Cut(strings.ToLower(s), ":")
	switch name {
	case "javascript", "vbscript", "data", "blob", "about", "view-source", "ui":
		return false
	}
	return true
}

// checkHTTPS holds for an https address of an outside host.
func checkHTTPS(_ *pass, v strictjson.Value) (strictjson.Value, bool) {
	s := v.Str()
	u, err := url.Parse(s)
	return v, v.Kind() == strictjson.KindString && len(s) <= maxURI && err == nil && (u.Scheme == "https" || u.Scheme == "http" && u.Host == "json-schema.org") &&
		u.User == nil && u.Host != "" && !strings.ContainsFunc(s, oddInURI) && !unseen(s) && !holdsToken(s)
}

// elicitationURL is the address a server wants a person to open. Its user part, which makes another host look like the one it
// leads to, is taken off; the frame of the message shows the host. An address that leads inward, to where only this machine
// reaches, or to the gateway's own pages refuses the message.
func elicitationURL(p *pass, v strictjson.Value) (strictjson.Value, bool) {
	u, err := url.Parse(v.Str())
	if err != nil || u.Scheme != "https" || len(v.Str()) > maxURI || u.Hostname() == "" || unseen(v.Str()) || holdsToken(v.Str()) ||
		strings.ContainsFunc(v.Str(), oddInURI) || !outwardHost(u.Hostname(), p.t.source.OwnHosts) {
		p.fail(errAddress)
		return v, false
	}
	if u.User != nil {
		p.find("user-part", "")
		u.User = nil
		return strictjson.String(u.String()), true
	}
	return v, true
}

// outwardHost judges by the name alone: the person's browser resolves it, not the gateway.
func outwardHost(host string, own []string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, o := range own {
		if strings.EqualFold(o, host) {
			return false
		}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap()
		return addr.Is4() && addr.IsGlobalUnicast() && !addr.IsPrivate() && !addr.IsLoopback() && !addr.IsLinkLocalUnicast()
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case last == host, last == "localhost", last == "local", last == "internal", last == "home", last == "lan", last == "arpa":
		return false
	case strings.Trim(last, "0123456789abcdefx") == "" && strings.ContainsAny(last[:1], "0123456789"):
		return false // 127.1, 0x7f.1 and other spellings of an address
	}
	for i := range len(host) {
		if c := host[i]; c != '.' && c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false // a person cannot tell раypal.com from paypal.com; punycode shows it
		}
	}
	return true
}

func icon(_ *pass, v strictjson.Value) (strictjson.Value, bool) {
	s := v.Str()
	if len(s) > maxIcon {
		return v, false
	}
	m := iconData.FindStringSubmatch(s)
	if m == nil {
		return v, false
	}
	data, err := base64.StdEncoding.DecodeString(m[2])
	return v, err == nil && sniff(data) == "image/"+m[1]
}

// sizes: a list of 48x48 or any; one string in older versions.
func sizes(p *pass, v strictjson.Value) (strictjson.Value, bool) {
	if v.Kind() == strictjson.KindString {
		return v, iconSize.MatchString(v.Str())
	}
	return each(matches(iconSize))(p, v)
}

// secretWords make a field of a form look like it asks for a secret.
var secretWords = map[string]bool{"password": true, "passwd": true, "pwd": true, "passphrase": true, "passcode": true, "secret": true, "secrets": true,
	"apikey": true, "credential": true, "credentials": true, "otp": true, "totp": true, "cvv": true, "cvc": true, "pin": true, "ssn": true, "mnemonic": true,
	"token": true, "passwort": true, "kennwort": true, "contraseña": true, "mdp": true}

var secretPairs = map[string]bool{"api key": true, "private key": true, "access key": true, "secret key": true, "signing key": true, "encryption key": true,
	"recovery code": true, "security code": true, "verification code": true, "one time": true, "seed phrase": true, "recovery phrase": true,
	"card number": true, "credit card": true, "mot de": true, "pass word": true, "pass phrase": true}

// looksSecret reads a name in words: apiKey, API_KEY, "API key" are the same two. A number of tokens is no secret.
func looksSecret(name string) bool {
	words := nameWords(name)
	for i, w := range words {
		if w == "token" && i > 0 && (words[i-1] == "max" || words[i-1] == "min" || words[i-1] == "per") {
			continue
		}
		if secretWords[w] || i > 0 && secretPairs[words[i-1]+" "+w] {
			return true
		}
	}
	return false
}

func nameWords(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range cut(name, maxLine) {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		if !unicode.IsLetter(r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}
