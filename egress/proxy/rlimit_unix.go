//go:build unix

package proxy

import "syscall"

// defaultConnections leaves half of this process's descriptors to others, since a tunnel takes two.
func defaultConnections() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 256
	}
	return int(min(max(uint64(r.Cur)/4, 16), mostConnections))
}
