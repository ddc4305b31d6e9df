package gateway

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// startGroup starts cmd as the head of a process group, killed with the gateway. The kernel ties that to the thread that
// started it, so the thread stays for as long as the process.
func startGroup(cmd *exec.Cmd) (wait func(), err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return func() { <-ended }, nil
}

// pipeRoom is how much a pipe to or from a server holds: a long message passes in few switches between the two processes.
const pipeRoom = 1 << 20

func widen(pipe any) {
	if f, ok := pipe.(*os.File); ok {
		if raw, err := f.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeRoom) }) // refused: it stays as it is
		}
	}
}

// signalGroup signals the group of cmd and every process below it, also one that left the group.
func signalGroup(cmd *exec.Cmd, kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	head := cmd.Process.Pid
	for _, pid := range descendants(head) {
		syscall.Kill(pid, sig)
	}
	syscall.Kill(-head, sig) // the group outlives its head, and its number is not given to another while it does
}

// descendants lists the processes below pid, as far as their parents still live.
func descendants(pid int) []int {
	var all []int
	for todo := []int{pid}; len(todo) > 0 && len(all) < 4096; todo = todo[1:] {
		dir := "/proc/" + strconv.Itoa(todo[0]) + "/task"
		threads, _ := os.ReadDir(dir)
		for _, t := range threads {
			children, _ := os.ReadFile(dir + "/" + t.Name() + "/children")
			for _, field := range bytes.Fields(children) {
				if child, err := strconv.Atoi(string(field)); err == nil {
					all, todo = append(all, child), append(todo, child)
				}
			}
		}
	}
	return all
}
