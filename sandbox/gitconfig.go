package sandbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of git's configuration as it is read here: far above what people write.
const (
	maxGitConfig = 1 << 20
	maxIncludes  = 64
)

// gitNamed is what git's configuration names by path. In a folder that is open for writing it is as good as the configuration itself.
// The paths are absolute and without dots; nothing is said about whether they exist.
type gitNamed struct {
	hooks    []string // folders
	included []string // files that git reads as more configuration or as attributes
	commands []string // words of commands
}

// gitCommands are the last parts of keys whose value is a command, in lower case.
var gitCommands = []string{"askpass", "clean", "cmd", "command", "difffilter", "driver", "editor", "external", "fsmonitor", "helper", "packobjectshook",
	"pager", "process", "program", "receivepack", "smudge", "sshcommand", "textconv", "uploadpack"}

// readGitNamed reads configuration files of the repository whose work tree is top, and what they include. They are read here and
// never by git, which would run what they name. What cannot be read names nothing that git could read.
func readGitNamed(top, home string, configs ...string) gitNamed {
	var n gitNamed
	for read := 0; read < len(configs) && read < maxIncludes; read++ {
		path := configs[read]
		for key, value := range gitConfigValues(path) {
			at := func(base string) string {
				if rest, ok := strings.CutPrefix(value, "~/"); ok {
					return filepath.Join(home, rest)
				} else if filepath.IsAbs(value) {
					return filepath.Clean(value)
				}
				return filepath.Join(base, value)
			}
			last := key[strings.LastIndexByte(key, '.')+1:]
			switch {
			case value == "":
			case key == "core.hookspath":
				n.hooks = append(n.hooks, at(top))
			case last == "path" && (strings.HasPrefix(key, "include.") || strings.HasPrefix(key, "includeif.")):
				if to := at(filepath.Dir(path)); !slices.Contains(configs, to) {
					configs = append(configs, to)
					n.included = append(n.included, to)
				}
			case key == "core.attributesfile":
				n.included = append(n.included, at(top))
			case strings.HasPrefix(key, "alias."), slices.Contains(gitCommands, last):
				for _, word := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t'\"!;|&()<>=", r) }) {
					if !filepath.IsAbs(word) {
						word = filepath.Join(top, word)
					}
					n.commands = append(n.commands, filepath.Clean(word))
				}
			}
		}
	}
	return n
}

// gitConfigValues reads one file as far as its form is git's: section.subsection.name, in lower case, and value.
func gitConfigValues(path string) func(yield func(key, value string) bool) {
	return func(yield func(key, value string) bool) {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 { // files of the kernel's are empty until they are read, and some wait then
			return
		}
		f, err := os.Open(path)
		if err != nil {
			return
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxGitConfig))
		if err != nil {
			return
		}
		text := strings.ReplaceAll(strings.ReplaceAll(string(data), "\r\n", "\n"), "\\\n", "")
		section := ""
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if rest, ok := strings.CutPrefix(line, "["); ok {
				name, after, ok := cutSection(rest)
				if !ok {
					continue
				}
				section, line = strings.ToLower(name), strings.TrimSpace(after)
			}
			name, value, ok := strings.Cut(line, "=")
			if !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
				continue
			}
			if !yield(section+"."+strings.ToLower(strings.TrimSpace(name)), gitValue(value)) {
				return
			}
		}
	}
}

// cutSection cuts a section's head, whose quoted part may hold brackets.
func cutSection(s string) (name, after string, ok bool) {
	quoted := false
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quoted && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return b.String(), s[i+1:], true
		case (c == ' ' || c == '\t') && !quoted:
			b.WriteByte('.')
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// gitValue takes quotes, escapes and a comment from a value.
func gitValue(s string) string {
	quoted := false
	var b strings.Builder
	s = strings.TrimSpace(s)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case c == '"':
			quoted = !quoted
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// repositoryOf finds the repository that a folder lies in, and the files that configure it.
func repositoryOf(dir, home string) (top string, configs []string, err error) {
	for top = dir; ; top = filepath.Dir(top) {
		dotGit := filepath.Join(top, ".git")
		if info, err := os.Stat(dotGit); err == nil && info.IsDir() {
			configs = []string{filepath.Join(dotGit, "config"), filepath.Join(dotGit, "config.worktree")}
			break
		}
		tree, err := readWorkTree(top)
		if err == nil {
			configs = []string{filepath.Join(tree.common, "config"), filepath.Join(tree.gitDir, "config.worktree")}
			break
		} else if !errors.Is(err, errNotWorkTree) && top == dir {
			return "", nil, err
		}
		if top == "/" {
			top = dir // none yet; one that is made here later has the person's own configuration
			break
		}
	}
	configs = append(configs, "/etc/gitconfig")
	if home != "" {
		configs = append(configs, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config/git/config"))
	}
	return top, configs, nil
}
