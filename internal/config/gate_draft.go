package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-4e9f7b04/hearsay/gate"
)

// DraftTools writes labels as the tools section of a file, each line with the reason it was drafted for.
func DraftTools(labels []gate.ToolLabels) string {
	var b strings.Builder
	b.WriteString("tools:\n")
	for _, l := range labels {
		fmt.Fprintf(&b, "  %s:\n", yamlText(l.Server+"."+l.Tool))
		fmt.Fprintf(&b, "    effects: [%s]%s\n", strings.Join(l.Effects.Names(), ", "), comment(strings.Join(l.Reasons, "; ")))
		if len(l.Bind) > 0 {
			b.WriteString("    bind:\n")
			for _, bind := range l.Bind {
				fmt.Fprintf(&b, "      - {arg: %s, kind: %s, class: %s}%s\n", yamlText(bind.Path), bind.Kind, bind.Class, comment(bind.Reason))
			}
		}
		list := func(key string, names []string) {
			if len(names) == 0 {
				return
			}
			quoted := make([]string, len(names))
			for i, n := range names {
				quoted[i] = yamlText(n)
			}
			fmt.Fprintf(&b, "    %s: [%s]\n", key, strings.Join(quoted, ", "))
		}
		list("text", l.Text)
		list("anchor", l.Anchor)
		if l.Trusted {
			b.WriteString("    trusted: true\n")
		}
	}
	return b.String()
}

// yamlText quotes a name that a server chose, so that it stays one scalar on one line.
func yamlText(s string) string {
	for i, c := range s {
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c != '.' && c != '-') {
			return strconv.QuoteToASCII(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// comment writes a reason behind a line. Reasons may repeat words of a server, so nothing but one line of text leaves here.
func comment(reason string) string {
	if reason == "" {
		return ""
	}
	return "  # " + strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == 0x2028 || r == 0x2029 || r == 0x85 {
			return ' '
		}
		return r
	}, reason)
}
