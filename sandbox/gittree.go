package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxPointer bounds the files with which git points from one folder to another: a path and a word.
const maxPointer = 8 << 10

// workTree is a project whose .git is a file: a linked work tree. Its pointers are read here and never by git, which would run
// what the project's configuration names.
type workTree struct {
	gitDir string // <common>/worktrees/<name>
	common string // the .git of the main work tree
}

// errNotWorkTree says that .git is no file.
var errNotWorkTree = errors.New("no linked work tree")

// readWorkTree follows the pointers of a linked work tree and checks that they point back: a pointer that was changed to lead
// elsewhere would otherwise open that place. All paths are without symbolic links.
func readWorkTree(project string) (workTree, error) {
	dotGit := filepath.Join(project, ".git")
	info, err := os.Lstat(dotGit)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return workTree{}, errNotWorkTree
	} else if err != nil {
		return workTree{}, err
	}
	text, err := readPointer(dotGit)
	if err != nil {
		return workTree{}, err
	}
	to, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return workTree{}, fmt.Errorf("%s does not point to a git folder", dotGit)
	}
	gitDir, err := resolve(project, to)
	if err != nil {
		return workTree{}, err
	}
	back, err := readPointer(filepath.Join(gitDir, "gitdir"))
	if err != nil {
		return workTree{}, fmt.Errorf("%s points to %s, which does not point back: %w", dotGit, gitDir, err)
	}
	home, err := resolve(gitDir, filepath.Dir(back))
	if err != nil || filepath.Base(back) != ".git" || home != project {
		return workTree{}, fmt.Errorf("%s points to %s, which points back to another place", dotGit, gitDir)
	}
	commonText, err := readPointer(filepath.Join(gitDir, "commondir"))
	if err != nil {
		return workTree{}, fmt.Errorf("%s: %w", gitDir, err)
	}
	common, err := resolve(gitDir, commonText)
	if err != nil {
		return workTree{}, err
	}
	if filepath.Dir(gitDir) != filepath.Join(common, "worktrees") {
		return workTree{}, fmt.Errorf("%s is not a work tree of %s", gitDir, common)
	}
	for _, name := range []string{"objects", "refs"} {
		if i, err := os.Lstat(filepath.Join(common, name)); err != nil || !i.IsDir() {
			return workTree{}, fmt.Errorf("%s is not a git folder", common)
		}
	}
	return workTree{gitDir, common}, nil
}

func resolve(base, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.EvalSymlinks(path)
}

func readPointer(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPointer+1))
	if err != nil {
		return "", err
	}
	data = bytes.TrimRight(data, "\r\n")
	if len(data) > maxPointer || bytes.ContainsAny(data, "\n\x00") {
		return "", fmt.Errorf("%s is not a single line", path)
	}
	return string(data), nil
}
