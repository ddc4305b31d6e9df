package gate

import (
	"path"
	"slices"
	"strings"
)

// plain wrappers run the command behind their options and change nothing about what it does. The value holds the options
// that take the next word, and how many words of their own stand before the command.
var plainWrappers = map[string]struct {
	options string
	own     int
}{
	"nohup":   {"", 0},
	"setsid":  {"", 0},
	"command": {"", 0},
	"builtin": {"", 0},
	"exec":    {"", 0},
	"nice":    {"n", 0},
	"ionice":  {"cn", 0},
	"timeout": {"ks", 1},
	"stdbuf":  {"ioe", 0},
	"env":     {"", 0},
}

// runners run their arguments, or a text, as a command, but with other rights, other arguments, elsewhere or often.
// What they do is not what the inner command does, so they are never resolved.
var runners = set(`sudo doas su runuser pkexec xargs parallel watch strace ltrace script expect ssh flock chroot unshare nsenter taskset chrt setarch setpriv capsh systemd-run bwrap firejail entr trap coproc at batch tmux screen alias env exec command builtin nohup setsid nice ionice timeout stdbuf time`)

// unwrap looks for the command that words[0] will run, and adds it. Where the whole effect of the wrapper is that command,
// pt is emptied; else pt stays, to be allowed by a rule of its own.
func (p *shellParser) unwrap(words []word, pt *part) {
	name := path.Base(words[0].text)
	if len(words) < 2 {
		if shells[name] {
			p.doubt("a shell that reads its commands elsewhere")
		}
		return
	}
	if !p.enter() {
		return
	}
	defer func() { p.depth-- }()
	switch wrap, plain := plainWrappers[name]; {
	case name == "eval":
		if joined, known := join(words[1:]); known {
			pt.text = ""
			p.nested(joined)
			return
		}
	case shells[name]:
		p.shell(words, pt)
		return
	case plain:
		if inner := wrapped(words, wrap.options, wrap.own); inner != nil {
			pt.text = ""
			p.command(inner)
			return
		}
	}
	if !runners[name] && !(name == "find" && findRuns(words)) {
		return
	}
	pt.runs = true
	p.doubt("a program that runs its arguments")
	for _, w := range words[1:] {
		if strings.ContainsAny(w.text, " \t\n;|&`$") {
			p.nested(w.text)
		}
	}
}

// findRuns reports whether a find command runs others.
func findRuns(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool {
		return w.text == "-exec" || w.text == "-execdir" || w.text == "-ok" || w.text == "-okdir"
	})
}

// shell reads sh -c 'script'. With other options or a file it is a command like others.
func (p *shellParser) shell(words []word, pt *part) {
	rest := words[1:]
	if path.Base(words[0].text) == "busybox" {
		pt.text = ""
		p.command(rest)
		return
	}
	for i, w := range rest {
		if !strings.HasPrefix(w.text, "-") || w.text == "-" || !w.known {
			break
		}
		if !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "c") && i+1 < len(rest) {
			if len(rest) == 2 && w.text == "-c" && rest[1].known {
				pt.text = ""
			} else {
				p.doubt("a shell with options")
			}
			p.nested(rest[i+1].text)
			return
		}
	}
	if rest[0].text == "" || rest[0].text[0] == '-' || !rest[0].known {
		p.doubt("a shell with options")
	}
}

// wrapped gives the words of the command behind a plain wrapper, or nil where that is not clear.
func wrapped(words []word, options string, own int) []word {
	i := 1
	for ; i < len(words); i++ {
		w := words[i]
		if !w.known {
			return nil
		}
		opt, isOption := strings.CutPrefix(w.text, "-")
		switch {
		case !isOption && own > 0:
			own--
		case !isOption && !assignment(w.text):
			return words[i:]
		case !isOption || opt == "" || opt == "-" || !strings.ContainsRune(options, rune(opt[0])):
			return nil
		case len(opt) == 1:
			i++
		}
	}
	return nil
}

func join(words []word) (string, bool) {
	var b strings.Builder
	known := true
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.text)
		known = known && w.known
	}
	return b.String(), known
}
