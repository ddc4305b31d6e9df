package jsonrpc

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnlyPipesAndSocketsAreReadRaw(t *testing.T) {
	file := func(fd int, err error) *os.File {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "")
		t.Cleanup(func() { f.Close() })
		return f
	}
	pair := func(mode int) *os.File {
		t.Helper()
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|mode, 0)
		file(ends[1], err)
		return file(ends[0], err)
	}
	pipe := func(mode int) *os.File {
		t.Helper()
		var ends [2]int
		err := unix.Pipe2(ends[:], unix.O_CLOEXEC|mode)
		file(ends[1], err)
		return file(ends[0], err)
	}
	for name, c := range map[string]struct {
		stream any
		raw    bool
	}{
		"pipe":            {pipe(unix.O_NONBLOCK), true},
		"blocking pipe":   {pipe(0), false},
		"socket":          {pair(unix.SOCK_NONBLOCK), true},
		"blocking socket": {pair(0), false},
		"terminal":        {file(unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)), false},
		"file":            {file(unix.Open(filepath.Join(t.TempDir(), "f"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)), false},
		"no file":         {struct{}{}, false},
	} {
		if got := nonBlocking(c.stream) != nil; got != c.raw {
			t.Errorf("%s: raw = %v, want %v", name, got, c.raw)
		}
	}
}
