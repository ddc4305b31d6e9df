//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The parent and init talk over one pair of sequenced-packet sockets, a JSON message a packet, descriptors beside it. When
// the parent is gone, init reads the end of it and ends, and the kernel ends everything in its process namespace.

// maxMessage bounds a packet; the largest is the report.
const maxMessage = 128 << 10

// maxFDs is how many descriptors a packet carries; the kernel takes 253.
const maxFDs = 128

// message is one packet in either direction; one field is set.
type message struct {
	// To init.
	Mounts bool           `json:",omitempty"` // descriptors: mounts of a root caller's parent, in the order of the entries
	Go     bool           `json:",omitempty"`
	Signal syscall.Signal `json:",omitempty"`

	// From init.
	Ready   *ready      `json:",omitempty"`
	Running bool        `json:",omitempty"`
	Failed  *failure    `json:",omitempty"`
	Exit    *exitStatus `json:",omitempty"`
}

// ready comes with descriptors: the proxy's listener, the transparent ones, the resolver's socket, the terminal.
type ready struct {
	Listeners int
	DNS       bool
	Terminal  bool
	Report    Report // as measured
}

// failure is an error that crosses the socket.
type failure struct {
	Layer, Remedy, Text string
	Errno               syscall.Errno
	Command             string // set for a CommandError
	NotFound            bool
}

type exitStatus struct {
	Code   int
	Signal syscall.Signal
}

func (f *failure) error() error {
	err := errors.New(f.Text)
	if f.Errno != 0 {
		err = fmt.Errorf("%s: %w", f.Text, f.Errno)
	}
	if f.Command != "" {
		return &CommandError{Command: f.Command, Err: err, NotFound: f.NotFound, Hint: f.Remedy}
	}
	return &LayerError{Layer: f.Layer, Err: err, Remedy: f.Remedy}
}

// control is one end of the pair. Reads and writes may be concurrent with each other.
type control struct{ f *os.File }

func (c control) send(m message, fds ...int) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	return c.do(func(fd int) error { return unix.Sendmsg(fd, data, oob, nil, unix.MSG_NOSIGNAL) }, true)
}

// receive blocks for the next message; io.EOF when the other side is gone.
func (c control) receive() (message, []int, error) {
	buf := make([]byte, maxMessage)
	oob := make([]byte, unix.CmsgSpace(maxFDs*4))
	var n, oobn, flags int
	err := c.do(func(fd int) (err error) {
		n, oobn, flags, _, err = unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		return err
	}, false)
	if err != nil {
		return message{}, nil, err
	}
	var fds []int
	if oobn > 0 {
		msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			return message{}, nil, err
		}
		for _, m := range msgs {
			got, err := unix.ParseUnixRights(&m)
			if err != nil {
				return message{}, nil, err
			}
			fds = append(fds, got...)
		}
	}
	if n == 0 {
		return message{}, fds, io.EOF
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return message{}, fds, errors.New("a control message was cut off")
	}
	var m message
	if err := json.Unmarshal(buf[:n], &m); err != nil {
		return message{}, fds, fmt.Errorf("reading a control message: %w", err)
	}
	return m, fds, nil
}

// do runs a call on the socket and waits where it would block: through the poller in the parent, in the call in init.
func (c control) do(call func(fd int) error, write bool) error {
	raw, err := c.f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	try := func(fd uintptr) bool {
		for {
			inner = call(int(fd))
			if inner != unix.EINTR {
				return inner != unix.EAGAIN
			}
		}
	}
	if write {
		err = raw.Write(try)
	} else {
		err = raw.Read(try)
	}
	if err != nil {
		return err
	}
	return inner
}

// closeWrite tells the other side that nothing more comes, as the end of this process would.
func (c control) closeWrite() error {
	raw, err := c.f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = unix.Shutdown(int(fd), unix.SHUT_WR) }); err != nil {
		return err
	}
	return inner
}
