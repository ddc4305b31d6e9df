package connect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Format is how the servers stand in a file.
type Format struct {
	Key      string // the member that holds them, by their names
	TOML     bool   // otherwise JSON with comments
	Projects bool   // the members of "projects" may each hold servers too, for that folder
	Typed    bool   // an entry says that it is of type stdio
}

// Formats are the forms a file can have, by the name of the member that holds the servers: what --format takes.
var Formats = map[string]Format{
	"mcpServers":  {Key: "mcpServers"},
	"servers":     {Key: "servers", Typed: true},
	"mcp_servers": {Key: "mcp_servers", TOML: true},
}

// Client is a program that starts MCP servers, and where its users configure them.
type Client struct {
	Name   string
	Format Format
	// Project is the path of a project's file below the project's folder; empty: it has none.
	Project string
	// After says how the client takes up a change.
	After string
	user  func(Place) (string, error)
}

// Place is the machine as far as it says where a client keeps its file.
type Place struct {
	OS     string // as runtime.GOOS
	Home   string
	Getenv func(string) string
}

// Clients are the known ones, in the order help shows them.
var Clients = []Client{
	{Name: "claude-code", Format: Format{Key: "mcpServers", Projects: true, Typed: true}, Project: ".mcp.json",
		After: "Start Claude Code again: one that runs keeps its configuration and may write it back. It asks once more before it uses a changed entry of a project.",
		user:  func(p Place) (string, error) { return p.in("CLAUDE_CONFIG_DIR", "", ".claude.json") }},
	{Name: "claude-desktop", Format: Format{Key: "mcpServers"}, After: "Quit Claude Desktop and start it again.",
		user: func(p Place) (string, error) { return p.app("Claude", "claude_desktop_config.json") }},
	{Name: "cursor", Format: Format{Key: "mcpServers", Typed: true}, Project: ".cursor/mcp.json", After: "Start Cursor again.",
		user: func(p Place) (string, error) { return filepath.Join(p.Home, ".cursor", "mcp.json"), nil }},
	{Name: "vscode", Format: Format{Key: "servers", Typed: true}, Project: ".vscode/mcp.json", After: "Start the servers again (MCP: List Servers).",
		user: func(p Place) (string, error) { return p.app("Code", "User", "mcp.json") }},
	{Name: "codex", Format: Format{Key: "mcp_servers", TOML: true}, Project: ".codex/config.toml", After: "Start Codex again.",
		user: func(p Place) (string, error) { return p.in("CODEX_HOME", ".codex", "config.toml") }},
	{Name: "gemini", Format: Format{Key: "mcpServers"}, Project: ".gemini/settings.json", After: "Start Gemini CLI again.",
		user: func(p Place) (string, error) { return p.in("GEMINI_CLI_HOME", "", ".gemini", "settings.json") }},
	{Name: "windsurf", Format: Format{Key: "mcpServers"}, After: "Refresh the servers in Cascade.",
		user: func(p Place) (string, error) {
			return filepath.Join(p.Home, ".codeium", "windsurf", "mcp_config.json"), nil
		}},
}

// ClientNames lists the known clients.
func ClientNames() []string {
	var names []string
	for _, c := range Clients {
		names = append(names, c.Name)
	}
	return names
}

// ClientNamed finds a client.
func ClientNamed(name string) (Client, error) {
	for _, c := range Clients {
		if c.Name == name {
			return c, nil
		}
	}
	return Client{}, fmt.Errorf("no client %q is known: it is one of %s; for another name its file with --file and --format", name, strings.Join(ClientNames(), ", "))
}

// UserFile is the path of the file that holds for a user. Only Linux and macOS are known.
func (c Client) UserFile(p Place) (string, error) {
	if p.OS != "linux" && p.OS != "darwin" {
		return "", fmt.Errorf("where %s keeps its file is known on Linux and macOS only: name it with --file", c.Name)
	}
	if !filepath.IsAbs(p.Home) {
		return "", fmt.Errorf("there is no home folder: name the file of %s with --file", c.Name)
	}
	return c.user(p)
}

// ProjectFile is the path of the file of the project in dir.
func (c Client) ProjectFile(dir string) (string, error) {
	if c.Project == "" {
		return "", fmt.Errorf("%s has no file for a project", c.Name)
	}
	return filepath.Join(dir, filepath.FromSlash(c.Project)), nil
}

// in is a path in the folder that a variable names, by default one at home. A relative one depends on where the client runs.
func (p Place) in(variable, byDefault string, elem ...string) (string, error) {
	base := filepath.Join(p.Home, byDefault)
	if dir := p.Getenv(variable); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%s is no absolute path: name the file that is meant with --file", variable)
		}
		base = dir
	}
	return filepath.Join(append([]string{base}, elem...)...), nil
}

// app is a path in the folder where desktop programs keep what a user sets.
func (p Place) app(elem ...string) (string, error) {
	base := filepath.Join(p.Home, ".config")
	if p.OS == "darwin" {
		base = filepath.Join(p.Home, "Library", "Application Support")
	} else if dir := p.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		base = dir
	}
	return filepath.Join(append([]string{base}, elem...)...), nil
}

// Here is the machine that this program runs on.
func Here(goos string) Place {
	home, _ := os.UserHomeDir() // absent: UserFile says so
	return Place{OS: goos, Home: home, Getenv: os.Getenv}
}
