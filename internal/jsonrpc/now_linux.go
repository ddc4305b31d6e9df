package jsonrpc

import (
	"syscall"
	"unsafe"
)

// quickly reads or writes a descriptor in non-blocking mode. The scheduler is told of a system call so that a thread which waits
// in it does not hold up others, and in a process that was idle that wakes its monitor thread: two switches between threads
// for each message, a quarter of the time a short one takes. A call that does not wait needs none of it.
func quickly(call, fd uintptr, data []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
