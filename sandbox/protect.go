package sandbox

// protectedDirs and protectedFiles are what no sandbox may change in a project: what a program outside would run or obey
// without asking. Their names are held even when absent; see hold.
var protectedDirs = []string{".git/hooks"}

// Protected names what a project that is open for writing still holds read-only, relative to the project.
func Protected() []string { return protectedDirs }

// Hidden names the folders and files of home that stay invisible even inside a listed path.
func Hidden(home string) []string { return nil }
