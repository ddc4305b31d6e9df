//go:build real && linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-4e9f7b04/hearsay/internal/repotest"
)

func git(t *testing.T, args ...string) string {
	t.Helper()
	_, err := exec.LookPath("git")
	repotest.Need(t, "git", err == nil)
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@a.test"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

const identity = `git config --global user.name a; git config --global user.email a@a.test; `

// A linked work tree: its own index and branch can be written, what the main work tree would run cannot.
func TestLinkedWorkTree(t *testing.T) {
	base := folder(t, os.Geteuid())
	main, tree := filepath.Join(base, "main"), filepath.Join(base, "tree")
	git(t, "init", "-q", main)
	git(t, "-C", main, "commit", "-q", "--allow-empty", "-m", "first")
	git(t, "-C", main, "worktree", "add", "-q", "-b", "side", tree)
	script := identity + `git status --short && echo text >new && git add new && git commit -qm inside && git log -1 --format=%s
		for f in hooks/x config info/attributes commondir worktrees/other/x worktrees/tree/commondir worktrees/tree/gitdir; do echo x 2>/dev/null >` + main + `/.git/$f && echo "wrote $f"; done
		echo 'gitdir: /elsewhere' 2>/dev/null >.git && echo "wrote .git"
		ls ` + main + ` 2>&1 | grep -v '^ls:'; exit 0`
	out, exit := output(t, Spec{Args: []string{"sh", "-c", script}, Preset: ProjectRW, Project: tree})
	if exit.Status() != 0 || !strings.Contains(out, "inside\n") || strings.Contains(out, "wrote") {
		t.Errorf("%v\n%s", exit, out)
	}
	if got := git(t, "-C", main, "log", "-1", "--format=%s", "side"); got != "inside\n" {
		t.Errorf("the commit did not arrive: %q", got)
	}
	out, _ = output(t, Spec{Args: []string{"sh", "-c", "git log -1 --format=%s; git commit --allow-empty -qm no 2>/dev/null && echo wrote; exit 0"}, Preset: ProjectRO, Project: tree})
	if !strings.Contains(out, "inside\n") || strings.Contains(out, "wrote") {
		t.Errorf("read-only: %s", out)
	}
}

// A pointer that was changed to lead elsewhere stops the start: following it would open that place.
func TestTamperedWorkTreePointer(t *testing.T) {
	base := folder(t, os.Geteuid())
	main, tree := filepath.Join(base, "main"), filepath.Join(base, "tree")
	git(t, "init", "-q", main)
	git(t, "-C", main, "commit", "-q", "--allow-empty", "-m", "first")
	git(t, "-C", main, "worktree", "add", "-q", "-b", "side", tree)
	keys := filepath.Join(base, "home/.ssh")
	put(t, filepath.Join(keys, "id"), "secret")
	fake := filepath.Join(base, "home/.git/worktrees/x") // looks like one, and points to another
	put(t, filepath.Join(fake, "gitdir"), filepath.Join(main, ".git")+"\n")
	put(t, filepath.Join(fake, "commondir"), "../..\n")
	for _, to := range []string{keys, filepath.Join(base, "home"), fake, filepath.Join(base, "nothing"), "", main + "/.git"} {
		put(t, filepath.Join(tree, ".git"), "gitdir: "+to+"\n")
		if _, err := Start(t.Context(), Spec{Args: []string{"true"}, Preset: ProjectRW, Project: tree}); err == nil || !strings.Contains(err.Error(), "work tree") {
			t.Errorf("pointer to %q: %v", to, err)
		}
	}
}

// What is protected stays so when somebody outside replaces it: the sandbox ends, as the kernel takes the cover off.
func TestReplacedOutside(t *testing.T) {
	dir := folder(t, os.Geteuid())
	put(t, filepath.Join(dir, ".git/config"), "[core]\n")
	put(t, filepath.Join(dir, ".git/new"), "[core]\n\tbare = false\n")
	p := begin(t, Spec{Args: []string{"sh", "-c", "echo ready; while :; do echo evil 2>/dev/null >>.git/config; done"}, Preset: ProjectRW, Project: dir})
	if line, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil {
		t.Fatalf("%q %v", line, err)
	}
	must(t, os.Rename(filepath.Join(dir, ".git/new"), filepath.Join(dir, ".git/config")))
	_, err := p.Wait()
	var le *LayerError
	if !errors.Is(err, ErrGone) || !errors.As(err, &le) || !strings.Contains(le.Error(), ".git/config") {
		t.Errorf("Wait gives %v", err)
	}
}

// A listed link is there inside too, where the sandbox has a file system of its own, and a project may be listed once more.
func TestListedLinks(t *testing.T) {
	dir := folder(t, os.Geteuid())
	put(t, filepath.Join(dir, "real/file"), "text\n")
	link, err := os.MkdirTemp("/tmp", "hearsay-link-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(link) })
	must(t, os.Chmod(link, 0o755))
	must(t, os.Symlink(filepath.Join(dir, "real"), filepath.Join(link, "l")))
	if out, _ := output(t, Spec{Args: []string{"cat", filepath.Join(link, "l/file")}, Read: []string{filepath.Join(link, "l")}}); out != "text\n" {
		t.Errorf("inside: %q", out)
	}
	if out, _ := output(t, Spec{Args: []string{"echo", "started"}, Preset: ProjectRW, Project: dir, Write: []string{dir}}); out != "started\n" {
		t.Errorf("listed twice: %q", out)
	}
}

// Other version control is configured below its folder: where that is there, what it would run is guarded, there or absent.
func TestOtherRepositories(t *testing.T) {
	dir := folder(t, os.Geteuid())
	put(t, filepath.Join(dir, ".hg/store/data"), "")
	put(t, filepath.Join(dir, ".jj/repo/config.toml"), "")
	script := `for f in .hg/hgrc .hg/hgrc-not-shared .jj/repo/config.toml; do echo evil 2>/dev/null >$f && echo "wrote $f"; done
		mv .hg away 2>/dev/null && echo "moved .hg"; mv .jj/repo away 2>/dev/null && echo "moved .jj/repo"; echo x >.hg/store/new && echo usable; exit 0`
	if out, _ := output(t, Spec{Args: []string{"sh", "-c", script}, Preset: ProjectRW, Project: dir}); out != "usable\n" {
		t.Errorf("inside: %q", out)
	}
	if _, err := os.Lstat(filepath.Join(dir, ".hg/hgrc")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left on the host: %v", err)
	}
}

// Names that are absent are held for the run; what somebody outside puts into them stays.
func TestHeldNames(t *testing.T) {
	dir := folder(t, os.Geteuid())
	put(t, filepath.Join(dir, "file"), "text")
	p := begin(t, Spec{Args: []string{"sh", "-c", `echo ready; read x; cat .claude/settings.json; git init -q . 2>/dev/null && echo "made a repository"; echo {} 2>/dev/null >.mcp.json && echo "wrote"; exit 0`}, Preset: ProjectRW, Project: dir})
	out := bufio.NewReader(p.Stdout)
	if line, err := out.ReadString('\n'); err != nil {
		t.Fatalf("%q %v", line, err)
	}
	put(t, filepath.Join(dir, ".claude/settings.json"), "from outside\n")
	must(t, p.Stdin.Close())
	var rest strings.Builder
	if _, err := out.WriteTo(&rest); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if rest.String() != "from outside\n" {
		t.Errorf("inside: %q", rest.String())
	}
	var names []string
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := fmt.Sprint(names); got != "[.claude file]" {
		t.Errorf("left on the host: %s", got)
	}
}

// Hidden paths that are links, that are absent, and that are below a listed home.
func TestHiddenPaths(t *testing.T) {
	base := folder(t, os.Geteuid())
	home := filepath.Join(base, "home")
	t.Setenv("HOME", home)
	put(t, filepath.Join(home, ".ssh/id"), "secret")
	put(t, filepath.Join(home, ".netrc"), "secret")
	put(t, filepath.Join(home, "store/aws/credentials"), "secret")
	put(t, filepath.Join(home, "notes"), "notes")
	put(t, filepath.Join(home, ".config/gh/hosts.yml"), "secret")
	must(t, os.Symlink("store/aws", filepath.Join(home, ".aws")))
	script := `cd ` + home + `; cat notes .ssh/id .netrc .aws/credentials store/aws/credentials .config/gh/hosts.yml 2>&1
		echo x >.ssh/new && echo wrote; echo x >.netrc && echo wrote; ls .ssh && echo listed; exit 0`
	for _, spec := range []Spec{{Read: []string{home}}, {Preset: ProjectRW, Project: home}} {
		spec.Args = []string{"sh", "-c", script}
		out, exit := output(t, spec)
		if exit.Status() != 0 || !strings.Contains(out, "notes") || strings.Contains(out, "secret\n") || strings.Contains(out, "secretcat") || strings.Contains(out, "wrote") || strings.Contains(out, "listed") {
			t.Errorf("preset %s: %v\n%s", spec.Preset, exit, out)
		}
		if n := strings.Count(out, "secret"); n != 0 {
			t.Errorf("preset %s: a secret was shown %d times", spec.Preset, n)
		}
	}
	// Listing is the operator's word, also for what is hidden by default; a contradiction is nobody's.
	out, _ := output(t, Spec{Args: []string{"cat", filepath.Join(home, ".ssh/id")}, Read: []string{filepath.Join(home, ".ssh")}})
	if out != "secret" {
		t.Errorf("a listed .ssh: %s", out)
	}
	for _, spec := range []Spec{
		{Read: []string{home, filepath.Join(home, ".ssh/id")}},
		{Read: []string{filepath.Join(home, "notes")}, Hide: []string{filepath.Join(home, "notes")}},
		{Read: []string{filepath.Join(home, "notes")}, Hide: []string{home}},
	} {
		spec.Args = []string{"true"}
		if _, err := Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "hidden") {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}

// What is hidden in a guarded folder does not open the rest of it, whoever hides and whoever guards.
func TestHiddenInGuarded(t *testing.T) {
	base := folder(t, os.Geteuid())
	home := filepath.Join(base, "home")
	t.Setenv("HOME", home)
	put(t, filepath.Join(home, ".config/git/config"), "mine")
	put(t, filepath.Join(home, ".config/git/credentials"), "secret")
	put(t, filepath.Join(home, "own/rules"), "mine")
	put(t, filepath.Join(home, "own/keys/deep/token"), "secret")
	put(t, filepath.Join(home, "own/work/file"), "free")
	script := `cd ` + home + `; cat .config/git/credentials own/keys/deep/token 2>/dev/null
		for f in .config/git/config .config/git/new own/rules own/keys/new own/keys/deep/new; do echo x 2>/dev/null >$f && echo "wrote $f"; done
		for d in .config own own/keys; do mv $d moved 2>/dev/null && echo "moved $d"; done
		echo x >own/work/file && echo done; exit 0`
	out, exit := output(t, Spec{
		Args: []string{"sh", "-c", script}, Write: []string{home, filepath.Join(home, "own/work")},
		Guard: []string{filepath.Join(home, "own")}, Hide: []string{filepath.Join(home, "own/keys/deep/token")},
	})
	if exit.Status() != 0 || out != "done\n" {
		t.Errorf("%v\n%s", exit, out)
	}
}

// Links where a guarded path is: the link is covered, also when it is on the way, and so is where it leads.
func TestGuardedLinks(t *testing.T) {
	base := folder(t, os.Geteuid())
	project := filepath.Join(base, "project")
	t.Setenv("HOME", project)
	put(t, filepath.Join(base, "elsewhere/git/config"), "[core]\n")
	put(t, filepath.Join(project, "dotfiles/config/git/config"), "[core]\n")
	put(t, filepath.Join(project, "dotfiles/zshrc"), "")
	for link, to := range map[string]string{".git": "../elsewhere/git", ".config": "dotfiles/config", ".zshrc": "dotfiles/zshrc", ".envrc": "nowhere"} {
		must(t, os.Symlink(to, filepath.Join(project, link)))
	}
	script := `try() { ("$@") 2>/dev/null && echo "did: $*"; }
		for l in .git .config .zshrc .envrc; do try rm $l; try mv $l x; try ln -sfn /tmp $l; done
		try touch dotfiles/config/git/config dotfiles/zshrc; try sh -c 'echo x >>dotfiles/zshrc'; try sh -c 'echo x >.envrc'; try sh -c 'echo x >nowhere; cat .envrc'
		try mv dotfiles y; try mkdir .ssh/x; try sh -c 'echo ordinary >file'`
	out, _ := output(t, Spec{Args: []string{"sh", "-c", script + "; exit 0"}, Preset: ProjectRW, Project: project})
	if out != "did: sh -c echo ordinary >file\n" {
		t.Errorf("inside: %s", out)
	}
	if _, err := os.Lstat(filepath.Join(project, ".ssh")); err == nil {
		t.Error(".ssh was left")
	}
}

// A project given by a link is the project: its names are held, and the command stands in it.
func TestProjectByALink(t *testing.T) {
	base := folder(t, os.Geteuid())
	real := filepath.Join(base, "real")
	put(t, filepath.Join(real, "file"), "")
	must(t, os.Symlink("real", filepath.Join(base, "link")))
	out, _ := output(t, Spec{Args: []string{"sh", "-c", "pwd; ls; mkdir .claude/x 2>/dev/null && echo wrote; exit 0"}, Preset: ProjectRW, Project: filepath.Join(base, "link") + "/"})
	if out != real+"\nfile\n" {
		t.Errorf("inside: %s", out)
	}
}

// A folder listed for reading inside a writable one stays where it is.
func TestReadOnlyInsideWritable(t *testing.T) {
	dir := folder(t, os.Geteuid())
	put(t, filepath.Join(dir, "a/b/file"), "")
	script := "cd " + dir + "; mv a x 2>/dev/null && echo moved; (echo evil >a/b/file) 2>/dev/null && echo wrote; echo >a/new && echo ordinary"
	out, _ := output(t, Spec{Args: []string{"sh", "-c", script}, Write: []string{dir}, Read: []string{filepath.Join(dir, "a/b")}})
	if out != "ordinary\n" {
		t.Errorf("inside: %s", out)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "a/b/file")); err != nil || len(data) != 0 {
		t.Errorf("%q, %v", data, err)
	}
}

// After a sandbox has tried everything in a repository, git runs nothing of it outside; and with the held names in place it works there.
func TestRepositoryRunsNothingOutside(t *testing.T) {
	base := folder(t, os.Geteuid())
	project, marker := filepath.Join(base, "project"), filepath.Join(base, "marker")
	git(t, "init", "-q", project)
	git(t, "-C", project, "commit", "-q", "--allow-empty", "-m", "first")
	must(t, os.RemoveAll(filepath.Join(project, ".git/hooks")))
	script := identity + `
		git init -q evil; printf '[core]\n\tfsmonitor = "touch ` + marker + `; false"\n[alias]\n\tx = !touch ` + marker + `\n[filter "f"]\n\tclean = touch ` + marker + `\n' >evil.conf
		cp evil.conf evil/.git/config
		{ git config core.fsmonitor 'touch ` + marker + `'; cp evil.conf .git/config; cp evil.conf .git/config.worktree; echo "$PWD/evil/.git" >.git/commondir
		  mkdir -p .git/hooks; printf '#!/bin/sh\ntouch ` + marker + `\n' >.git/hooks/post-commit; chmod +x .git/hooks/post-commit; echo '* filter=f' >.git/info/attributes
		  mv .git gone; rm -rf .git/hooks .git/config; } 2>/dev/null
		echo '* filter=f' >.gitattributes; git add .gitattributes; git commit -qm inside -- .gitattributes && echo committed; echo ready; read x`
	p := begin(t, Spec{Args: []string{"sh", "-c", "exec 2>&1; " + script}, Preset: ProjectRW, Project: project})
	out := bufio.NewReader(p.Stdout)
	for _, want := range []string{"committed\n", "ready\n"} {
		if line, err := out.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%q, %v", line, err)
		}
	}
	use := func(when string) {
		git(t, "-C", project, "status", "--short")
		git(t, "-C", project, "commit", "-q", "--allow-empty", "-m", "outside")
		if log := git(t, "-C", project, "log", "--format=%s"); !strings.HasPrefix(log, "outside\n") || !strings.HasSuffix(log, "inside\nfirst\n") {
			t.Errorf("%s: the log is %q", when, log)
		}
		if _, err := os.Lstat(marker); err == nil {
			t.Errorf("%s: git ran something of the sandbox's", when)
		}
	}
	use("during the run")
	must(t, p.Stdin.Close())
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	use("after it")
	if _, err := os.Lstat(filepath.Join(project, ".git/commondir")); err == nil {
		t.Error("a held name was left")
	}
}

// What git's configuration names in the project is guarded like the configuration: hooks elsewhere, more configuration, commands.
func TestGuardedByGitsConfiguration(t *testing.T) {
	base := folder(t, os.Geteuid())
	project := filepath.Join(base, "project")
	t.Setenv("HOME", base)
	git(t, "init", "-q", project)
	must(t, os.Symlink("project", filepath.Join(base, "alias")))
	put(t, filepath.Join(base, ".gitconfig"), "[core]\n\thooksPath = .team/hooks\n[Include]\n\tpath = \"alias/more\" ; a link leads there\n")
	put(t, filepath.Join(project, ".git/config"), `[core]
	repositoryformatversion = 0
	HooksPath = scripts/hooks
	fsmonitor = ./tools/monitor --fast
[includeIf "gitdir:a]b/"] path = ../shared.conf
[filter "f"]
	clean = python3 \
		tools/clean.py %f
`)
	for _, f := range []string{"scripts/hooks/pre-commit", "tools/monitor", "tools/clean.py", "tools/other", "shared.conf", "more", "nested.conf"} {
		put(t, filepath.Join(project, f), "")
	}
	put(t, filepath.Join(project, "shared.conf"), "[include]\n\tpath = nested.conf\n\tpath = absent.conf\n")
	try := `try() { ("$@") 2>/dev/null && echo "did: $*"; }; `
	for dir, script := range map[string]string{
		".": `for f in scripts/hooks/pre-commit scripts/hooks/new tools/monitor tools/clean.py shared.conf more nested.conf absent.conf .team/hooks/pre-commit; do try cp /usr/bin/env $f; done
			try mkdir .team/hooks; try mv scripts x; try mv tools x; try rm shared.conf; try cp /usr/bin/env tools/other; git status --short >/dev/null 2>&1 || echo failed`,
		"tools": "for f in monitor clean.py; do try cp /usr/bin/env $f; try rm $f; done; try cp /usr/bin/env other",
	} {
		out, exit := output(t, Spec{Args: []string{"sh", "-c", try + script + "; exit 0"}, Preset: ProjectRW, Project: filepath.Join(project, dir)})
		if want := "did: cp /usr/bin/env " + strings.TrimPrefix("tools/other\n", dir+"/"); out != want {
			t.Errorf("in %s: %v\n%s", dir, exit, out)
		}
	}
	for _, name := range []string{".team", "absent.conf"} {
		if _, err := os.Lstat(filepath.Join(project, name)); err == nil {
			t.Errorf("%s was left", name)
		}
	}
}

// HOME is one home of many: under sudo it is root's, and what is listed is another's.
func TestHiddenPathsOfOtherHomes(t *testing.T) {
	base := folder(t, os.Geteuid())
	put(t, filepath.Join(base, "ann/.ssh/id"), "secret")
	put(t, filepath.Join(base, "ann/work/.ssh/id"), "ordinary")
	put(t, filepath.Join(base, "ann/.profile"), "profile")
	put(t, filepath.Join(base, "bob/file"), "")
	t.Setenv("HOME", filepath.Join(base, "bob"))
	script := "cat ann/.ssh/id; cat ann/.profile ann/work/.ssh/id; mkdir -p ann/bin 2>/dev/null && echo tools >ann/bin/x; cat ann/bin/x; exit 0"
	for _, tt := range []struct { // in this order: the second writes
		want string
		spec Spec
	}{
		{"profileordinary", Spec{Read: []string{base}}},
		{"profileordinarytools\n", Spec{Write: []string{filepath.Join(base, "ann")}}}, // beside HOME is not sure to be a home: nothing more is guarded
	} {
		tt.spec.Args, tt.spec.Dir = []string{"sh", "-c", "cd " + base + "; exec 2>/dev/null; " + script}, "/"
		if out, exit := output(t, tt.spec); out != tt.want {
			t.Errorf("%v %v: %v %s", tt.spec.Read, tt.spec.Write, exit, out)
		}
	}
}

// Several sandboxes in one project: the end of one takes no cover off the others, and the last leaves nothing.
func TestHeldNamesOfSeveralSandboxes(t *testing.T) {
	dir := folder(t, os.Geteuid())
	put(t, filepath.Join(dir, ".git/config"), "[core]\n\thooksPath = .team/hooks\n")
	put(t, filepath.Join(dir, "file"), "")
	spec := Spec{Args: []string{"sh", "-c", "echo ready; read x; mkdir .vscode/x .team/x .git/hooks/x 2>/dev/null && echo wrote; echo end"}, Preset: ProjectRW, Project: dir}
	run := func() (*Process, *bufio.Reader) {
		p := begin(t, spec)
		out := bufio.NewReader(p.Stdout)
		if line, err := out.ReadString('\n'); err != nil {
			t.Fatalf("%q %v", line, err)
		}
		return p, out
	}
	finish := func(p *Process, out *bufio.Reader) {
		t.Helper()
		must(t, p.Stdin.Close())
		line, _ := out.ReadString('\n')
		if exit, err := p.Wait(); err != nil || exit.Status() != 0 || line != "end\n" {
			t.Errorf("%v %v %q", exit, err, line)
		}
	}
	a, aOut := run()
	b, bOut := run()
	finish(a, aOut)
	c, cOut := run()
	finish(c, cOut)
	finish(b, bOut)
	for _, name := range []string{".vscode", ".team", ".mcp.json", ".git/hooks", ".git/commondir"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was left", name)
		}
	}
}
