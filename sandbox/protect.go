package sandbox

import (
	"path/filepath"
	"slices"
)

// guard is a path in a project that no sandbox may change: what a program outside runs or obeys without asking again.
type guard struct {
	path string
	dir  bool
	home bool   // in the caller's home only
	hold bool   // made when absent, held for the run, and removed afterwards; see hold
	text string // content of a held file: what its reader takes for nothing
}

// guards are relative to the project. What is below a guarded folder is guarded with it.
var guards = []guard{
	// git runs hooks, and commands that its configuration and attributes name, when anybody asks for a status.
	{path: ".git/hooks", dir: true, hold: true},
	{path: ".git/config", hold: true},
	{path: ".git/config.worktree", hold: true},
	{path: ".git/info", dir: true, hold: true},
	{path: ".git/worktrees", dir: true, hold: true},   // where the common folder of other work trees is
	{path: ".git/modules", dir: true, hold: true},     // configuration and hooks of submodules
	{path: ".git/commondir", hold: true, text: ".\n"}, // names the folder whose configuration counts; "." is the one that counts without it
	{path: ".gitmodules"},
	{path: ".hg/hgrc", hold: true}, // the same in Mercurial and Jujutsu
	{path: ".hg/hgrc-not-shared", hold: true},
	{path: ".jj/repo/config.toml", hold: true},
	{path: ".husky", dir: true},
	{path: ".githooks", dir: true},
	{path: ".pre-commit-config.yaml"},
	{path: "lefthook.yml"},

	// Agents and editors start servers, tasks and hooks that these name.
	{path: ".mcp.json", hold: true, text: "{\"mcpServers\": {}}\n"},
	{path: ".claude", dir: true, hold: true},
	{path: ".cursor", dir: true, hold: true},
	{path: ".vscode", dir: true, hold: true},
	{path: ".codex", dir: true, hold: true},
	{path: ".gemini", dir: true, hold: true},
	{path: ".idea", dir: true},
	{path: ".zed", dir: true},
	{path: ".windsurf", dir: true},
	{path: ".roo", dir: true},
	{path: ".kiro", dir: true},
	{path: ".continue", dir: true},
	{path: ".opencode", dir: true},
	{path: "opencode.json"},
	{path: "opencode.jsonc"},
	{path: ".amazonq", dir: true},
	{path: ".qwen", dir: true},
	{path: ".crush.json"},
	{path: "crush.json"},
	{path: ".aider.conf.yml"},
	{path: ".helix", dir: true},
	{path: ".devcontainer", dir: true},
	{path: "CLAUDE.md"},
	{path: "CLAUDE.local.md"},
	{path: "AGENTS.md"},
	{path: "GEMINI.md"},
	{path: ".cursorrules"},
	{path: ".windsurfrules"},
	{path: "hearsay.yaml"},

	// Shells and their helpers run these.
	{path: ".envrc"},
	{path: ".bashrc"},
	{path: ".bash_profile"},
	{path: ".bash_login"},
	{path: ".bash_logout"},
	{path: ".bash_aliases"},
	{path: ".profile"},
	{path: ".zshrc"},
	{path: ".zshenv"},
	{path: ".zprofile"},
	{path: ".zlogin"},
	{path: ".zlogout"},
	{path: ".kshrc"},
	{path: ".cshrc"},
	{path: ".tcshrc"},
	{path: ".login"},
	{path: ".inputrc"},
	{path: ".gitconfig"},
	{path: ".config/git", dir: true, home: true},
	{path: ".config/fish", dir: true, home: true},
	{path: ".config/autostart", dir: true, home: true},
	{path: ".config/environment.d", dir: true, home: true},
	{path: ".xprofile", home: true},
	{path: ".xinitrc", home: true},
	{path: ".xsession", home: true},
	{path: ".vimrc", home: true},
	{path: ".vim", dir: true, home: true},
	{path: ".config/nvim", dir: true, home: true},
	{path: ".tmux.conf", home: true},
	{path: ".config/systemd", dir: true, home: true},
	{path: ".local/bin", dir: true, home: true},
	{path: "bin", dir: true, home: true},
	{path: ".ssh", dir: true, home: true, hold: true}, // hidden when it is there; a new one could hold whoever's keys
}

// guardsOf are the guards of a project or writable folder. home says that the folder is the caller's home, where more is run.
func guardsOf(home bool) []guard {
	if home {
		return guards
	}
	return slices.DeleteFunc(slices.Clone(guards), func(g guard) bool { return g.home })
}

// Protected names what a folder that is open for writing still holds read-only, relative to it. Those of them that are absent
// and that a program outside would obey at once are held for the run; the others only when they exist at the start.
func Protected() []string {
	var paths []string
	for _, g := range guardsOf(false) {
		paths = append(paths, g.path)
	}
	return paths
}

// credentials are below a home.
var credentials = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/rclone",
	".config/sops", ".config/doctl", ".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".config/git/credentials", ".pgpass", ".my.cnf", ".vault-token",
	".password-store", ".local/share/keyrings", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".terraform.d/credentials.tfrc.json",
	".config/google-chrome", ".config/chromium", ".mozilla", ".claude.json", ".claude/.credentials.json", ".codex/auth.json", ".config/hearsay",
	".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".thunderbird", ".var/app", "snap",
	".m2/settings.xml", ".gradle/gradle.properties", ".terraformrc", ".s3cfg", ".boto", ".oci", ".databrickscfg", ".composer/auth.json", ".config/composer/auth.json",
	".config/containers/auth.json", ".config/glab-cli", ".config/age", ".cache/huggingface/token", ".huggingface/token", ".gemini/oauth_creds.json",
	".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history", ".lesshst", ".viminfo",
}

// Hidden names the folders and files that stay invisible even inside a listed folder: keys, tokens and histories of home, and
// the system's password files. The same of other users' homes stay invisible too.
func Hidden(home string) []string {
	paths := []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/ssh", "/etc/sudoers", "/etc/sudoers.d"}
	return append(paths, hiddenInHome(home)...)
}

func hiddenInHome(home string) (paths []string) {
	if filepath.IsAbs(home) && home != "/" {
		for _, c := range credentials {
			paths = append(paths, filepath.Join(home, c))
		}
	}
	return paths
}
